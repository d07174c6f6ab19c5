"""Settings of STOMP sources and sinks, each field with its key."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.connectors.jms import JmsConfig, JmsSinkConfig, JmsSourceConfig
from routes.keys.table import key
from routes.keys.values import FLAG, choice

__all__ = ["Acknowledge", "EmptyBody", "StompSinkConfig", "StompSourceConfig"]


class Acknowledge(StrEnum):
    """Acknowledgement modes of a STOMP source: each message that the journal has, or all up to one."""

    INDIVIDUAL = "individual"
    CUMULATIVE = "cumulative"


class EmptyBody(StrEnum):
    """Treatment of a message without a body from a broker that may have left the body out."""

    REJECT = "reject"
    ACCEPT = "accept"


@dataclass(frozen=True, kw_only=True)
class StompSourceConfig(JmsSourceConfig):
    """Settings of a STOMP source."""

    acknowledge: Acknowledge = key(
        "acknowledge",
        choice(Acknowledge),
        "`individual` acknowledges each message; `cumulative` all up to one, which is faster, but loses messages "
        "that Artemis cannot put into a STOMP frame (stream messages). OpenMQ takes cumulative "
        "acknowledgements only, and gets these.",
        default="individual",
    )
    convert_bodies: bool = key(
        "convert-bodies",
        FLAG,
        "`true`: ActiveMQ Classic converts the bodies of map messages, and of objects that are single values; "
        "otherwise these messages come without a body. The broker needs XStream, which is in its distribution: "
        "without XStream the broker closes the connection, as it does at an object of a class that it does not trust.",
        default="false",
    )
    empty_body: EmptyBody = key(
        "empty-body",
        choice(EmptyBody),
        "Treatment of a message without a body from ActiveMQ Classic, or from a JMS client of Artemis: these brokers "
        "send map, stream and object messages like empty texts. `reject` handles it by `routing.on-soft-failure`, "
        "`accept` takes it as an empty text.",
        default="reject",
    )


@dataclass(frozen=True, kw_only=True)
class StompSinkConfig(JmsConfig, JmsSinkConfig):
    """Settings of a STOMP sink."""
