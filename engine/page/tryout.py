"""A page that tries a message against the routes in force, like `jms-bridge explain`; nothing is sent."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from engine.dead_letters.letter import DeadLetter, original
from engine.errors import HardFailureError, SetupError, UnreachableError, UsageError
from engine.explain import Ending, explain
from engine.explain.explanation import result, rows
from engine.find.question import TopicKind
from engine.kafka.reader import Position
from engine.limits import MOST_HEADERS
from engine.looks.look import LookWay
from engine.message import ORIGIN, BodyType, Message
from engine.page import forms
from engine.page.forms import Form
from engine.page.messages import record_at
from engine.page.render import rendered
from engine.page.sight import Sight
from engine.page.threads import Threads
from engine.page.view import Tone
from engine.page.viewer_mask import MaskedError
from engine.schemas.documents import documents_of
from engine.schemas.route_schemas import route_schemas
from engine.trace_context import traced
from engine.tracing_section import TracingConfig
from routes.properties import HEADER_FIELDS, SEED_NAMES, JmsType, Property

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.explain import Explanation
    from engine.message import Record
    from engine.page.view import View
    from routes.model import Config
    from routes.predicate import Trace

__all__ = ["tryout"]

_SECONDS = 5.0
_REGISTRY_SECONDS = 1.0
"""Time for a request to the schema registry: a message needs several where the registry has several addresses."""
_BUSY = "other messages are being tried at this moment; try again"
_LATE = f"this message took longer than {_SECONDS:g} s; make it smaller, or use jms-bridge explain"
_TONES = {
    Ending.PUBLISHED: Tone.GOOD,
    Ending.COUNTED: Tone.IDLE,
    Ending.SKIP: Tone.WARN,
    Ending.DEAD_LETTER: Tone.WARN,
    Ending.STOP: Tone.BAD,
}


def tryout(view: View) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the page: a form, and the routing of the message in it."""
    threads = Threads()

    async def page(request: Request) -> Response:
        form, result = Form({}), None
        fault, status = "", 200
        config, position = view.config(), request.query_params.get("position", "")
        if request.method == "POST" or position:
            try:
                if position:
                    sight = Sight(request, view)
                    sight.check_whole("the trial of a record")
                    again = partial(_tried_again, position, config, sight)
                    form, result = await threads.run(again, _SECONDS, _BUSY, _LATE)
                else:
                    form = await forms.read(request)
                    forms.check(form, view.seal, request)
                    result = await threads.run(partial(_tried, form, config), _SECONDS, _BUSY, _LATE)
            except (forms.ForeignRequestError, MaskedError) as error:
                form, fault, status = Form({}), str(error), 403
            except UsageError as error:
                fault, status = str(error), 400
            except (UnreachableError, HardFailureError, SetupError) as error:
                fault, status = str(error), 503
        values = {
            "position": position,
            "address": form.text("address"),
            "properties": form.text("properties"),
            "body": form.text("body"),
            "kind": form.text("kind") or BodyType.TEXT,
            "kinds": list(BodyType),
            "source": form.text("source"),
            "sources": [each.source for each in view.config().source_schemas],
            "types": list(JmsType),
            "fields": list(HEADER_FIELDS),
        }
        return await rendered(request, view, "try.html", status=status, fault=fault, result=result, **values)

    return page


def _tried(form: Form, config: Config) -> dict[str, Any]:
    """Explains the message in a form, for the template; raises what `_message` and the reader of its body do."""
    return _explained(traced(_message(form).to_record(), config.section(TracingConfig)), config)


def _tried_again(text: str, config: Config, sight: Sight) -> tuple[Form, dict[str, Any]]:
    """Explains the record at a position, as it is, and fills in the form with it as far as the form can have it."""
    position = Position.parse(text, config.journal.topic)
    topic, located = record_at(config, position)
    record = sight.only(LookWay.TRIAL, located).record
    if topic.kind is TopicKind.DEAD_LETTERS:
        record = original(DeadLetter(located), config.bridge_id)
    else:
        own = config.bridge_id.encode()
        # The bridge would take a message that it has published for one that comes back.
        record = replace(record, headers=tuple(each for each in record.headers if each != (ORIGIN, own)))
    message = Message.from_record(record)
    fields = {name: value for name, value in message.headers.items() if name != "JMSDestination"}
    lines = [f"{name}={value}" for name, value in fields.items()]
    lines += [
        f"{name}:{value.type}={value.text}" if value.type else f"{name}={value.text}"
        for name, value in message.properties.items()
    ]
    form = {
        "address": message.headers.get("JMSDestination", ""),
        "properties": "\n".join(line for line in lines if "\n" not in line),
        "body": message.body.decode("utf-8", "replace"),
        "kind": str(message.body_type),
        "source": message.source,
    }
    at = str(position) if topic.kind is TopicKind.JOURNAL else None
    return Form({name: [value] for name, value in form.items()}), _explained(record, config, at)


def _explained(record: Record, config: Config, position: str | None = None) -> dict[str, Any]:
    documents = documents_of(config, _REGISTRY_SECONDS)
    return _result(explain(record, config, position=position, documents=documents, schemas=route_schemas(config)))


def _message(form: Form) -> Message:
    """Builds the message from the form; UsageError names the first invalid line or field."""
    fields = {"JMSMessageID": "ID:example", "JMSDeliveryMode": "PERSISTENT"}
    if address := form.text("address").strip():
        fields["JMSDestination"] = address
    properties: dict[str, Property] = {}
    lines = form.text("properties").splitlines()
    if len(lines) > MOST_HEADERS:
        msg = f"there are {len(lines):,} headers; at most {MOST_HEADERS:,} are taken here"
        raise UsageError(msg)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        name, found, value = line.partition("=")
        name, _, kind = name.strip().partition(":")
        full = SEED_NAMES.get(name, name)
        if not found or not name:
            msg = f"line {number} of the headers: {line!r} is not a header; expected NAME=VALUE or NAME:TYPE=VALUE"
            raise UsageError(msg)
        if kind and kind not in JmsType.__members__.values():
            msg = f"line {number} of the headers: there is no type '{kind}'; expected one of {', '.join(JmsType)}"
            raise UsageError(msg)
        if full in HEADER_FIELDS:
            fields[full] = value
        else:
            properties[name] = Property(value, JmsType(kind) if kind else None)
    kind = form.text("kind") or BodyType.TEXT
    if kind not in BodyType.__members__.values():
        msg = f"there is no kind of body '{kind}'; expected one of {', '.join(BodyType)}"
        raise UsageError(msg)
    return Message(
        form.text("body").encode("utf-8", "replace"), BodyType(kind), fields, properties, form.text("source")
    )


def _result(explanation: Explanation) -> dict[str, Any]:
    return {
        "steps": [
            {
                "name": step.route.name,
                "wanted": step.wanted,
                "rows": [*_rows("include", step.include), *_rows("exclude", step.exclude)],
            }
            for step in explanation.steps
            # Routes that take back replies are not the user's, so they appear only if the message is such a reply.
            if step.wanted or not step.route.added
        ],
        "publications": [_publication(each) for each in explanation.publications],
    }


def _publication(explanation: Explanation) -> dict[str, Any]:
    return {
        "tone": _TONES[explanation.ending],
        "result": result(explanation).removesuffix(", with headers"),
        "key": explanation.key,
        "key_name": explanation.key_name,
        "place": str(explanation.publication.target) if explanation.publication else "",
        "failures": explanation.failures,
        "headers": explanation.headers,
        "changed_body": explanation.changed_body,
    }


def _rows(label: str, trace: Trace | None) -> Iterator[tuple[str, int, str, str]]:
    """The rows of a predicate and its parts with their values; the first row has the label."""
    if trace is not None:
        for number, (depth, text, value) in enumerate(rows(trace)):
            yield "" if number else label, depth, text, value
