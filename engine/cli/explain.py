"""`jms-bridge explain`: which route one message takes, and why no earlier one."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli.options import (
    DEFAULT_CONFIG,
    BodyFile,
    ConfigFile,
    Headers,
    Json,
    Properties,
    TypedProperties,
    command,
    load,
    read_body,
    read_file,
    read_headers,
    read_properties,
)
from engine.cli.output import json_bytes, show_bytes
from engine.errors import UsageError
from engine.message import BodyType, Message
from engine.printable import json_text, printable
from engine.trace_context import traced
from engine.tracing_section import TracingConfig

if TYPE_CHECKING:
    from engine.explain import Explanation, Step
    from engine.message import Record
    from routes.kafka_access import KafkaAccess
    from routes.predicate import Trace

__all__ = ["explain", "explanation_json", "explanation_text"]


@command(
    "jms-bridge explain --address queue:orders --property region=emea",
    "jms-bridge explain --address queue:orders --typed-property amount:int=5 --header JMSCorrelationID=42",
    "jms-bridge explain --file message.json --json",
    "jms-bridge journal tail -n 1 --json | jms-bridge explain --file -",
    "jms-bridge explain --journal 0:17",
)
def explain(
    address: Annotated[
        str | None,
        typer.Option(metavar="DESTINATION", help="JMSDestination: queue:NAME, topic:NAME, or topic:SUBJECT for NATS."),
    ] = None,
    headers: Headers = [],  # noqa: B006 - Typer's way to say that an option is repeatable
    properties: Properties = [],  # noqa: B006
    typed: TypedProperties = [],  # noqa: B006
    body: Annotated[str | None, typer.Option(metavar="TEXT", help="The body, as text.")] = None,
    body_file: BodyFile = None,
    source: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Source of the message, whose source.NAME.schema reads a bare value."),
    ] = None,
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
    """Explain one message: each route tried, the values in its predicate, the key, and the published record.

    Needs no server, except for --journal, and the schema registry for a body with a schema. A message without
    JMSMessageID gets one, as from a JMS provider. Sizes are not checked.
    """
    from engine.explain import explain as explain_message
    from engine.schemas.documents import documents_of
    from engine.schemas.route_schemas import route_schemas

    settings = load(config)
    given = [name for name, value in (("--file", file), ("--journal", journal)) if value is not None]
    if given and (address or headers or properties or typed or body or body_file or source or len(given) > 1):
        msg = f"{given[0]} is a whole message; it does not go with other options that make one"
        raise UsageError(msg)
    position = None
    if journal is not None:
        record, position = _from_journal(settings.kafka_access, settings.journal.topic, journal)
    elif file is not None:
        record = traced(read_file(file), settings.section(TracingConfig))
    else:
        fields = read_headers(headers)
        if address is not None:
            fields["JMSDestination"] = address
        payload, text = read_body(body, body_file)
        known = [each.name for each in settings.sources]
        if source is not None and source not in known:
            msg = f"--source {source}: there is no such source; there are {', '.join(known) or 'none'}"
            raise UsageError(msg)
        is_bare = body_file is not None and any(each.source == source for each in settings.source_schemas)
        kind = BodyType.TEXT if text and not is_bare else BodyType.BYTES
        message = Message(payload, kind, fields, read_properties(properties, typed), source or "")
        record = traced(_as_sent(message), settings.section(TracingConfig))
    explanation = explain_message(
        record, settings, position=position, documents=documents_of(settings), schemas=route_schemas(settings)
    )
    if json_output:
        typer.echo(json_text(explanation_json(explanation)))
    else:
        typer.echo(printable("\n".join(explanation_text(explanation))))


def _from_journal(access: KafkaAccess, journal: str, text: str) -> tuple[Record, str]:
    from engine.kafka.clients import KafkaClients
    from engine.kafka.reader import KafkaTopicReader, Position

    position = Position.parse(text, journal)
    with KafkaTopicReader(KafkaClients(access), position.topic) as reader:
        return reader.at(position.partition, position.offset).record, str(position)


def _as_sent(message: Message) -> Record:
    defaults = {"JMSMessageID": "ID:example", "JMSDeliveryMode": "PERSISTENT"}
    return replace(message, headers={**defaults, **message.headers}).to_record()


def explanation_text(explanation: Explanation) -> list[str]:
    """Lines for people: the message, each route tried with the values in its predicate, the key, the result."""
    from engine.explain.explanation import result

    message = explanation.message
    lines = [
        f"message  {message.headers.get('JMSDestination', 'no destination')}, "
        f"{len(message.body)} bytes of {message.body_type}"
    ]
    for step in explanation.steps:
        # The routes that take replies back are not the user's, unless the message is such a reply.
        if step.wanted or not step.route.added:
            lines += ["", *_step_lines(step)]
    for each in explanation.publications:
        if each.key_name is not None:
            lines += ["", f"key      {each.key or '(none)'}  from {each.key_name}"]
            lines += [f"fails    {failure.reason}: {failure.detail}" for failure in each.failures]
        lines += ["", f"result   {result(each)}"]
        width = max((len(name) for name, _ in each.headers), default=0)
        lines += [f"  {name:<{width}}  {show_bytes(value)}" for name, value in each.headers]
        if each.changed_body is not None:
            lines += ["", "body", *_body_lines(each.changed_body)]
    return lines


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """An explanation as a JSON object."""
    return {
        **_publication_json(explanation),
        "copies": [_publication_json(each) for each in explanation.copies],
        "routes": [
            {
                "name": step.route.name,
                "wanted": step.wanted,
                "include": _trace_json(step.include),
                "exclude": None if step.exclude is None else _trace_json(step.exclude),
            }
            for step in explanation.steps
        ],
    }


def _publication_json(explanation: Explanation) -> dict[str, Any]:
    """JSON object of one publication of a message."""
    return {
        "result": explanation.ending,
        "reason": explanation.reason or None,
        "route": explanation.route.name if explanation.route else None,
        "topic": explanation.topic,
        "destination": explanation.destination,
        "key": explanation.key,
        "key_from": explanation.key_name,
        "failures": [{"reason": failure.reason, "detail": failure.detail} for failure in explanation.failures],
        "headers": [{"name": name, **json_bytes("value", value)} for name, value in explanation.headers],
        **({} if explanation.changed_body is None else json_bytes("body", explanation.changed_body)),
        **({} if explanation.claim is None else {"claim": str(explanation.claim)}),
    }


def _body_lines(body: bytes) -> list[str]:
    try:
        return [f"  {line}" for line in body.decode().split("\n")]
    except UnicodeDecodeError:
        return [f"  {show_bytes(body, limit=4096)}"]


def _step_lines(step: Step) -> list[str]:
    lines = [f"route    {step.route.name}: {'takes it' if step.wanted else 'does not take it'}"]
    lines += _trace_lines("include", step.include)
    if step.exclude is not None:
        lines += _trace_lines("exclude", step.exclude)
    return lines


def _trace_lines(label: str, trace: Trace) -> list[str]:
    from engine.explain.explanation import rows

    pairs = [("  " * depth + text, value) for depth, text, value in rows(trace)]
    width = max(len(text) for text, _ in pairs)
    return [
        f"  {label if number == 0 else '':<7}  {text:<{width}}  {value}" for number, (text, value) in enumerate(pairs)
    ]


def _trace_json(trace: Trace) -> dict[str, Any]:
    from engine.jms_values import shown

    return {
        "text": trace.text,
        # JSON has no number that is not finite, and null stands for an unknown value.
        "value": shown(trace.value) if isinstance(trace.value, float) and not isfinite(trace.value) else trace.value,
        **({"place": trace.place} if trace.place else {}),
        "parts": [_trace_json(part) for part in trace.parts],
    }
