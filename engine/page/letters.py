"""The pages of dead letters: the list with its filters, one letter, the audit, and replaying or discarding chosen ones.

Replay and discard go through `engine.dead_letters.replay`, as on the command line: each dead letter is settled once,
with an entry in the audit that names the login used here. The page first shows the planned changes, then, once
confirmed, the result.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import structlog

from engine.dead_letters.audit import last, settled
from engine.dead_letters.letter import DeadLetter, Filters
from engine.dead_letters.replay import Options, ReplayOutcome, discard, replay, retry_due, retry_ms
from engine.dead_letters.search import Found, search
from engine.dead_letters.state import LetterState
from engine.dead_letters.store import DeadLetterStore
from engine.errors import UsageError
from engine.kafka.reader import KafkaTopicReader, Position
from engine.kafka.topics import exists, identity
from engine.looks.look import LookWay
from engine.message import Message
from engine.page import forms
from engine.page.acting import acting
from engine.page.asked import moment, predicate, status_of
from engine.page.messages import journal_of
from engine.page.render import rendered
from engine.page.sight import SeenRecord, Sight
from engine.printable import LONGEST_REASON, shortened
from engine.telemetry.metrics import DEAD_LETTER_REASONS, NO_ROUTE
from engine.times import milliseconds
from engine.trace_context import trace_id
from engine.tracing_section import TracingConfig
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.dead_letters.audit import Actor, AuditEntry
    from engine.dead_letters.bulk import BulkRun
    from engine.dead_letters.replay import Replayed
    from engine.dead_letters.search import Summary
    from engine.kafka.reader import LocatedRecord
    from engine.page.forms import Form
    from engine.page.threads import Threads
    from engine.page.view import View

    StateOf = Callable[[Position], LetterState | None]

__all__ = ["LettersAsked", "audit", "letter", "letter_position", "letters", "look", "settle"]

_ON_A_PAGE = 50
_MOST_PAGES = 20
_AUDIT_LINES = 200
_ANSWER_SECONDS = 2.0
_FILTERS = ("reason", "route", "since", "until", "where", "state")
_ACTIONS = {"replay": replay, "discard": discard}
_MOST = 200
"""Largest number of dead letters in one request: as many as one transaction takes, if they are small. More are settled
in the background, see `engine.page.bulk`."""
_ASK_SECONDS = 2.5
_DO_SECONDS = 10.0
"""Less than a connection may take; see `engine.telemetry.http`."""
_WOULD = (ReplayOutcome.WOULD_REPLAY, ReplayOutcome.WOULD_QUARANTINE, ReplayOutcome.WOULD_DISCARD)


def letters(view: View, threads: Threads, bulk: BulkRun) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the list; its filters are in the URL, so that it can be kept and shared."""

    async def page(request: Request) -> Response:
        config, asked = view.config(), LettersAsked.of(request.query_params)
        store = DeadLetterStore.of(config)
        result: Found | None = None
        fault, status = "", 200
        try:
            sight = Sight(request, view)
            result = await threads.ask(store.kafka.servers, lambda: look(store, asked, view.state_of_letter, sight))
        except BridgeError as error:
            fault, status = str(error), status_of(error)
        return await rendered(
            request,
            view,
            "letters.html",
            status=status,
            fault=fault,
            asked=asked,
            found=result,
            letters=asked.with_states(result, view.state_of_letter, store) if result else (),
            states=list(LetterState),
            reasons=DEAD_LETTER_REASONS,
            routes=[*(route.name for route in config.routes), NO_ROUTE],
            census=view.census(),
            bulk=bulk.report,
            matching=asked.open_of(result, view.state_of_letter) if result else None,
            newer=asked.address(asked.number - 1) if asked.number > 1 else "",
            older=asked.address(asked.number + 1) if result and asked.has_more(result) else "",
        )

    return page


def letter(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the page of one dead letter: headers, body, and whether it was replayed or discarded."""

    async def page(request: Request) -> Response:
        config = view.config()
        store = DeadLetterStore.of(config)
        quarantine = request.query_params.get("quarantine") == "1"
        content: dict[str, Any] = {}
        fault, status = "", 200
        sight = Sight(request, view)
        try:
            topic = store.source(quarantine=quarantine)
            position = letter_position(request, topic)

            def read() -> tuple[DeadLetter, AuditEntry | None, SeenRecord]:
                with KafkaTopicReader(store.kafka, topic, _ANSWER_SECONDS) as reader:
                    dead_letter = DeadLetter(reader.at(position.partition, position.offset))
                    bounds = reader.bounds()
                known = identity(store.kafka, topic, _ANSWER_SECONDS)
                entry = settled(store, topic, known, bounds, (position,)).get(position)
                is_settled = entry is not None and entry.settles(has_seal=dead_letter.has_seal)
                (seen,) = sight.records(LookWay.LETTER, [dead_letter.located])
                return dead_letter, entry if is_settled else None, seen

            dead_letter, entry, seen = await threads.ask(store.kafka.servers, read)
            record = seen.located.record
            trace = trace_id(record.headers)
            content = {
                "trace": trace,
                "trace_link": config.section(TracingConfig).link_to(trace),
                "letter": DeadLetter(seen.located),
                "entry": entry,
                "shows_command": not sight.is_masked,
                "body": record.value,
                "seen": seen,
                "body_type": Message.from_record(dead_letter.located.record).body_type,
                "journal": journal_of(dead_letter.located),
                "copy": _copy(entry),
                "retry": retry_due(dead_letter, store.retries),
                "headers": [(shortened(name, LONGEST_REASON), value) for name, value in record.headers],
            }
        except UsageError as error:
            fault, status = str(error), 404
        except BridgeError as error:
            fault, status = str(error), status_of(error)
        return await rendered(
            request, view, "letter.html", status=status, fault=fault, quarantine=quarantine, **content
        )

    return page


def letter_position(request: Request, topic: str) -> Position:
    """The position in the path of a request; UsageError if it is not one."""
    return Position.parse("{partition}:{offset}".format(**request.path_params), topic)


def _copy(entry: AuditEntry | None) -> Position | None:
    """The position of the copy that a replay has written; None if there is none."""
    try:
        found = None if entry is None else Position.parse(entry.copy, "")
    except UsageError:
        return None
    return found if found and found.topic else None


def audit(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the audit page: what users have done, the newest first, with the entry of `letter`."""

    async def page(request: Request) -> Response:
        store, wanted = DeadLetterStore.of(view.config()), request.query_params.get("letter", "")
        entries: list[AuditEntry] = []
        fault, status = "", 200
        try:
            position = Position.parse(wanted, store.topic) if wanted else None
            entries = await threads.ask(store.kafka.servers, lambda: last(store, _AUDIT_LINES, position)[::-1])
        except BridgeError as error:
            fault, status = str(error), status_of(error)
        firsts = {each.position: each for each in reversed(entries)}
        # Only the last of several entries of one letter is named by an address.
        rows = [(each, _copy(each), firsts[each.position] is each) for each in entries]
        return await rendered(
            request,
            view,
            "audit.html",
            status=status,
            fault=fault,
            rows=rows,
            milliseconds=milliseconds,
            shows_command=not Sight(request, view).is_masked,
        )

    return page


def look(store: DeadLetterStore, asked: LettersAsked, state_of: StateOf, sight: Sight) -> Found:
    """Searches Kafka for the letters of a page and those before it; raises what `search` and `Sight.check` do.

    Letters whose state `state_of` does not know pass no filter of states.
    """
    topic = store.source(quarantine=asked.quarantine)
    # The quarantine topic is created with its first message.
    if asked.quarantine and not exists(store.kafka, topic, _ANSWER_SECONDS):
        return Found((), 0, is_complete=True)
    filters = asked.filters(store)
    sight.check(filters.where)

    def is_wanted(position: Position) -> bool:
        return not asked.state or state_of(position) == asked.state

    def shown(located: LocatedRecord) -> LocatedRecord:
        return sight.masked(located).located

    return search(store.kafka, topic, filters, asked.number * _ON_A_PAGE + 1, _ANSWER_SECONDS, is_wanted, shown=shown)


@dataclass(frozen=True, slots=True)
class LettersAsked:
    """Query of the list of dead letters, as it stands in the URL."""

    reason: str = ""
    route: str = ""
    since: str = ""
    until: str = ""
    where: str = ""
    state: str = ""
    """A `LetterState`, or empty for any."""
    quarantine: bool = False
    number: int = 1
    """Number of the page, from 1."""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> LettersAsked:
        """Reads the query in a URL; a page number that cannot be read is 1."""
        number = query.get("page", "1")
        return cls(
            **{name: query.get(name, "").strip() for name in _FILTERS},
            quarantine=query.get("quarantine") == "1",
            number=min(max(int(number), 1), _MOST_PAGES) if number.isdecimal() and len(number) < 4 else 1,
        )

    def filters(self, store: DeadLetterStore) -> Filters:
        """The query as filters for a search in a store; UsageError names the one that is invalid."""
        if self.state and self.state not in LetterState.__members__.values():
            msg = f"state: {self.state!r} is not a state of a dead letter; expected one of {', '.join(LetterState)}"
            raise UsageError(msg)
        return Filters(
            frozenset({self.reason} if self.reason else ()),
            frozenset({self.route} if self.route else ()),
            moment("from", self.since),
            moment("until", self.until),
            where=predicate(self.where),
            bounds=store.bounds,
            documents=store.documents,
        )

    @property
    def selection(self) -> dict[str, str]:
        """The fields that are set, but for the state."""
        fields = {name: getattr(self, name) for name in _FILTERS if name != "state"} | {
            "quarantine": "1" if self.quarantine else ""
        }
        return {name: text for name, text in fields.items() if text}

    @property
    def given(self) -> bool:
        """True if any filter is set."""
        return any(getattr(self, name) for name in _FILTERS)

    def page_of(self, found: Found) -> tuple[Summary, ...]:
        """The letters of this page of the list."""
        return found.letters[(self.number - 1) * _ON_A_PAGE : self.number * _ON_A_PAGE]

    def with_states(
        self, found: Found, state_of: StateOf, store: DeadLetterStore
    ) -> list[tuple[Summary, LetterState | None, int | None]]:
        """The letters of this page, each with its state and the time of its next retry, in milliseconds since 1970."""
        listed = [(each, state_of(each.position)) for each in self.page_of(found)]
        # The bridge retries none that is in quarantine.
        retries = () if self.quarantine else store.retries
        return [(each, state, retry_ms(each, retries) if state is LetterState.OPEN else None) for each, state in listed]

    @property
    def takes_open(self) -> bool:
        """True if open letters are among those that the query takes."""
        return self.state in ("", LetterState.OPEN)

    def open_of(self, found: Found, state_of: StateOf) -> int | None:
        """Number of open letters among all that match; None if the search has not read all."""
        if not found.is_complete:
            return None
        return sum(state_of(each.position) is LetterState.OPEN for each in found.letters)

    def has_more(self, found: Found) -> bool:
        """True if there is a page behind this one."""
        return self.number < _MOST_PAGES and len(found.letters) > self.number * _ON_A_PAGE

    def address(self, number: int) -> str:
        """The URL of another page of the same list."""
        state = {"state": self.state} if self.state else {}
        return "/dead-letters?" + urlencode({**self.selection, **state, "page": number})


_log = structlog.get_logger(__name__)


def settle(view: View, threads: Threads, bulk: BulkRun) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the page, which asks for confirmation or carries out the confirmed action."""

    async def page(request: Request) -> Response:
        store = DeadLetterStore.of(view.config())
        content: dict[str, Any] = {"choice": None, "outcomes": (), "confirmed": False}
        status, fault = 200, ""
        try:
            form = await forms.read(request)
            forms.check(form, view.seal, request)
            choice = _Choice.of(form, store)
            confirmed = form.text("confirmed") == "yes"
            content |= {"choice": choice, "confirmed": confirmed}
            actor = forms.actor(request, choice.action + (" from quarantine" if choice.quarantine else ""))
            if confirmed:
                bulk.check_free()

            def work(choice: _Choice = choice) -> list[Replayed]:
                if not confirmed:
                    return choice.settle(store, actor, dry_run=True)
                with acting(view, request, choice.action, ", ".join(map(str, choice.positions))) as result:
                    done = choice.settle(store, actor, dry_run=False)
                    counts = Counter(str(each.outcome) for each in done)
                    result.text = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
                return done

            outcomes = await threads.ask(
                store.kafka.servers,
                work,
                _DO_SECONDS if confirmed else _ASK_SECONDS,
            )
            content |= {"outcomes": outcomes, "open": sum(each.outcome in _WOULD for each in outcomes)}
        except forms.ForeignRequestError as error:
            status, fault = 403, str(error)
        except UsageError as error:
            status, fault = 400, str(error)
        except BridgeError as error:
            status, fault = 503, str(error)
        return await rendered(request, view, "settle.html", status=status, fault=fault, **content)

    return page


@dataclass(frozen=True, slots=True)
class _Choice:
    """An action, and the dead letters it is wanted for."""

    action: str
    positions: tuple[Position, ...]
    quarantine: bool

    @classmethod
    def of(cls, form: Form, store: DeadLetterStore) -> _Choice:
        """Reads the choice from a form; UsageError if it chooses nothing, too much, or no known action."""
        action, quarantine = form.text("action"), form.text("quarantine") == "1"
        if action not in _ACTIONS:
            msg = f"there is no action {action!r}; expected one of {', '.join(_ACTIONS)}"
            raise UsageError(msg)
        topic = store.source(quarantine=quarantine)
        positions = tuple(dict.fromkeys(Position.parse(text, topic) for text in form.all("position")))
        if not positions:
            msg = "no dead letter is selected; go back and select some"
            raise UsageError(msg)
        if len(positions) > _MOST:
            msg = f"{len(positions)} dead letters are too many at once; choose {_MOST} at most, or use jms-bridge dlt"
            raise UsageError(msg)
        return cls(action, positions, quarantine)

    def settle(self, store: DeadLetterStore, actor: Actor, *, dry_run: bool) -> list[Replayed]:
        """Settles the chosen dead letters and returns the outcome of each; a dry run only tells the outcomes."""
        # From the quarantine, operators replay one by one what they have looked at: that is what `--force` is for.
        options = Options(quarantine=self.quarantine, force=self.quarantine and self.action == "replay", actor=actor)
        done = list(_ACTIONS[self.action](store, self.positions, dry_run=dry_run, options=options))
        if not dry_run:
            _log.info(f"dead letters: {self.action}", by=actor.user, host=actor.host, count=len(done))
        return done
