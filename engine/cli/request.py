"""`jms-bridge request`: a message with a reply address, and the reply to it."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.destination import Broker, Username, kafka_topic, place_of
from engine.cli.options import (
    DEFAULT_CONFIG,
    Base64,
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
    read_seconds,
)
from engine.cli.output import BodyFormat, note, show_bytes
from engine.cli.records import Item, as_json, as_text
from engine.cli.send import Format, outgoing, sink_of
from engine.errors import UsageError
from engine.printable import printable
from routes.errors import BridgeError
from routes.model import WireFormat

if TYPE_CHECKING:
    from engine.cli.destination import BrokerDestination
    from engine.connectors.base import Delivery, Source
    from engine.message import Message
    from routes.model import Config

__all__ = ["NoReplyError", "register", "request"]


class NoReplyError(BridgeError):
    """The request is with the broker, and no reply came in time."""

    exit_code = 7


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog=examples(
            'jms-bridge request queue:prices "EURUSD"',
            'jms-bridge request amqp:queue/prices --url amqp://127.0.0.1:5672 "EURUSD"',
            'jms-bridge request nats:prices.get --timeout 2s --url nats://127.0.0.1:4222 "EURUSD"',
            'jms-bridge request dropbox:queue/prices --url dropbox:///srv/dropbox "EURUSD"',
            "jms-bridge request queue:orders --property region=emea --body-file order.json --full",
        )
    )(request)


def request(
    destination: Annotated[
        str,
        typer.Argument(
            metavar="DESTINATION",
            help="queue:NAME, topic:NAME, amqp:queue/NAME, nats:SUBJECT, dropbox:queue/NAME, or NAME:ADDRESS with the "
            "NAME of a sink or source.",
        ),
    ],
    body: Annotated[str | None, typer.Argument(metavar="BODY", help="The body, as text; empty if left out.")] = None,
    timeout: Annotated[
        float,
        typer.Option(parser=read_seconds, metavar="SECONDS", help="How long to wait for the reply, as 5s or 500ms."),
    ] = 5.0,
    headers: Headers = [],  # noqa: B006 - Typer's way to say that an option is repeatable
    properties: Properties = [],  # noqa: B006
    typed: TypedProperties = [],  # noqa: B006
    correlation_id: CorrelationId = None,
    jms_type: JmsTypeOption = None,
    priority: Priority = None,
    expires: Expires = None,
    non_persistent: NonPersistent = False,
    body_file: BodyFile = None,
    form: Format = None,
    url: Broker = None,
    username: Username = None,
    full: Annotated[bool, typer.Option("--full", help="Show the reply with its headers, as receive does.")] = False,
    json_output: Json = False,
    base64: Base64 = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Send a message, wait for the reply to it and print its body.

    At a JMS broker and in folders the reply is awaited in a queue made for it, with the correlation id of the request
    or, as is the other habit there, with its message id. At a NATS server it is awaited under a subject made for it.
    Kafka knows no replies.

    Exits with 7 if the request was sent and no reply came in time.
    """
    if kafka_topic(destination) is not None:
        msg = f"{destination}: Kafka knows no replies; ask at a queue, topic or subject"
        raise UsageError(msg)
    fields = {**read_headers(headers), **read_fields(correlation_id, jms_type, priority, expires, non_persistent)}
    if "JMSReplyTo" in fields:
        msg = "--header JMSReplyTo: request awaits the reply at a place of its own; use send for another one"
        raise UsageError(msg)
    message = read_message(fields, properties, typed, body, body_file)
    settings = load(config)
    place = place_of(settings, destination, url, username, to_send=True)
    reply = _asked(settings, place, message, form, timeout)
    body_format = BodyFormat.BASE64 if base64 else BodyFormat.HEX
    if json_output:
        typer.echo(as_json(reply))
    else:
        shown = as_text(reply, body_format) if full else printable(show_bytes(reply.record.value, body_format))
        typer.echo(shown)


def _asked(config: Config, place: BrokerDestination, message: Message, form: WireFormat | None, seconds: float) -> Item:
    """The reply. Its place is listened to before the request is sent."""
    from engine.cli.exchange import give, item, listening, who

    name = who("request")
    # A stream would take the reply address for its own confirmation.
    own = sink_of(place, name, form, stream=False)
    message, _ = outgoing(place, own, message)
    correlation_id = message.headers.get("JMSCorrelationID") or uuid.uuid4().hex
    if not place.system.token_in_address:
        message = replace(message, headers={**message.headers, "JMSCorrelationID": correlation_id})
    address = place.system.passing_reply_address.format(uuid.uuid4().hex)
    # A reply has the format of its request, and a typed frame does not say its release.
    release = getattr(own, "format", None)
    replies = place.source(name, address, format=release if release is WireFormat.TYPED_1_0 else None)
    with listening(config, place, replies) as source:
        give(config, place, own, message, address)
        delivery = _reply(source, None if place.system.token_in_address else correlation_id, seconds)
        if delivery is None:
            msg = (
                f"no reply from {place.text} at {place.url} in {seconds:g} s; is somebody there to answer it, and is "
                "--timeout long enough?"
            )
            raise NoReplyError(msg)
        source.acknowledge([delivery.token])
    return item(place, delivery)


def _reply(source: Source, correlation_id: str | None, seconds: float) -> Delivery | None:
    """The first delivery that is a reply to the request; others are remarked."""
    from engine.cli.exchange import next_delivery

    deadline = time.monotonic() + seconds
    while (delivery := next_delivery(source, max(deadline - time.monotonic(), 0))) is not None:
        found = delivery.message.headers.get("JMSCorrelationID", "")
        # The broker may have given the request another message id than ours; nobody else uses the place of the reply.
        if correlation_id is None or found == correlation_id or found.startswith("ID:"):
            return delivery
        note(f"passed over a message with correlation id {found or '(none)'}, not {correlation_id}")
        source.acknowledge([delivery.token])
    return None
