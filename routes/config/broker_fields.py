"""The keys of sources and sinks: part of the field table in `fields`."""

from __future__ import annotations

from routes.config.addresses import DESTINATIONS, REPLY_TO, TOPIC, url
from routes.config.language import SELECTOR
from routes.config.table import Field
from routes.config.values import FLAG, NAME, PATH, SYSTEM, TEXT, choice, duration, whole
from routes.model import Acknowledge, WireFormat
from routes.targets import JMS, System

__all__ = ["BROKER_FIELDS"]


def _broker(section: str) -> tuple[Field, ...]:
    """The keys of a connection, which sources and sinks have in common."""
    name = f"{section}.NAME"
    return (
        Field(f"{name}.type", SYSTEM, "The kind of system.", example="stomp", required=True),
        Field(
            f"{name}.url",
            url("stomp", "stomp+ssl", "amqp", "amqps", "nats", "tls"),
            "Where it listens; `stomp+ssl` is STOMP over TLS, `amqps` is AMQP over TLS, `tls` is NATS over TLS.",
            default_note="the embedded Artemis, or NATS server",
            example="stomp://127.0.0.1:61613",
        ),
        Field(f"{name}.workers", whole(1, 64), "Connections that share the work, each a process.", default="1"),
        Field(f"{name}.username", TEXT, "Login.", example="bridge"),
        Field(f"{name}.password", TEXT, "Its password.", example="${env:ARTEMIS_PASSWORD}"),
        Field(
            f"{name}.token",
            TEXT,
            "Login by a token alone.",
            example="${env:NATS_TOKEN}",
            systems=(System.NATS,),
        ),
        Field(
            f"{name}.credentials",
            PATH,
            "Login by a credentials file (JWT and seed).",
            example="nats.creds",
            systems=(System.NATS,),
        ),
        Field(f"{name}.client-id", NAME, "Client id of the connection.", example="bridge-1"),
        Field(
            f"{name}.heartbeat",
            duration("100ms", "10m"),
            "How often both sides show that they are alive.",
            default="10s",
        ),
        Field(
            f"{name}.tls.ca", PATH, "Certificates (PEM) to trust.", default_note="the system's", example="tls/ca.pem"
        ),
        Field(f"{name}.tls.certificate", PATH, "The bridge's own certificate (PEM).", example="tls/bridge.pem"),
        Field(f"{name}.tls.key", PATH, "Its private key (PEM).", example="tls/bridge.key"),
        Field(
            f"{name}.tls.verify",
            FLAG,
            "Whether the broker has to prove who it is. `false` is for tests.",
            default="true",
        ),
    )


BROKER_FIELDS = (
    *_broker("source"),
    Field(
        "source.NAME.destinations",
        DESTINATIONS,
        "What to take messages from. STOMP and AMQP: queues and topics. NATS: subjects, with the wildcards `*` and "
        "`>`.",
        example="queue:orders, topic:prices",
        required=True,
    ),
    Field(
        "source.NAME.selector",
        SELECTOR,
        "JMS selector that the broker applies, so that other messages never reach the bridge.",
        example="region = 'emea'",
        systems=JMS,
    ),
    Field(
        "source.NAME.subscription",
        NAME,
        "Name of a durable subscription: the broker keeps what is published to topics while the bridge is down.",
        default_note="not durable",
        example="prices-to-kafka",
        systems=JMS,
    ),
    Field(
        "source.NAME.acknowledge",
        choice(Acknowledge),
        "`individual` acknowledges each message; `cumulative` all up to one, which is faster, but loses messages "
        "that Artemis cannot put into a STOMP frame (stream messages).",
        default="individual",
        systems=(System.STOMP,),
    ),
    Field(
        "source.NAME.stream",
        NAME,
        "JetStream stream to read the subjects from; it keeps what comes while the bridge is down. Without one, "
        "messages are taken from a plain subscription, which has only what is published while it is there.",
        default_note="a plain subscription",
        example="ORDERS",
        systems=(System.NATS,),
    ),
    Field(
        "source.NAME.consumer",
        NAME,
        "Name of the durable consumer of the stream, or of the queue group of a plain subscription.",
        default_note="`bridge.id` and NAME",
        example="orders-to-kafka",
        systems=(System.NATS,),
    ),
    Field(
        "source.NAME.format",
        choice(WireFormat),
        "How messages carry headers: as NATS' own (`headers`), in a frame (`json`, `typed`), or not at all "
        "(`raw`). `auto`: in a frame where the payload begins like one, else as NATS' own.",
        default="auto",
        systems=(System.NATS,),
    ),
    *_broker("sink"),
    Field(
        "sink.NAME.topic",
        TOPIC,
        "Kafka topic between the router and the sink; created when missing, as the journal is.",
        default_note="`jms-bridge.sink.NAME`",
        example="jms-bridge.sink.nats",
    ),
    Field(
        "sink.NAME.format",
        choice(WireFormat),
        "How messages carry headers: as NATS' own (`headers`), in a frame (`json`, `typed`), or not at all (`raw`).",
        default="headers",
        systems=(System.NATS,),
    ),
    Field(
        "sink.NAME.stream",
        FLAG,
        "Whether a JetStream stream has to take each message, and to leave out the ones it has already.",
        default="false",
        systems=(System.NATS,),
    ),
    Field(
        "sink.NAME.reply-to",
        REPLY_TO,
        "Turns request/reply on: where the other side sends replies, `queue:NAME` for STOMP and AMQP, a subject for "
        "NATS. The bridge takes them from there to whoever asked.",
        default_note="requests go out without a reply address",
        example="queue:bridge-1.replies",
    ),
    Field(
        "sink.NAME.reply-timeout",
        duration("10ms", "1d"),
        "After how long a request without a reply is counted as timed out. A later reply is still delivered.",
        default="30s",
    ),
)
