"""`jms-bridge explain`: which route one message takes, and why no earlier one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.message_input import read_file
from engine.cli.options import (
    DEFAULT_CONFIG,
    BodyFile,
    ConfigFile,
    Headers,
    Json,
    Properties,
    TypedProperties,
    examples,
    load,
    read_body,
    read_headers,
    read_properties,
)
from engine.errors import UsageError
from engine.message import BodyType, Message
from engine.printable import json_text, printable
from engine.trace_context import traced

if TYPE_CHECKING:
    from engine.message import Record
    from routes.model import Config

__all__ = ["command", "register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "explain",
        epilog=examples(
            "jms-bridge explain --address queue:orders --property region=emea",
            "jms-bridge explain --address queue:orders --typed-property amount:int=5 --header JMSCorrelationID=42",
            "jms-bridge explain --file message.json --json",
            "jms-bridge journal tail -n 1 --json | jms-bridge explain --file -",
            "jms-bridge explain --journal 0:17",
        ),
    )(command)


def command(
    address: Annotated[
        str | None,
        typer.Option(metavar="DESTINATION", help="JMSDestination: queue:NAME, topic:NAME, or topic:SUBJECT of NATS."),
    ] = None,
    headers: Headers = [],  # noqa: B006 - Typer's way to say that an option is repeatable
    properties: Properties = [],  # noqa: B006
    typed: TypedProperties = [],  # noqa: B006
    body: Annotated[str | None, typer.Option(metavar="TEXT", help="The body, as text.")] = None,
    body_file: BodyFile = None,
    file: Annotated[
        str | None,
        typer.Option("--file", metavar="FILE", help="A whole message: JSON, or headers, an empty line and the body."),
    ] = None,
    journal: Annotated[
        str | None, typer.Option(metavar="PARTITION:OFFSET", help="A message of the journal; needs Kafka.")
    ] = None,
    json_output: Json = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Explain one message: each route tried with the values in its predicate, the key, what is published.

    Needs no server (but for --journal). A message without JMSMessageID gets one, as any JMS provider would give it;
    sizes are not checked.
    """
    from engine.cli.explanation import as_json, as_text
    from engine.explain import explain

    settings = load(config)
    given = [name for name, value in (("--file", file), ("--journal", journal)) if value is not None]
    if given and (address or headers or properties or typed or body or body_file or len(given) > 1):
        msg = f"{given[0]} is a whole message; it does not go with other options that make one"
        raise UsageError(msg)
    position = None
    if journal is not None:
        record, position = _from_journal(settings, journal)
    elif file is not None:
        record = traced(read_file(file), settings)
    else:
        fields = read_headers(headers)
        if address is not None:
            fields["JMSDestination"] = address
        payload, text = read_body(body, body_file)
        values = read_properties(properties, typed)
        message = Message(payload, BodyType.TEXT if text else BodyType.BYTES, fields, values)
        record = traced(_as_sent(message), settings)
    explanation = explain(record, settings, position=position)
    if json_output:
        typer.echo(json_text(as_json(explanation)))
    else:
        typer.echo(printable("\n".join(as_text(explanation))))


def _from_journal(config: Config, text: str) -> tuple[Record, str]:
    from engine.kafka.reader import KafkaTopicReader, Position

    at = Position.parse(text, config.journal.topic)
    with KafkaTopicReader(config, at.topic) as reader:
        return reader.at(at.partition, at.offset).record, str(at)


def _as_sent(message: Message) -> Record:
    defaults = {"JMSMessageID": "ID:example", "JMSDeliveryMode": "PERSISTENT"}
    return Message(message.body, message.body_type, {**defaults, **message.headers}, message.properties).to_record()
