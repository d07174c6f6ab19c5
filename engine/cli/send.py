"""`jms-bridge send`: one message, or many, to a queue or topic of a JMS broker or to a Kafka topic."""

from __future__ import annotations

import time
from itertools import repeat
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.destination import KAFKA, Broker, Username, broker_of, split
from engine.cli.options import (
    DEFAULT_CONFIG,
    BodyFile,
    ConfigFile,
    Headers,
    Properties,
    TypedProperties,
    examples,
    load,
    read_body,
    read_headers,
    read_properties,
)
from engine.cli.output import note
from engine.errors import UsageError
from engine.message import BodyType, Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from routes.properties import Property

__all__ = ["register", "send"]

_STOMP_NAMES = {
    "JMSCorrelationID": "correlation-id",
    "JMSReplyTo": "reply-to",
    "JMSType": "type",
    "JMSPriority": "priority",
    "JMSExpiration": "expires",
    "JMSXGroupID": "JMSXGroupID",
    "JMSXGroupSeq": "JMSXGroupSeq",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog=examples(
            'jms-bridge send queue:orders --property region=emea "hello"',
            'jms-bridge send queue:orders --correlation-id 42 --reply-to queue:replies --count 1000 "hello"',
            "jms-bridge send topic:prices --body-file price.bin --url stomp://127.0.0.1:61613",
            "cat image.png | jms-bridge send queue:images --body-file -",
            'jms-bridge send kafka:jms-bridge.journal --typed-property amount:int=5 --header JMSMessageID=ID:1 "hello"',
        )
    )(send)


def send(
    destination: Annotated[str, typer.Argument(metavar="DESTINATION", help="queue:NAME, topic:NAME or kafka:TOPIC.")],
    body: Annotated[str | None, typer.Argument(metavar="BODY", help="The body, as text; empty if left out.")] = None,
    headers: Headers = [],  # noqa: B006 - Typer's way to say that an option is repeatable
    properties: Properties = [],  # noqa: B006
    typed: TypedProperties = [],  # noqa: B006
    correlation_id: Annotated[str | None, typer.Option(metavar="ID", help="JMSCorrelationID.")] = None,
    reply_to: Annotated[str | None, typer.Option(metavar="DESTINATION", help="JMSReplyTo, as queue:replies.")] = None,
    jms_type: Annotated[str | None, typer.Option("--type", metavar="TEXT", help="JMSType.")] = None,
    priority: Annotated[int | None, typer.Option(min=0, max=9, metavar="0..9", help="JMSPriority.")] = None,
    expires: Annotated[float | None, typer.Option(min=0.0, metavar="SECONDS", help="Expires after that time.")] = None,
    non_persistent: Annotated[bool, typer.Option("--non-persistent", help="Send as NON_PERSISTENT.")] = False,
    count: Annotated[int, typer.Option("--count", "-n", min=1, metavar="NUMBER", help="Send it so many times.")] = 1,
    body_file: BodyFile = None,
    url: Broker = None,
    username: Username = None,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Send a message and wait until the broker has it.

    To a queue or topic it goes over STOMP, as text, or as a bytes message if the body is not UTF-8; to Kafka as a
    record in the form of the journal.
    """
    scheme, name = split(destination)
    fields = read_headers(headers)
    options = {
        "JMSCorrelationID": correlation_id,
        "JMSReplyTo": reply_to,
        "JMSType": jms_type,
        "JMSPriority": None if priority is None else str(priority),
        "JMSExpiration": None if expires is None else str(int((time.time() + expires) * 1000)),
    }
    fields.update((option, value) for option, value in options.items() if value is not None)
    values = read_properties(properties, typed)
    payload, text = read_body(body, body_file)
    settings = load(config)
    if scheme == KAFKA:
        from engine.cli import produce

        fields["JMSDeliveryMode"] = "NON_PERSISTENT" if non_persistent else "PERSISTENT"
        message = Message(payload, BodyType.TEXT if text else BodyType.BYTES, fields, values)
        last = produce.send(settings, name, message.to_record(), count)
        note(f"sent {_count(count)} to {destination}, the last one to {last}")
        return
    from engine.cli import stomp

    source = broker_of(settings, destination, url, username)
    frame = {**_frame_headers(fields, values), "persistent": "false" if non_persistent else "true"}
    stomp.send(source, destination, repeat(payload, count), text=text, headers=frame)
    note(f"sent {_count(count)} to {destination} at {source.url}")


def _frame_headers(fields: Mapping[str, str], properties: Mapping[str, Property]) -> dict[str, str]:
    """STOMP's names for JMS fields; properties go as they are, since STOMP has no types."""
    frame = {name: value.text for name, value in properties.items()}
    for name, value in fields.items():
        if name not in _STOMP_NAMES:
            msg = f"{name} is set by the broker; a STOMP client can send {', '.join(_STOMP_NAMES)}"
            raise UsageError(msg)
        frame[_STOMP_NAMES[name]] = value
    if "reply-to" in frame:
        scheme, reply = split(frame["reply-to"])
        frame["reply-to"] = f"{scheme}://{reply}"
    return frame


def _count(number: int) -> str:
    return "1 message" if number == 1 else f"{number} messages"
