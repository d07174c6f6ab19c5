"""Functions of `engine.kafka.topics` for the running router, which tries again if Kafka does not answer.

They raise KafkaUnavailableError where `engine.kafka.topics` raises UnreachableError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import UnreachableError
from engine.kafka import topics
from engine.kafka.errors import KafkaUnavailableError

if TYPE_CHECKING:
    from routes.model import Config

__all__ = ["check_topics", "limits", "resolved"]

_SECONDS = 10.0


def check_topics(config: Config) -> None:
    """Checks that all topics which the router writes exist and are writable.

    Raises:
        HardFailureError: a topic is missing, or Kafka refuses access.
        KafkaUnavailableError: Kafka does not answer.
    """
    try:
        topics.check_topics(config, _SECONDS)
    except UnreachableError as error:
        raise KafkaUnavailableError(str(error)) from error


def limits(config: Config) -> dict[str, int]:
    """The `max.message.bytes` by topic; KafkaUnavailableError if Kafka does not answer."""
    try:
        return topics.limits(config, _SECONDS)
    except UnreachableError as error:
        raise KafkaUnavailableError(str(error)) from error


def resolved(config: Config) -> Config:
    """The configuration with its templates resolved to topics; KafkaUnavailableError if Kafka does not answer."""
    try:
        return topics.resolved(config, _SECONDS)
    except UnreachableError as error:
        raise KafkaUnavailableError(str(error)) from error
