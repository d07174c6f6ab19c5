"""Settings of Kafka sources, each field with its key."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from routes.keys.addresses import FROM
from routes.keys.table import key
from routes.keys.values import choice, whole
from routes.systems import SourceConfig, consumer

if TYPE_CHECKING:
    from routes.targets import Template

__all__ = ["KafkaSourceConfig", "MessageType"]


class MessageType(StrEnum):
    """Kinds of JMS message that a Kafka source makes of a record's value."""

    AUTO = "auto"
    """The kind that the record declares, if a bridge wrote it; else text if the value is UTF-8."""
    TEXT = "TEXT"
    BYTES = "BYTES"


@dataclass(frozen=True, kw_only=True)
class KafkaSourceConfig(SourceConfig):
    """Settings of a Kafka source; destinations are regular expressions of topics."""

    consumer: str | None = consumer()
    """Name of the group of consumers; None: made of bridge and source."""
    address: Template = key(
        "address",
        FROM,
        "Address that the messages of a Kafka topic get as `msg.address` and JMSDestination: a topic unless it "
        "begins with `queue:`. `${topic}` is the Kafka topic, `${msg.header.NAME}` the text of a header.",
        default="kafka.${topic}",
        example="queue:${topic}",
        template=True,
    )
    """Template of the destination that messages are said to come from, `queue:` or `topic:` included."""
    message_type: MessageType = key(
        "message.type",
        choice(MessageType, any_case=True),
        "Body type of a record's value. `auto`: the type that the record states, if a bridge wrote it, else text "
        "where the value is UTF-8. With `TEXT`, a value that is not UTF-8 fails softly.",
        default="auto",
    )
    hops: int = key(
        "hops",
        whole(0, 100),
        "Number of times that a record may have come through this bridge before. With `0`, records that this bridge "
        "has published itself are not routed again, so that nothing goes round in circles; `1` lets a message go "
        "from JMS to Kafka and back.",
        default="0",
    )
    """Number of times that a record may have passed through this bridge before."""
