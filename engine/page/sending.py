"""The page that sends a message: it writes the message into the journal, as a source does, and the router routes it.

A second page shows the record and what the routes in force make of it; only the button there sends it, once.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import structlog
from starlette.responses import RedirectResponse

from engine.claims.claim import CLAIM
from engine.dead_letters.store import DeadLetterStore
from engine.errors import UnreachableError, UsageError
from engine.kafka.reader import Position
from engine.looks.look import LookWay
from engine.message import Message
from engine.page import forms
from engine.page.acting import acting
from engine.page.asked import status_of
from engine.page.body_text import body_text
from engine.page.forms import Form
from engine.page.message_form import FIELDS, form_of, form_values, message_in, unrouted_record
from engine.page.render import HEADERS, as_text, rendered
from engine.page.sight import Sight
from engine.page.tryout import explained
from engine.rerouting.sending import JournalSender
from engine.trace_context import traced
from engine.tracing_section import TracingConfig
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.message import Record
    from engine.page.threads import Threads
    from engine.page.view import View
    from routes.model import Config

__all__ = ["send"]

_SEE_OTHER = 303
_SECONDS = 10.0
"""Less than a connection may take; see `engine.telemetry.http`."""
_BUSY = "other messages are being sent at this moment; try again"
_LATE = (
    f"Kafka did not take the message within {_SECONDS:g} s; look for it on the page Find, or press the button again: "
    "it is not sent twice"
)
_ANEW = ("JMSMessageID", "JMSTimestamp")
"""JMS fields that a copy of a message has of its own."""
_log = structlog.get_logger(__name__)


def send(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler: a GET shows the form, a POST the message in it, or a copy, and a confirmed POST sends it."""
    sender = JournalSender()

    async def page(request: Request) -> Response:
        config, query = view.config(), request.query_params
        form, content, fault, status = Form({}), dict[str, Any](), "", 200
        try:
            if request.method == "POST":
                form = await forms.read(request)
                forms.check(form, view.seal, request)
                if form.text("confirmed") == "yes":
                    try:
                        position = await threads.run(lambda: _sent(form, view, sender, request), _SECONDS, _BUSY, _LATE)
                        return RedirectResponse(f"/send?sent={position}", _SEE_OTHER, HEADERS)
                    except UnreachableError as error:
                        # The same button is shown again, with its token.
                        fault, status = str(error), 503
                if given := form.text("position"):
                    sight = Sight(request, view)
                    form = await threads.ask(config.kafka_access.servers, lambda: _copy(given, config, sight))
                elif not form.text("edit"):
                    content = await threads.run(lambda: _shown(form, config), _SECONDS, _BUSY, _LATE)
            elif told := query.get("sent", ""):
                content = {"sent": Position.parse(told, config.journal.topic)}
        except forms.ForeignRequestError as error:
            form, fault, status = Form({}), str(error), 403
        except BridgeError as error:
            fault, status = str(error), status_of(error)
        values = form_values(form, config.source_schemas) | {"key": form.text("key"), "journal": config.journal.topic}
        return await rendered(request, view, "send.html", status=status, fault=fault, **values, **content)

    return page


def _shown(form: Form, config: Config) -> dict[str, Any]:
    """The record that the form makes, and what the routes in force make of it; raises what `message_in` does."""
    token = form.text("token") or f"ID:{uuid.uuid4()}"
    record = _record(form, config.section(TracingConfig), token)
    fields = {name: form.text(name) for name in (*FIELDS, "key")} | {"token": token}
    return {"record": record, "fields": fields, "publications": explained(record, config)["publications"]}


def _record(form: Form, tracing: TracingConfig, message_id: str) -> Record:
    fields = {
        "JMSMessageID": message_id,
        "JMSTimestamp": str(round(time.time() * 1000)),
        "JMSDeliveryMode": "PERSISTENT",
    }
    record = traced(message_in(form, fields).to_record(), tracing)
    key = form.text("key")
    return replace(record, key=key.encode("utf-8", "replace")) if key else record


def _sent(form: Form, view: View, sender: JournalSender, request: Request) -> Position:
    """Sends the message of a form, and returns its position; raises what `JournalSender.send` does."""
    token = form.text("token")
    if not token:
        msg = "this form lacks its token: open the page and try again"
        raise UsageError(msg)
    actor, config = forms.actor(request, "send"), view.config()
    record = _record(form, config.section(TracingConfig), token)
    with acting(view, request, "send", form.text("address")) as result:
        position = sender.send(DeadLetterStore.of(config), record, actor, token)
        result.text = str(position)
    _log.info("message sent from the status page", by=actor.user, host=actor.host, position=str(position))
    return position


def _copy(text: str, config: Config, sight: Sight) -> Form:
    """The form with a copy of the record at a position.

    Raises:
        UsageError: the form cannot hold its body.
        NotThereError: there is no such record.
    """
    position = Position.parse(text, config.journal.topic)
    _, record = unrouted_record(position, config, sight, LookWay.FORM)
    if record.header(CLAIM) or body_text(record.value or b"") is None:
        msg = (
            f"{position}: a form cannot hold the body of this message, since it is not text or is kept as a file; "
            "jms-bridge journal replay POSITION repeats a record of the journal as it is"
        )
        raise UsageError(msg)
    message = Message.from_record(record)
    found = form_of(message, _ANEW)
    # A key that follows from the ids of the message follows from those of its copy as well.
    key = None if record.key == message.to_record().key else as_text(record.key)
    return Form({**found.fields, "key": [key or ""]})
