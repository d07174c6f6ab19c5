"""The page on which the message of one dead letter is corrected before it is replayed, like `dlt replay --set`.

The dead letter itself stays as it is. A second page shows what differs, and only the button there replays the message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from engine.claims.claim import CLAIM
from engine.dead_letters.correction import Correction
from engine.dead_letters.letter import DeadLetter, original
from engine.dead_letters.replay import Options, ReplayOutcome, replay
from engine.dead_letters.store import DeadLetterStore
from engine.errors import UsageError
from engine.kafka.reader import KafkaTopicReader, Position
from engine.looks.look import LookWay
from engine.message import Message
from engine.page import forms
from engine.page.acting import acting
from engine.page.asked import status_of
from engine.page.body_text import body_text, text_body
from engine.page.letters import letter_position
from engine.page.render import as_text, rendered
from engine.page.sight import Sight
from engine.telemetry.amounts import size
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.dead_letters.audit import Actor
    from engine.dead_letters.bulk import BulkRun
    from engine.dead_letters.replay import Replayed
    from engine.message import Record
    from engine.page.forms import Form
    from engine.page.threads import Threads
    from engine.page.view import View

__all__ = ["CorrectedPart", "correct", "differences"]

_MOST_BODY = 1_000_000
"""Largest body in bytes that the form takes."""
_MOST_FORM = 4 * 1024 * 1024
"""Three bytes of a form for each byte of the body at worst, and the headers."""
_ANSWER_SECONDS = 2.0
_ASK_SECONDS = 2.5
_DO_SECONDS = 10.0
"""Less than a connection may take; see `engine.telemetry.http`."""
_AROUND = 80
_MOST_SHOWN = 4096
_FORM_BODY = "-"
"""Stands for the file of the body in the audit: the command reads `-` from its standard input."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CorrectedPart:
    """A part of a message that a correction changes."""

    name: str
    before: bytes | None
    """None if the message does not have it."""
    after: bytes | None


def correct(view: View, threads: Threads, bulk: BulkRun) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler: it shows the form, then what differs, and replays the message once that is confirmed."""

    async def page(request: Request) -> Response:
        store = DeadLetterStore.of(view.config())
        quarantine = request.query_params.get("quarantine") == "1"
        content: dict[str, Any] = {}
        fault, status = "", 200
        try:
            position = letter_position(request, store.source(quarantine=quarantine))
            content |= {"position": position}
            form = await forms.read(request, _MOST_FORM)
            forms.check(form, view.seal, request)
            is_confirmed = form.text("confirmed") == "yes"
            sight = Sight(request, view)
            if is_confirmed:
                bulk.check_free()

            def work() -> dict[str, Any]:
                with KafkaTopicReader(store.kafka, position.topic, _ANSWER_SECONDS) as reader:
                    letter = DeadLetter(reader.at(position.partition, position.offset))
                if not is_confirmed:
                    sight.only(LookWay.FORM, letter.located)
                if form.text("edit"):
                    return _shown(letter, store, form)
                change = partial(_corrected, letter, store, form, quarantine, partial(forms.actor, request))
                try:
                    if not is_confirmed:
                        return change()
                    with acting(view, request, "correct and replay", str(position)) as result:
                        done = change()
                        result.text = str(done["outcome"].outcome)
                    return done
                except UsageError as error:
                    return {**_shown(letter, store, form), "fault": str(error)}

            content |= await threads.ask(store.kafka.servers, work, _DO_SECONDS if is_confirmed else _ASK_SECONDS)
            if fault := content.pop("fault", ""):
                status = 400
        except BridgeError as error:
            fault, status = str(error), status_of(error)
        return await rendered(
            request, view, "correct.html", status=status, fault=fault, quarantine=quarantine, **content
        )

    return page


def _shown(letter: DeadLetter, store: DeadLetterStore, form: Form) -> dict[str, Any]:
    """Values of the form: the message as it is, or what was entered before."""
    record = original(letter, store.bridge_id)
    text, why_not = _editable(letter)
    known = {"set": "", "unset": "", "key": as_text(record.key) or "", "body": text or ""}
    return {
        "letter": letter,
        "step": "form",
        "fields": known | _entered(form),
        "has_text_key": record.key is None or as_text(record.key) is not None,
        "body_refusal": why_not,
        "body_type": Message.from_record(record).body_type,
        "headers": record.headers,
    }


def _editable(letter: DeadLetter) -> tuple[str | None, str]:
    """The body as the text of a form; else None, and why it cannot be changed here."""
    record = letter.located.record
    body = record.value or b""
    position = letter.position
    command = f"use jms-bridge dlt replay {position.partition}:{position.offset} --body-file FILE to give another one"
    if record.header(CLAIM):
        return None, f"the body is kept as a file, and cannot be changed here; {command}"
    if len(body) > _MOST_BODY:
        return None, f"the body has {size(len(body))}, which is too much to be changed here; {command}"
    if (text := body_text(body)) is None:
        return None, f"the body is not text that a form can hold, and cannot be changed here; {command}"
    return text, ""


def _corrected(
    letter: DeadLetter, store: DeadLetterStore, form: Form, quarantine: bool, actor_of: Callable[[str], Actor]
) -> dict[str, Any]:
    """Values of the page: the differences, and the outcome of the replay, or the expected one.

    Raises:
        UsageError: the correction cannot be made.
    """
    correction = _correction(form, letter)
    before = original(letter, store.bridge_id)
    found = tuple(differences(before, correction.apply(before)))
    if not found:
        msg = "nothing differs from the message as it is: go back and change something, or replay it as it is"
        raise UsageError(msg)
    is_confirmed = form.text("confirmed") == "yes"
    actor = actor_of(" ".join(["replay", *["from quarantine"] * quarantine, *correction.options(_FORM_BODY)]))
    options = Options(
        quarantine=quarantine,
        # From the quarantine, operators replay one by one what they have looked at.
        force=quarantine,
        correction=correction,
        actor=actor,
    )
    (outcome,) = replay(store, [letter.position], dry_run=not is_confirmed, options=options)
    if is_confirmed:
        _log.info("dead letter corrected and replayed", by=actor.user, host=actor.host, position=str(letter.position))
    return {
        "letter": letter,
        "step": "done" if is_confirmed else "confirm",
        "differences": found,
        "outcome": outcome,
        "is_possible": outcome.outcome is ReplayOutcome.WOULD_REPLAY,
        "copy": _copy(outcome),
        "fields": _entered(form),
    }


def _entered(form: Form) -> dict[str, str]:
    return {name: form.text(name) for name in ("set", "unset", "key", "body") if name in form.fields}


def _copy(outcome: Replayed) -> Position | None:
    """The position of the copy that the replay has written; None if there is none."""
    return Position.parse(outcome.detail, "") if outcome.outcome is ReplayOutcome.REPLAYED else None


def _correction(form: Form, letter: DeadLetter) -> Correction:
    """The correction that a form makes; UsageError names the line or field that is wrong."""
    record = letter.located.record
    given: dict[str, str] = {}
    for number, line in enumerate(form.text("set").splitlines(), start=1):
        name, equals, value = line.partition("=")
        if line.strip() and not (equals and name.strip()):
            msg = f"line {number} of the headers to set: {line[:100]!r}: expected NAME=VALUE"
            raise UsageError(msg)
        if line.strip():
            given[name.strip()] = value
    removed = tuple(line.strip() for line in form.text("unset").splitlines() if line.strip())
    key = form.text("key")
    body = None
    if "body" in form.fields:
        text, why_not = _editable(letter)
        if text is None:
            raise UsageError(why_not)
        body = text_body(form.text("body"), record.value or b"")
        if len(body) > _MOST_BODY:
            msg = (
                f"the body has {size(len(body))}; the form takes {size(_MOST_BODY)} at most: use jms-bridge dlt replay"
            )
            raise UsageError(msg)
    return Correction(
        given,
        removed,
        None if key in ("", as_text(record.key)) else key.encode("utf-8", "replace"),
        None if body == (record.value or b"") else body,
    )


def differences(before: Record, after: Record) -> Iterator[CorrectedPart]:
    """Yields the key, the headers and the part of the body in which two records differ."""
    if before.key != after.key:
        yield CorrectedPart("key", before.key, after.key)
    old, new = _by_name(before), _by_name(after)
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            yield CorrectedPart(name, *(found[name][-1] if name in found else None for found in (old, new)))
    if before.value != after.value:
        yield CorrectedPart("body", *_changed(before.value or b"", after.value or b""))


def _by_name(record: Record) -> dict[str, list[bytes | None]]:
    found: dict[str, list[bytes | None]] = {}
    for name, value in record.headers:
        found.setdefault(name, []).append(value)
    return found


def _changed(before: bytes, after: bytes) -> tuple[bytes, bytes]:
    """The parts of two texts that differ, each with some text around it."""
    old, new = before.decode("utf-8", "replace"), after.decode("utf-8", "replace")
    head = _same(old, new)
    tail = _same(old[head:][::-1], new[head:][::-1])

    def part(text: str) -> bytes:
        start, end = max(head - _AROUND, 0), min(len(text) - tail + _AROUND, len(text))
        shown = text[start:end]
        shown = shown[:_MOST_SHOWN] + " …" if len(shown) > _MOST_SHOWN else shown
        return ("… " * (start > 0) + shown + " …" * (end < len(text))).encode()

    return part(old), part(new)


def _same(old: str, new: str) -> int:
    """Number of characters with which both texts begin."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(old), len(new)))
