"""The table of the brokers that the tests start, each with the class that starts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.brokers.artemis import Artemis
from tests.brokers.broker_j import BrokerJ
from tests.brokers.classic import Classic5, Classic6
from tests.brokers.openmq import OpenMq
from tests.brokers.rabbitmq import RabbitMq, RabbitMq4

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.brokers.broker import Broker

__all__ = ["BROKERS"]

BROKERS: Mapping[str, type[Broker]] = {
    "artemis": Artemis,
    "classic5": Classic5,
    "classic6": Classic6,
    "rabbitmq": RabbitMq,
    "rabbitmq4": RabbitMq4,
    "broker-j": BrokerJ,
    "openmq": OpenMq,
}
"""Brokers by the name that `make brokers` takes."""
