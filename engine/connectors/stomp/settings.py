"""Settings of STOMP sources and sinks, each field with its key."""

from __future__ import annotations

from dataclasses import dataclass

from engine.connectors.jms import JmsConfig, JmsSourceConfig
from routes.keys.table import key
from routes.keys.values import choice
from routes.model import Acknowledge
from routes.systems import SinkConfig

__all__ = ["StompSinkConfig", "StompSourceConfig"]


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
