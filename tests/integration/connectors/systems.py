"""Systems of the conformance suites, and those at which `make test` runs a case that needs only one.

Some cases are about the loops of `engine/delivery` alone, which no system can change. `make test` runs them at the
systems that their decorator names, and `make chaos` at the others too. A case that touches a system's wire, codec,
acknowledgements or connections runs at every system.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PROXIED_SINKS", "SINKS", "SOURCES", "delivery_of_sinks", "delivery_of_sources"]

SOURCES = ("stomp", "amqp", "jms", "jetstream", "dropbox")
"""Fixtures that give the harness of a source."""
SINKS = ("stomp_sink", "amqp_sink", "jms_sink", "nats_sink", "dropbox_sink", "kafka_sink")
"""Fixtures that give the harness of a sink."""
PROXIED_SINKS = tuple(each for each in SINKS if each != "kafka_sink")
"""Those whose connections can pass through a proxy: a Kafka broker tells its clients another address."""


def delivery_of_sources(*systems: str) -> pytest.MarkDecorator:
    """Marks a case of the source loop alone; `make test` runs it at these `SOURCES`."""
    return _cases("harness", SOURCES, systems)


def delivery_of_sinks(*systems: str) -> pytest.MarkDecorator:
    """Marks a case of the sink loop alone; `make test` runs it at these `SINKS`."""
    return _cases("sink_harness", SINKS, systems)


def _cases(fixture: str, every: Sequence[str], systems: Sequence[str]) -> pytest.MarkDecorator:
    others = pytest.mark.further_cases
    given = [pytest.param(each, marks=() if each in systems else others) for each in every]
    return pytest.mark.parametrize(fixture, given, indirect=True)
