"""The pages of messages: the bridge's topics, the newest records of one, and one record with its body and timeline.

Only the topics of the bridge are shown, whatever the URL names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from engine.claims.claim import CLAIM
from engine.errors import UsageError
from engine.find.browse import Browsed, BrowsedTopic, RecordFilter, browse, browsed_topics
from engine.find.question import TopicKind
from engine.find.timeline import timeline
from engine.kafka.clients import KafkaClients
from engine.kafka.offsets import KafkaOffsets, PartitionSpan
from engine.kafka.reader import KafkaTopicReader, LocatedRecord, Position
from engine.looks.look import LookWay
from engine.message import POSITION, SOURCE, Message
from engine.page import asked
from engine.page.asked import NotThereError
from engine.page.body_view import ShownBody, shown_body
from engine.page.render import HEADERS, rendered
from engine.page.sight import SeenRecord, Sight
from engine.printable import LONGEST_REASON, shortened
from engine.schemas.documents import documents_of
from engine.trace_context import trace_id
from engine.tracing_section import TracingConfig
from routes.errors import BridgeError
from routes.predicate.bodies import UnreadableBodyError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from starlette.datastructures import QueryParams
    from starlette.requests import Request

    from engine.find.timeline import Timeline, TimelineEvent
    from engine.page.threads import Threads
    from engine.page.view import View
    from routes.model import Config
    from routes.predicate.bodies import DocumentReader

__all__ = [
    "TopicState",
    "body",
    "browsed",
    "journal_of",
    "known_topic",
    "message",
    "messages",
    "record_at",
    "records",
    "story",
    "timeline_page",
    "topic_states",
]

_ON_A_PAGE = 50
_MOST_TRAIL = 20
_MOST_COPIES = 20
"""Number of the copies of one message that a link looks for."""
_ANSWER_SECONDS = 2.0
_STORY_SECONDS = 10.0
"""Less than a connection may take; see `engine.telemetry.http`."""
_REGISTRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic of the bridge and its extent."""

    topic: BrowsedTopic
    spans: dict[int, PartitionSpan] | None
    """By partition; None if the topic does not exist yet."""

    @property
    def count(self) -> int:
        """Number of offsets in use: at most as many records as that."""
        return sum(span.next - span.first for span in (self.spans or {}).values())

    @property
    def first_ms(self) -> int | None:
        """Time of the first record, in milliseconds since 1970; None if there is none."""
        return min((span.first_ms for span in (self.spans or {}).values() if span.first_ms is not None), default=None)

    @property
    def last_ms(self) -> int | None:
        """Latest time of a record, in milliseconds since 1970; None if there is none."""
        return max((span.last_ms for span in (self.spans or {}).values() if span.last_ms is not None), default=None)


def topic_states(config: Config) -> list[TopicState]:
    """Asks Kafka for the extent of each topic; raises what `KafkaOffsets` does."""
    topics = browsed_topics(config, _ANSWER_SECONDS)
    spans = KafkaOffsets(KafkaClients(config.kafka_access)).spans(topic.name for topic in topics)
    return [TopicState(topic, spans.get(topic.name)) for topic in topics]


def known_topic(topics: Iterable[BrowsedTopic], name: str) -> BrowsedTopic:
    """The topic of a name among those of the bridge; NotThereError if it is not one of them."""
    for topic in topics:
        if topic.name == name:
            return topic
    msg = f"'{shortened(name, LONGEST_REASON)}' is not a topic of this bridge; /messages lists its topics"
    raise NotThereError(msg)


def browsed(
    config: Config, name: str, query: QueryParams, sight: Sight, way: LookWay
) -> tuple[BrowsedTopic, Browsed, list[SeenRecord]]:
    """The newest records of a topic for the parameters `where`, `since`, `until`, `before` and `count`."""
    takes = RecordFilter(
        asked.moment("since", query.get("since", "").strip()),
        asked.moment("until", query.get("until", "").strip()),
        asked.predicate(query.get("where", "").strip()),
        config.routing.bounds,
        documents_of(config, _REGISTRY_SECONDS),
    )
    sight.check(takes.where)
    count = asked.number("count", query.get("count", ""), _ON_A_PAGE, 200)
    before = asked.offsets("before", query.get("before", ""))
    topic = known_topic(browsed_topics(config, _ANSWER_SECONDS), name)
    try:
        found = browse(KafkaClients(config.kafka_access), name, takes, count, _ANSWER_SECONDS, before)
    except UsageError as error:
        raise NotThereError(str(error)) from error
    return topic, found, sight.cut_records(way, ((each.located, each.size) for each in found.records))


def record_at(config: Config, position: Position) -> tuple[BrowsedTopic, LocatedRecord]:
    """The record at a position; NotThereError if it is not there, or its topic is not one of the bridge."""
    topic = known_topic(browsed_topics(config, _ANSWER_SECONDS), position.topic)
    try:
        with KafkaTopicReader(KafkaClients(config.kafka_access), position.topic, _ANSWER_SECONDS) as reader:
            return topic, reader.at(position.partition, position.offset)
    except UsageError as error:
        raise NotThereError(str(error)) from error


async def story(config: Config, threads: Threads, position: Position) -> Timeline:
    """The timeline of the message at a position.

    Raises:
        NotThereError: the topic is not one of the bridge.
        UnreachableError: it takes too long, or other timelines are being made.
    """

    def work() -> Timeline:
        known_topic(browsed_topics(config, _ANSWER_SECONDS), position.topic)
        return timeline(config, position)

    busy = "timelines of other messages are being made at this moment; try again"
    late = f"the timeline took longer than {_STORY_SECONDS:g} s; try again, or use jms-bridge message"
    return await threads.run(work, _STORY_SECONDS, busy, late)


def journal_of(located: LocatedRecord) -> Position | None:
    """The journal position that a published record or a dead letter names; None if it names none."""
    # The last header is of the last bridge.
    text = next((value for name, value in reversed(located.record.headers) if name == POSITION), None) or b""
    topic, _, rest = text.decode("utf-8", "replace").partition(":")
    # Behind the position may be the number of a further copy.
    try:
        return Position.parse(":".join(rest.split(":")[:2]), topic) if topic else None
    except UsageError:
        return None


def messages(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the list of topics."""

    async def page(request: Request) -> Response:
        config = view.config()
        states: list[TopicState] = []
        fault, status = "", 200
        try:
            states = await threads.ask(config.kafka_access.servers, lambda: topic_states(config))
        except BridgeError as error:
            fault, status = str(error), asked.status_of(error)
        return await rendered(request, view, "messages.html", status=status, fault=fault, states=states)

    return page


def records(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the records of one topic; filters and place are in the URL."""

    async def page(request: Request) -> Response:
        config, query, name = view.config(), request.query_params, request.path_params["topic"]
        topic: BrowsedTopic | None = None
        found: Browsed | None = None
        seen: list[SeenRecord] = []
        fault, status = "", 200
        try:
            sight = Sight(request, view)
            topic, found, seen = await threads.ask(
                config.kafka_access.servers, lambda: browsed(config, name, query, sight, LookWay.LIST)
            )
        except BridgeError as error:
            fault, status = str(error), asked.status_of(error)
        place = _Place(name, query)
        return await rendered(
            request,
            view,
            "records.html",
            status=status,
            fault=fault,
            name=name,
            topic=topic,
            found=found,
            seen=seen,
            place=place,
            older=place.older(found) if found else "",
        )

    return page


class _Place:
    """Filters and place of a page of records, as they are in its URL."""

    def __init__(self, topic: str, query: QueryParams) -> None:
        self.where, self.since, self.until = (query.get(name, "").strip() for name in ("where", "since", "until"))
        self.is_live = query.get("live") == "1"
        self.before = query.get("before", "")
        self._path = f"/messages/{topic}"
        self._trail = query.getlist("trail")[-_MOST_TRAIL:]

    @property
    def filters(self) -> dict[str, str]:
        """The filters that are set."""
        return {name: text for name in ("where", "since", "until") if (text := getattr(self, name))}

    @property
    def newest(self) -> str:
        """The URL of the newest records with the same filters."""
        return self._url()

    @property
    def live(self) -> str:
        """The URL of the newest records, shown again and again."""
        return self._url(live="1")

    @property
    def newer(self) -> str:
        """The URL of the page that led here; empty on the first one."""
        if not self.before:
            return ""
        *trail, last = self._trail or [""]
        return self._url(before=last, trail=trail)

    def older(self, found: Browsed) -> str:
        """The URL of the records before those that were found; empty if there are none."""
        if not found.older:
            return ""
        trail = [*self._trail, self.before] if self.before else []
        return self._url(before=asked.offsets_text(found.older), trail=trail[-_MOST_TRAIL:])

    def _url(self, **more: str | list[str]) -> str:
        fields = {**self.filters, **{name: value for name, value in more.items() if value}}
        return self._path + ("?" + urlencode(fields, doseq=True) if fields else "")


def message(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the page of one record."""

    async def page(request: Request) -> Response:
        config, position = view.config(), None
        content: dict[str, Any] = {}
        fault, status = "", 200
        try:
            position = position_in(request)
            form = request.query_params.get("as", "")
            sight = Sight(request, view)
            content = await threads.ask(
                config.kafka_access.servers, lambda: _content(config, position_in(request), form, sight)
            )
        except BridgeError as error:
            fault, status = str(error), asked.status_of(error)
        return await rendered(request, view, "message.html", status=status, fault=fault, position=position, **content)

    return page


def _content(config: Config, position: Position, form: str, sight: Sight) -> dict[str, Any]:
    """Values for the template of a record; raises as `record_at`."""
    topic, located = record_at(config, position)
    documents = documents_of(config, _REGISTRY_SECONDS)
    (seen,) = sight.records(LookWay.RECORD, [located])
    record = seen.located.record
    message = Message.from_record(located.record)
    is_journal = topic.kind is TopicKind.JOURNAL
    journal = None if is_journal else journal_of(located)
    trace = trace_id(record.headers)
    return {
        "topic": topic,
        "seen": seen,
        "tries": not sight.is_masked,
        "body": shown_body(record.value or b"", form),
        "body_type": message.body_type,
        "document": _document(documents, located, message, sight, is_noted=not seen.hidden),
        "headers": [(shortened(name, LONGEST_REASON), value) for name, value in record.headers],
        "source": record.header(SOURCE),
        "claim": record.header(CLAIM),
        "journal": journal,
        "trace": trace,
        "trace_link": config.section(TracingConfig).link_to(trace),
        "letter": _letter_link(config.letter_topics, position),
        "published": _published_link(len(config.publications), position if is_journal else journal),
    }


def _letter_link(letter_topics: tuple[str, str, str], position: Position) -> str:
    """The URL of the page of a dead letter; empty for other records."""
    topic, _, quarantine = letter_topics
    if position.topic not in (topic, quarantine):
        return ""
    return f"/dead-letters/letter/{position.partition}/{position.offset}" + (
        "?quarantine=1" if position.topic == quarantine else ""
    )


def _published_link(most_copies: int, journal: Position | None) -> str:
    """The URL of a search for the records made of a journal record, `most_copies` at most; empty without a record."""
    if journal is None:
        return ""
    copies = (f":{number}" for number in range(1, min(most_copies, _MOST_COPIES)))
    kinds = [str(kind) for kind in TopicKind if kind is not TopicKind.JOURNAL]
    headers = [f"{POSITION}={journal}{copy}" for copy in ("", *copies)]
    return "/find?" + urlencode({"header": headers, "kind": kinds}, doseq=True)


def _document(
    documents: DocumentReader | None, located: LocatedRecord, message: Message, sight: Sight, *, is_noted: bool
) -> tuple[str, ShownBody] | None:
    """Content of a body with a schema, with the name of its format; None for others, and if it cannot be shown."""
    if documents is None or not documents.has_schema(message.body, message.origin):
        return None
    try:
        found = documents.document(message.body, message.origin)
        content = sight.document(found.content)
        if content is not None and not is_noted:
            sight.note(LookWay.RECORD, [SeenRecord(located, len(message.body))])
    except (BridgeError, UnreadableBodyError):
        return None
    return None if content is None else (found.format, shown_body(content))


def timeline_page(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the page with the timeline of one message, which the page of its record loads."""

    async def page(request: Request) -> Response:
        config, position = view.config(), None
        events: list[tuple[Any, ...]] = []
        fault, status = "", 200
        try:
            position = position_in(request)
            told = await story(config, threads, position)
            events = list(_events(await run_in_threadpool(Sight(request, view).events, told)))
        except BridgeError as error:
            fault, status = str(error), asked.status_of(error)
        return await rendered(
            request, view, "timeline.html", status=status, fault=fault, position=position, events=events
        )

    return page


def _events(events: Iterable[TimelineEvent]) -> Iterator[tuple[Any, ...]]:
    """Time, seconds after the last event with a time, phrase, details, record and link of each event."""
    last: int | None = None
    for each in events:
        after = None if each.at is None or last is None else (each.at - last) / 1000
        yield each.at, after, each.what, each.detail, each.record, each.link
        last = last if each.at is None else each.at


def body(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler that gives the body of a record as a file, of a type that no browser opens."""

    async def file(request: Request) -> Response:
        config = view.config()
        try:
            position = position_in(request)
            sight = Sight(request, view)
            content, suffix = await threads.ask(config.kafka_access.servers, lambda: _file(config, position, sight))
        except BridgeError as error:
            return Response(f"{error}\n", asked.status_of(error), HEADERS, "text/plain")
        name = f"{position.topic}-{position.partition}-{position.offset}.{suffix}"
        disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(content, 200, HEADERS | disposition, "application/octet-stream")

    return file


def _file(config: Config, position: Position, sight: Sight) -> tuple[bytes, str]:
    """The body of a record, and the end of the name of a file with it; raises as `record_at` and `Sight.only`."""
    content = sight.only(LookWay.FILE, record_at(config, position)[1]).record.value or b""
    return content, shown_body(content).form.suffix


def position_in(request: Request) -> Position:
    """The position in the path of a request; NotThereError if it is not one."""
    try:
        return Position.parse("{partition}:{offset}".format(**request.path_params), request.path_params["topic"])
    except UsageError as error:
        raise NotThereError(str(error)) from error
