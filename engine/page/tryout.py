"""A page that tries a message against the routes in force, like `jms-bridge explain`; nothing is sent."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from engine.errors import HardFailureError, SetupError, UnreachableError, UsageError
from engine.explain import Ending, explain
from engine.explain.explanation import result, rows
from engine.find.question import TopicKind
from engine.kafka.reader import Position
from engine.looks.look import LookWay
from engine.message import Message
from engine.page import forms
from engine.page.forms import Form
from engine.page.message_form import form_of, form_values, message_in, unrouted_record
from engine.page.render import rendered
from engine.page.sight import Sight
from engine.page.threads import Threads
from engine.page.view import Tone
from engine.page.viewer_mask import MaskedError
from engine.schemas.documents import documents_of
from engine.schemas.route_schemas import route_schemas
from engine.trace_context import traced
from engine.tracing_section import TracingConfig

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.explain import Explanation
    from engine.message import Record
    from engine.page.view import View
    from routes.model import Config
    from routes.predicate import Trace

__all__ = ["explained", "tryout"]

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
                    retry = partial(_tried_again, position, config, sight)
                    form, result = await threads.run(retry, _SECONDS, _BUSY, _LATE)
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
        values = form_values(form, config.source_schemas)
        return await rendered(
            request, view, "try.html", status=status, fault=fault, result=result, position=position, **values
        )

    return page


def _tried(form: Form, config: Config) -> dict[str, Any]:
    """Explains the message in a form, for the template; raises what `message_in` and the reader of its body do."""
    message = message_in(form, {"JMSMessageID": "ID:example", "JMSDeliveryMode": "PERSISTENT"})
    return explained(traced(message.to_record(), config.section(TracingConfig)), config)


def _tried_again(text: str, config: Config, sight: Sight) -> tuple[Form, dict[str, Any]]:
    """Explains the record at a position, as it is, and fills in the form with it as far as the form can have it."""
    position = Position.parse(text, config.journal.topic)
    topic, record = unrouted_record(position, config, sight, LookWay.TRIAL)
    at = str(position) if topic.kind is TopicKind.JOURNAL else None
    return form_of(Message.from_record(record)), explained(record, config, at)


def explained(record: Record, config: Config, position: str | None = None) -> dict[str, Any]:
    """Explains a record for the template; raises what the reader of its body does."""
    documents = documents_of(config, _REGISTRY_SECONDS)
    return _result(explain(record, config, position=position, documents=documents, schemas=route_schemas(config)))


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
