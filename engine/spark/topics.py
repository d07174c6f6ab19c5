"""What `engine.topics` knows, asked while the router runs: silence is then a reason to try again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import topics
from engine.errors import UnreachableError
from engine.spark.positions import KafkaUnavailableError

if TYPE_CHECKING:
    from routes.model import Config

__all__ = ["check_topics", "limits", "resolved"]

_SECONDS = 10.0


def check_topics(config: Config) -> None:
    """HardFailureError if a topic to be written is missing or refused, KafkaUnavailableError without an answer."""
    try:
        topics.check_topics(config, _SECONDS)
    except UnreachableError as error:
        raise KafkaUnavailableError(str(error)) from error


def limits(config: Config) -> dict[str, int]:
    """`max.message.bytes` by topic; KafkaUnavailableError without an answer."""
    try:
        return topics.limits(config, _SECONDS)
    except UnreachableError as error:
        raise KafkaUnavailableError(str(error)) from error


def resolved(config: Config) -> Config:
    """The configuration with the topics that its templates can make; KafkaUnavailableError without an answer."""
    try:
        return topics.resolved(config, _SECONDS)
    except UnreachableError as error:
        raise KafkaUnavailableError(str(error)) from error
