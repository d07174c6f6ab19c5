"""`jms-bridge send`: one message, or many, to a queue, topic or subject of a broker or to a Kafka topic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.destination import Broker, Username, kafka_topic, place_of
from engine.cli.options import (
    DEFAULT_CONFIG,
    BodyFile,
    ConfigFile,
    CorrelationId,
    Expires,
    Headers,
    JmsTypeOption,
    Json,
    NonPersistent,
    Priority,
    Properties,
    TypedProperties,
    examples,
    load,
    read_fields,
    read_headers,
    read_message,
)
from engine.cli.output import note
from engine.errors import UsageError
from engine.printable import json_text
from routes.model import WireFormat

if TYPE_CHECKING:
    from engine.cli.destination import BrokerDestination
    from engine.message import Message
    from routes.model import Config, SinkConfig

__all__ = ["Format", "outgoing", "register", "send", "sink_of"]

Format = Annotated[
    WireFormat | None,
    typer.Option(
        "--format",
        metavar="headers|json|typed|typed-1.0|raw",
        help="NATS: how the message carries headers, as sink.NAME.format; raw carries none. Without it: as the "
        "configured sink has it, else headers.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog=examples(
            'jms-bridge send queue:orders --property region=emea "hello"',
            'jms-bridge send queue:orders --correlation-id 42 --reply-to queue:replies --count 1000 "hello"',
            "jms-bridge send topic:prices --body-file price.bin --url stomp://127.0.0.1:61613",
            'jms-bridge send amqp:queue/orders --typed-property amount:int=5 --url amqp://127.0.0.1:5672 "hello"',
            "cat image.png | jms-bridge send queue:images --body-file -",
            'jms-bridge send nats:orders.eu --typed-property amount:int=5 --stream "hello"',
            'jms-bridge send dropbox:queue/orders --typed-property amount:int=5 --url dropbox:///srv/dropbox "hello"',
            'jms-bridge send nats:orders.eu --format json --url nats://127.0.0.1:4222 "hello"',
            'jms-bridge send kafka:jms-bridge.journal --typed-property amount:int=5 --header JMSMessageID=ID:1 "hello"',
        )
    )(send)


def send(
    destination: Annotated[
        str,
        typer.Argument(
            metavar="DESTINATION",
            help="queue:NAME, topic:NAME, nats:SUBJECT, dropbox:queue/NAME, dropbox:topic/NAME, kafka:TOPIC, or "
            "NAME:ADDRESS with the NAME of a sink or source.",
        ),
    ],
    body: Annotated[str | None, typer.Argument(metavar="BODY", help="The body, as text; empty if left out.")] = None,
    headers: Headers = [],  # noqa: B006 - Typer's way to say that an option is repeatable
    properties: Properties = [],  # noqa: B006
    typed: TypedProperties = [],  # noqa: B006
    correlation_id: CorrelationId = None,
    reply_to: Annotated[str | None, typer.Option(metavar="DESTINATION", help="JMSReplyTo, as queue:replies.")] = None,
    jms_type: JmsTypeOption = None,
    priority: Priority = None,
    expires: Expires = None,
    non_persistent: NonPersistent = False,
    count: Annotated[int, typer.Option("--count", "-n", min=1, metavar="NUMBER", help="Send it so many times.")] = 1,
    body_file: BodyFile = None,
    form: Format = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="NATS: has to be kept by a stream of JetStream, which then confirms it.")
    ] = False,
    url: Broker = None,
    username: Username = None,
    json_output: Json = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Send a message and wait until the broker has it.

    It goes as a sink would send it: to a JMS broker over STOMP or AMQP, as text, or as a bytes message if the body is
    not UTF-8; to a NATS server with its headers in the given format; into a folder as a file whose name has its
    headers; to Kafka as a record in the form of the journal.

    The broker is that of --url; else of the sink or source called NAME, as routes spell it; else of the source that
    reads from there; else of the first sink or source of that type; else the embedded one.
    """
    topic = kafka_topic(destination)
    fields = {**read_headers(headers), **read_fields(correlation_id, jms_type, priority, expires, non_persistent)}
    if reply_to is not None:
        fields["JMSReplyTo"] = reply_to
    message = read_message(fields, properties, typed, body, body_file)
    settings = load(config)
    if topic is not None:
        _no_format(destination, form, stream)
        where = _to_kafka(settings, topic, message, count)
        _tell(f"sent {_count(count)} to {destination}, the last one to {where}", json_output, destination, count, where)
        return
    from engine.cli.exchange import give, who

    place = place_of(settings, destination, url, username, to_send=True)
    own = sink_of(place, who("send"), form, stream or None)
    if stream and "JMSReplyTo" in fields:
        msg = "--stream and --reply-to do not go together: a stream confirms messages at their reply address"
        raise UsageError(msg)
    give(settings, place, own, *outgoing(place, own, message), number=count)
    _tell(f"sent {_count(count)} to {destination} at {place.url}", json_output, destination, count, place.url)


def sink_of(place: BrokerDestination, who: str, form: WireFormat | None, stream: bool | None) -> SinkConfig:
    """The sink that sends it; UsageError where an option is for another system."""
    if not place.has("format"):
        _no_format(place.text, form, bool(stream))
        return place.sink(who)
    if form is WireFormat.AUTO:
        msg = "--format auto: expected headers, json, typed, typed-1.0 or raw"
        raise UsageError(msg)
    return place.sink(who, format=form, stream=stream)


def outgoing(place: BrokerDestination, own: SinkConfig, message: Message) -> tuple[Message, str]:
    """The message as it goes out, and where replies to it go; UsageError where it cannot go there so."""
    fields = dict(message.headers)
    reply_to = fields.pop("JMSReplyTo", "")
    if refused := sorted(place.system.not_sent & fields.keys()):
        msg = f"{refused[0]} is set by the broker or by who receives the message; it cannot be sent to {place.text}"
        raise UsageError(msg)
    if getattr(own, "format", None) is WireFormat.RAW and (fields or message.properties):
        given = ", ".join([*fields, *message.properties])
        msg = f"a message of format raw is its body alone: leave out {given}, or take another --format"
        raise UsageError(msg)
    return replace(message, headers=fields), place.reply_address(reply_to) if reply_to else ""


def _no_format(destination: str, form: WireFormat | None, stream: bool) -> None:
    if form is not None or stream:
        option = "--stream" if form is None else "--format"
        msg = f"{option} is for NATS; {destination} is sent to without"
        raise UsageError(msg)


def _to_kafka(config: Config, topic: str, message: Message, count: int) -> str:
    from engine.cli import produce

    fields = {**message.headers, "JMSDeliveryMode": message.headers.get("JMSDeliveryMode", "PERSISTENT")}
    return produce.send(config, topic, replace(message, headers=fields).to_record(), count)


def _tell(text: str, as_json: bool, destination: str, count: int, where: str) -> None:
    if as_json:
        typer.echo(json_text({"destination": destination, "messages": count, "where": where}))
    else:
        note(text)


def _count(number: int) -> str:
    return "1 message" if number == 1 else f"{number} messages"
