"""The keys of sources and sinks: part of the field table in `fields`."""

from __future__ import annotations

from routes.config.addresses import DESTINATIONS, FROM, REPLY_TO, TOPIC, url
from routes.config.selectors import SELECTOR
from routes.config.table import Field
from routes.config.values import FLAG, NAME, PATH, SYSTEM, TEXT, choice, duration, whole
from routes.model import Acknowledge, FileWatch, MessageType, Processed, WireFormat
from routes.targets import JMS, NETWORKED, System

__all__ = ["BROKER_FIELDS"]


def _broker(section: str) -> tuple[Field, ...]:
    """Returns the keys of a connection, which sources and sinks share."""
    name = f"{section}.NAME"
    return (
        Field(f"{name}.type", SYSTEM, "The kind of system.", example="stomp", required=True),
        Field(
            f"{name}.url",
            url("stomp", "stomp+ssl", "amqp", "amqps", "nats", "tls"),
            "Where it listens; `stomp+ssl` is STOMP over TLS, `amqps` is AMQP over TLS, `tls` is NATS over TLS.",
            default_note="the embedded Artemis, or NATS server",
            example="stomp://127.0.0.1:61613",
            systems=NETWORKED,
        ),
        Field(
            f"{name}.listen",
            url("amqp", "amqps"),
            "Where the bridge itself listens, for clients to connect to; in place of `url`.",
            example="amqp://127.0.0.1:5673",
            systems=(System.AMQP,),
        ),
        Field(
            f"{name}.root",
            PATH,
            "The folder that the dropboxes are in. A relative path begins at this file.",
            default_note="`dropbox` in `embedded.data`, which is made when missing",
            example="spool/dropbox",
            systems=(System.DROPBOX,),
        ),
        Field(f"{name}.workers", whole(1, 64), "Connections that share the work, each a process.", default="1"),
        Field(f"{name}.username", TEXT, "Login.", example="bridge", systems=NETWORKED),
        Field(f"{name}.password", TEXT, "Its password.", example="${env:ARTEMIS_PASSWORD}", systems=NETWORKED),
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
        Field(
            f"{name}.client-id",
            NAME,
            "Client id of the connection.",
            example="bridge-1",
            systems=(*NETWORKED, System.DROPBOX),
        ),
        Field(
            f"{name}.virtual-host",
            TEXT,
            "The virtual host of the broker. STOMP: the header `host` of CONNECT; AMQP: `hostname` of open. RabbitMQ "
            "wants `/` over STOMP and `vhost:/` over AMQP.",
            default_note="the host of `url`",
            example="/",
            systems=JMS,
        ),
        Field(
            f"{name}.heartbeat",
            duration("100ms", "10m"),
            "How often both sides show that they are alive.",
            default="10s",
            systems=NETWORKED,
        ),
        Field(
            f"{name}.max-clients",
            whole(1, 10000),
            "With `listen`: connections of clients at a time.",
            default="500",
            systems=(System.AMQP,),
        ),
        Field(
            f"{name}.transaction-timeout",
            duration("1s", "1h"),
            "With `listen`: how long a client's transaction may take from its first message; then it is rolled back.",
            default="2m",
            systems=(System.AMQP,),
        ),
        Field(
            f"{name}.tls.ca",
            PATH,
            "Certificates (PEM) to trust.",
            default_note="the system's",
            example="tls/ca.pem",
            systems=NETWORKED,
        ),
        Field(
            f"{name}.tls.certificate",
            PATH,
            "The bridge's own certificate (PEM).",
            example="tls/bridge.pem",
            systems=NETWORKED,
        ),
        Field(f"{name}.tls.key", PATH, "Its private key (PEM).", example="tls/bridge.key", systems=NETWORKED),
        Field(
            f"{name}.tls.verify",
            FLAG,
            "Whether the broker has to prove who it is. `false` is for tests.",
            default="true",
            systems=NETWORKED,
        ),
    )


BROKER_FIELDS = (
    *_broker("source"),
    Field(
        "source.NAME.destinations",
        DESTINATIONS,
        "What to take messages from. STOMP, AMQP and dropbox: queues and topics. NATS: subjects, with the wildcards "
        "`*` and `>`. Kafka: topics, each a regular expression for whole names; those of the bridge and of Kafka "
        "itself are left out.",
        example="queue:orders, topic:prices",
        required=True,
    ),
    Field(
        "source.NAME.selector",
        SELECTOR,
        "JMS selector that the broker applies, so that other messages never reach the bridge. It has the spelling of "
        "JMS alone: `=` and `<>`, texts in single quotes, no `msg.`.",
        example="region = 'emea'",
        systems=JMS,
    ),
    Field(
        "source.NAME.subscription",
        NAME,
        "Name of a durable subscription: the broker keeps what is published to topics while the bridge is down.",
        default_note="STOMP: not durable; dropbox: NAME",
        example="prices-to-kafka",
        systems=(*JMS, System.DROPBOX),
    ),
    Field(
        "source.NAME.watch",
        choice(FileWatch),
        "How new files are noticed: `inotify` asks the system to tell, `scan` is for folders that other machines write "
        "to. Folders are looked through every `scan-interval` in any case.",
        default="inotify",
        systems=(System.DROPBOX,),
    ),
    Field(
        "source.NAME.scan-interval",
        duration("10ms", "10m"),
        "How often folders are looked through.",
        default="1s",
        systems=(System.DROPBOX,),
    ),
    Field(
        "source.NAME.processed",
        choice(Processed),
        "What becomes of files that the journal has: they are kept in the folder `processed`, or deleted.",
        default="keep",
        systems=(System.DROPBOX,),
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
        "Name of the durable consumer of the stream, of the queue group of a plain subscription, or of the group of "
        "Kafka consumers.",
        default_note="`bridge.id` and NAME",
        example="orders-to-kafka",
        systems=(System.NATS, System.KAFKA),
    ),
    Field(
        "source.NAME.format",
        choice(WireFormat),
        "How messages carry headers: as NATS' own (`headers`), in a frame (`json`; `typed` of nats-jms-bridge up to "
        "0.23, `typed-1.0` from 0.24 on), or not at all (`raw`). `auto`: in a frame (`json` or `typed`) where the "
        "payload begins like one, else as NATS' own.",
        default="auto",
        systems=(System.NATS,),
    ),
    Field(
        "source.NAME.address",
        FROM,
        "Where the messages of a Kafka topic are said to come from, as `msg.address` and JMSDestination: a topic "
        "unless it begins with `queue:`. `${topic}` is the Kafka topic, `${msg.header.NAME}` the text of a header.",
        default="kafka.${topic}",
        example="queue:${topic}",
        systems=(System.KAFKA,),
        template=True,
    ),
    Field(
        "source.NAME.message.type",
        choice(MessageType, any_case=True),
        "What a record's value is. `auto`: what the record says, if a bridge wrote it, else text where it is UTF-8. "
        "A value that is no UTF-8 is no `TEXT` and fails softly.",
        default="auto",
        systems=(System.KAFKA,),
    ),
    Field(
        "source.NAME.hops",
        whole(0, 100),
        "How often a record may have come through this bridge before. With `0`, what this bridge has published itself "
        "is not routed again, so that nothing goes round in circles; `1` lets a message go from JMS to Kafka and back.",
        default="0",
        systems=(System.KAFKA,),
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
        "How messages carry headers: as NATS' own (`headers`), in a frame (`json`; `typed` of nats-jms-bridge up to "
        "0.23, `typed-1.0` from 0.24 on), or not at all (`raw`). Replies go in the format of their requests.",
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
        "Turns request/reply on: where the other side sends replies, `queue:NAME` for STOMP, AMQP and dropbox, a "
        "subject for NATS. The bridge takes them from there to whoever asked.",
        default_note="requests go out without a reply address",
        example="queue:bridge-1.replies",
    ),
    Field(
        "sink.NAME.reply-timeout",
        duration("10ms", "1d"),
        "After how long a request without a reply is counted as timed out. A later reply is dropped, as expired.",
        default="30s",
    ),
)
