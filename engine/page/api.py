"""The API: what the pages show, as JSON, behind the same login. `control` has the requests that change the bridge.

One table of endpoints makes the other routes, and the OpenAPI document at `/api/openapi.json`, to which `/api` leads.
An error is a JSON object with `error`, a sentence, and has the status 400 (wrong parameters), 404 (no such topic,
record or path) or 503 (Kafka or a topology does not answer, or too many searches run).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from engine.dead_letters.store import DeadLetterStore
from engine.errors import UsageError
from engine.find.browse import BrowsedTopic
from engine.kafka.reader import Position
from engine.looks.look import LookWay
from engine.page import api_schema as schema
from engine.page import asked, forms
from engine.page.actions import newest_actions
from engine.page.finding import question_of
from engine.page.letters import LettersAsked, look
from engine.page.looks import newest_looks
from engine.page.messages import browsed, journal_of, record_at, story, topic_states
from engine.page.render import HEADERS, VERSION
from engine.page.searches import LINES
from engine.page.sight import SeenRecord, Sight
from engine.page.topology_state import state_nodes, state_rows
from engine.printable import json_text
from engine.record_json import record_json
from engine.telemetry.control import CHANGES
from engine.telemetry.metrics import (
    FAILED,
    JOURNALED,
    LAG_RECORDS,
    LAG_SECONDS,
    LATENCY_AVERAGE,
    ROUTED,
    SOURCE_WAITING,
)
from engine.times import iso
from engine.topologies.section import TopologiesConfig
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request

    from engine.find.search import FoundRecord
    from engine.find.timeline import TimelineEvent
    from engine.kafka.reader import LocatedRecord
    from engine.page.searches import Searches
    from engine.page.threads import Threads
    from engine.page.view import View

__all__ = ["api"]

_JSON = "application/json"
_DOCUMENT = "/api/openapi.json"


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """A path of the API."""

    path: str
    summary: str
    answer: Mapping[str, Any]
    """JSON Schema of the answer, or of each of its lines."""
    handle: Callable[[Request], Awaitable[Response]]
    parameters: tuple[schema.Parameter, ...] = ()
    media: str = _JSON


def api(
    view: View, threads: Threads, stories: Threads, searches: Searches
) -> dict[str, Callable[[Request], Awaitable[Response]]]:
    """The handlers of the API by their paths."""
    endpoints = (
        _Endpoint(
            "/api/status", "State of the bridge: parts, rates, routes, dead letters", schema.STATUS, _status(view)
        ),
        _Endpoint(
            "/api/find",
            "Search in all topics of the bridge, the newest records first: a line for each record and each progress. "
            "The last line is a progress; if it is not `done`, `resume` continues the search",
            schema.FIND_LINE,
            _find(view, searches),
            schema.FIND,
            LINES,
        ),
        _Endpoint("/api/topics", "Topics of the bridge and their extent", schema.TOPICS, _topics(view, threads)),
        _Endpoint(
            "/api/topics/{topic}/records",
            "Newest records of a topic; `older` is `before` of the next page",
            schema.RECORDS,
            _records(view, threads),
            schema.BROWSE,
        ),
        _Endpoint(
            "/api/messages/{position}",
            "One record, and the timeline of its message",
            schema.MESSAGE,
            _message(view, threads, stories),
            (schema.POSITION,),
        ),
        _Endpoint(
            "/api/letters",
            "Newest dead letters, a page at a time",
            schema.LETTERS,
            _letters(view, threads),
            schema.OF_LETTERS,
        ),
        _Endpoint(
            "/api/looks",
            "Audit of looks at bodies, newest first",
            schema.LOOKS,
            _looks(view, threads),
            schema.OF_LOOKS,
        ),
        _Endpoint(
            "/api/audit", "Audit of actions, newest first", schema.ACTIONS, _actions(view, threads), schema.OF_ACTIONS
        ),
        _Endpoint(
            "/api/topologies/{topology}/state",
            "Nodes of a topology whose state can be asked",
            schema.STATE_NODES,
            _state_nodes(view),
            (schema.TOPOLOGY,),
        ),
        _Endpoint(
            "/api/topologies/{topology}/state/{node}",
            "Rows of the state of a node, a page at a time; `next` is `after` of the next page",
            schema.STATE_ROWS,
            _state_rows(view, threads),
            schema.OF_STATE,
        ),
    )
    document = schema.document(
        VERSION,
        {each.path: (each.summary, each.parameters, each.answer, each.media) for each in endpoints},
        CHANGES,
    )
    return {
        **{each.path: _guarded(_checked(each)) for each in endpoints},
        _DOCUMENT: _guarded(_constant(json_text(document, indent=1))),
        "/api": _to_document,
        "/api/{rest:path}": _guarded(_unknown),
    }


def _checked(endpoint: _Endpoint) -> Callable[[Request], Awaitable[Response]]:
    """The handler of an endpoint, which refuses parameters that it does not have: a slip must not widen a search."""
    names = [each.name for each in endpoint.parameters if each.place == "query"]

    async def checked(request: Request) -> Response:
        if unknown := [name for name in request.query_params if name not in names]:
            expected = f"expected {', '.join(names)}" if names else f"{endpoint.path} has none"
            msg = f"there is no parameter {unknown[0][:100]!r}: {expected}"
            raise UsageError(msg)
        return await endpoint.handle(request)

    return checked


def _guarded(handle: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """The handler, with errors as JSON."""

    async def guarded(request: Request) -> Response:
        try:
            return await handle(request)
        except BridgeError as error:
            return _answer({"error": str(error)}, asked.status_of(error))

    return guarded


def _answer(value: object, status: int = 200) -> Response:
    return Response(json_text(value) + "\n", status, HEADERS, _JSON)


async def _to_document(_: Request) -> Response:
    return RedirectResponse(_DOCUMENT, headers=HEADERS)


async def _unknown(request: Request) -> Response:
    msg = f"there is nothing at {request.url.path[:200]}; {_DOCUMENT} lists the paths"
    raise asked.NotThereError(msg)


def _constant(text: str) -> Callable[[Request], Awaitable[Response]]:
    async def constant(_: Request) -> Response:
        return Response(text + "\n", 200, HEADERS, _JSON)

    return constant


def _status(view: View) -> Callable[[Request], Awaitable[Response]]:
    def status() -> dict[str, object]:
        traffic, census, parts = view.samples.traffic, view.census(), view.parts()
        routed, rates, failed = (
            traffic.by(ROUTED, "route"),
            traffic.rates(ROUTED, "route"),
            traffic.by(FAILED, "route"),
        )
        config, at_systems = view.config(), traffic.by(SOURCE_WAITING, "source")
        return {
            "bridge": config.bridge_id,
            "version": VERSION,
            "leads": None if view.standing is None else view.standing.leads,
            "parts": [
                {
                    "name": part.name,
                    "host": part.host or None,
                    "state": part.state,
                    "detail": part.detail,
                    "restarts": part.restarts,
                }
                for part in parts
            ],
            "journaled_per_second": traffic.rate(JOURNALED),
            "routed_per_second": traffic.rate(ROUTED),
            "latency_seconds": traffic.total(LATENCY_AVERAGE),
            "waiting": traffic.total(LAG_RECORDS),
            "waiting_seconds": traffic.total(LAG_SECONDS),
            "failed": traffic.total(FAILED),
            "sources": [{"name": each.name, "waiting": at_systems.get(each.name)} for each in config.sources],
            "routes": [
                {
                    "name": route.name,
                    "routed": routed.get(route.name),
                    "routed_per_second": rates.get(route.name),
                    "failed": failed.get(route.name),
                    "paused": route.paused,
                }
                for route in config.routes
            ],
            "dead_letters": None
            if census is None
            else {
                "topic": census.topic,
                "reachable": census.reachable,
                "open": census.depth,
                "held": census.held,
                "reasons": dict(census.open) if census.open is not None else None,
                "quarantined": census.quarantined,
            },
        }

    async def handle(_: Request) -> Response:
        return _answer(await run_in_threadpool(status))

    return handle


def _find(view: View, searches: Searches) -> Callable[[Request], Awaitable[Response]]:
    def found(sight: Sight, record: FoundRecord) -> dict[str, object]:
        seen = sight.masked(record.located)
        sight.note(LookWay.API, [seen])
        return {"record": {"kind": record.kind, **_located(seen)}}

    async def handle(request: Request) -> Response:
        # Any page can have a browser ask, with its login: the answer stays hidden from it, but a search costs much.
        forms.check_site(request)
        sight = Sight(request, view)
        question = await run_in_threadpool(question_of, sight, request.query_params)
        return searches.begin(view.config(), question, lambda record: found(sight, record))

    return handle


def _topics(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    async def handle(_: Request) -> Response:
        config = view.config()
        states = await threads.ask(config.kafka_access.servers, lambda: topic_states(config))
        topics = [
            {
                **_topic(state.topic),
                "exists": state.spans is not None,
                "partitions": [
                    {
                        "partition": partition,
                        "first": span.first,
                        "next": span.next,
                        "first_time": _time(span.first_ms),
                        "last_time": _time(span.last_ms),
                    }
                    for partition, span in sorted((state.spans or {}).items())
                ],
            }
            for state in states
        ]
        return await run_in_threadpool(_answer, {"topics": topics})

    return handle


def _records(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        config, name = view.config(), request.path_params["topic"]
        sight = Sight(request, view)
        topic, found, seen = await threads.ask(
            config.kafka_access.servers, lambda: browsed(config, name, request.query_params, sight, LookWay.API)
        )
        records = [
            {**_located(each), "size": each.size, "cut": len(whole.located.record.value or b"") < whole.size}
            for whole, each in zip(found.records, seen, strict=True)
        ]
        answer = {
            **_topic(topic),
            "records": records,
            "looked_at": found.looked_at,
            "in_time": found.in_time,
            "older": asked.offsets_text(found.older) or None,
        }
        return await run_in_threadpool(_answer, answer)

    return handle


def _message(view: View, threads: Threads, stories: Threads) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        config = view.config()
        position = Position.parse(request.path_params["position"], config.journal.topic)
        sight = Sight(request, view)

        def read() -> tuple[BrowsedTopic, LocatedRecord, SeenRecord]:
            topic, located = record_at(config, position)
            return topic, located, sight.records(LookWay.API, [located])[0]

        topic, located, seen = await threads.ask(config.kafka_access.servers, read)
        events: tuple[TimelineEvent, ...] | None = None
        fault = None
        try:
            events = await run_in_threadpool(sight.events, await story(config, stories, position))
        except BridgeError as error:
            # The record is the greater part of the answer.
            fault = str(error)
        journal = journal_of(located)
        answer = {
            **_topic(topic),
            **_located(seen),
            "journal": None if journal is None else str(journal),
            "timeline": None if events is None else [_event(each) for each in events],
            "timeline_fault": fault,
        }
        return await run_in_threadpool(_answer, answer)

    return handle


def _letters(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        store, question = DeadLetterStore.of(view.config()), LettersAsked.of(request.query_params)
        sight = Sight(request, view)
        found = await threads.ask(store.kafka.servers, lambda: look(store, question, view.state_of_letter, sight))
        letters = [
            {
                "position": str(each.position),
                "time": _time(each.time_ms),
                "reason": each.reason,
                "route": each.route or None,
                "detail": each.detail,
                "size": each.bytes,
                "replays": each.replays,
                "state": state,
                "retry": _time(retry),
            }
            for each, state, retry in question.with_states(found, view.state_of_letter, store)
        ]
        answer = {
            "letters": letters,
            "looked_at": found.looked_at,
            "is_complete": found.is_complete,
            "next": question.number + 1 if question.has_more(found) else None,
        }
        return await run_in_threadpool(_answer, answer)

    return handle


def _looks(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        count = asked.number("count", request.query_params.get("count", ""), 200, 1000)
        user = request.query_params.get("user", "").strip()
        return _answer({"looks": [look.members() for look in await newest_looks(view, threads, count, user)]})

    return handle


def _actions(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        count = asked.number("count", request.query_params.get("count", ""), 200, 1000)
        return _answer({"actions": [each.members() for each in await newest_actions(request, view, threads, count)]})

    return handle


def _state_nodes(view: View) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        config, name = view.config(), request.path_params["topology"]
        topologies = config.section(TopologiesConfig)
        return _answer(await run_in_threadpool(state_nodes, topologies, config.embedded.data, name))

    return handle


def _state_rows(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        forms.check_site(request)
        return await run_in_threadpool(_answer, await state_rows(request, view, threads))

    return handle


def _topic(topic: BrowsedTopic) -> dict[str, object]:
    return {"topic": topic.name, "kind": topic.kind, "user": topic.user}


def _located(seen: SeenRecord) -> dict[str, object]:
    located = seen.located
    position = located.position
    return {
        "topic": position.topic,
        "partition": position.partition,
        "offset": position.offset,
        "time": _time(located.time_ms),
        **record_json(located.record),
        **({"body_hidden": seen.hidden} if seen.hidden else {}),
    }


def _event(event: TimelineEvent) -> dict[str, object]:
    return {
        "time": _time(event.at),
        "what": event.what,
        "detail": event.detail,
        "record": None if event.record is None else str(event.record),
        "link": event.link or None,
    }


def _time(milliseconds: int | None) -> str | None:
    return None if milliseconds is None or milliseconds < 0 else iso(milliseconds)
