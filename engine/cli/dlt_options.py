"""Options by which dead letters are chosen, the same for every command that takes them, and how they are read."""

from __future__ import annotations

import signal
import time
from contextlib import contextmanager
from dataclasses import replace
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated

import typer

from engine.errors import UsageError
from routes.errors import PredicateError
from routes.keys.values import BadValueError, duration
from routes.predicate import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.dead_letters.filters import Filters

__all__ = [
    "HeaderValues",
    "Most",
    "Quarantine",
    "Reasons",
    "Routes",
    "Since",
    "Until",
    "Where",
    "interruptible",
    "read_filters",
    "read_moment",
]

Reasons = Annotated[
    list[str],
    typer.Option(
        "--reason", metavar="REASON", help="Only those with this reason, as key-not-found. Repeatable: any of them."
    ),
]
Routes = Annotated[
    list[str],
    typer.Option(
        "--route", metavar="NAME", help="Only those that failed in this route, - for none. Repeatable: any of them."
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        help="Only those that failed then or later: 2026-11-22T06:00:00Z (UTC if it names no zone), or how long ago, "
        "as 2h.",
    ),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Only those that failed before then; as --since.")
]
HeaderValues = Annotated[
    list[str],
    typer.Option(
        "--header",
        "-H",
        metavar="NAME=VALUE",
        help="Only those whose message has this value: of a JMS field (JMSType), a property, or a Kafka header. "
        "Repeatable: any of the values of one name, and all names.",
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        "--where", metavar="PREDICATE", help="Only those whose message fulfils a predicate of the routing language."
    ),
]
Quarantine = Annotated[
    bool, typer.Option("--quarantine", help="Those in quarantine: replayed too often (routing.max-replays).")
]
Most = Annotated[int | None, typer.Option("--max", min=1, metavar="NUMBER", help="Stop after so many.")]

_AGO = duration("1ms", "36500d")


def read_filters(
    reasons: Iterable[str],
    routes: Iterable[str],
    since: str | None,
    until: str | None,
    headers: Iterable[str],
    where: str | None,
) -> Filters:
    """The filters that the options make; UsageError says which one makes none."""
    from engine.dead_letters.filters import Filters

    now_ms = round(time.time() * 1000)
    values: dict[str, frozenset[str]] = {}
    for pair in headers:
        name, found, value = pair.partition("=")
        if not name or not found:
            msg = f"--header {pair!r}: expected NAME=VALUE"
            raise UsageError(msg)
        values[name] = values.get(name, frozenset()) | {value}
    try:
        predicate = None if where is None else parse(where)
    except PredicateError as error:
        raise UsageError(str(replace(error.fault, file="--where"))) from error
    return Filters(
        frozenset(reasons),
        frozenset(routes),
        None if since is None else read_moment("--since", since, now_ms),
        None if until is None else read_moment("--until", until, now_ms),
        values,
        predicate,
    )


def read_moment(option: str, text: str, now_ms: int) -> int:
    """A time, or how long ago it was, in milliseconds since 1970."""
    from engine.dead_letters.letter import milliseconds

    moment = milliseconds(text)
    if moment is not None:
        return moment
    try:
        return now_ms - round(float(_AGO.parse(text)) * 1000)
    except BadValueError as error:
        msg = f"{option} {text!r}: expected a time, as 2026-11-22T06:00:00Z, or how long ago, as 30s, 5m, 2h or 7d"
        raise UsageError(msg) from error


@contextmanager
def interruptible() -> Iterator[Event]:
    """An event that the first Ctrl-C sets, so that what is under way can be completed; the second ends at once."""
    stop = Event()

    def handle(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        # An event must not be set in the handler: the main thread it interrupts may hold the event's lock.
        Thread(target=stop.set, daemon=True).start()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
