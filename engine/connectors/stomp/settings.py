"""Settings of STOMP sources and sinks, each field with its key."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.connectors.jms import JmsConfig, JmsSourceConfig
from routes.keys.table import key
from routes.keys.values import choice
from routes.systems import SinkConfig

__all__ = ["Acknowledge", "StompSinkConfig", "StompSourceConfig"]


class Acknowledge(StrEnum):
    """Acknowledgement modes of a STOMP source: each message that the journal has, or all up to one."""

    INDIVIDUAL = "individual"
    CUMULATIVE = "cumulative"


@dataclass(frozen=True, kw_only=True)
class StompSourceConfig(JmsSourceConfig):
    """Settings of a STOMP source."""

    acknowledge: Acknowledge = key(
        "acknowledge",
        choice(Acknowledge),
        "`individual` acknowledges each message; `cumulative` all up to one, which is faster, but loses messages "
        "that Artemis cannot put into a STOMP frame (stream messages).",
        default="individual",
    )


@dataclass(frozen=True, kw_only=True)
class StompSinkConfig(JmsConfig, SinkConfig):
    """Settings of a STOMP sink."""
