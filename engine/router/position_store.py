"""Notes about the router's progress in Kafka, for a router on another machine or one whose checkpoint is not here.

The bridge's state topic holds two kinds of records for each router, and compaction keeps the last of each: the start of
its newest generation, and the progress of that generation, a few seconds old or from its stop. The notes are older than
the checkpoint but suffice: `engine.router.recovery` finds in the outputs what was published since.

    key "bridge-1 jms-bridge.journal start"   {"run": "…", "host": "…", "path": "…", "positions": {…}, "routes": "…", …}
    key "bridge-1 jms-bridge.journal place"   {"run": "…", "committed": {"positions": {…}, "time_ms": …}, "stopped": …}

The starts of the last generations are kept too, without the ends of outputs, under keys "… kept 0" to "… kept 31" in
turn, for those who ask by which routes an earlier record was routed (`starts`).

Kafka limits the size of a record, and thousands of partitions, topics and routes make a large note. Such a note is cut
into parts with keys "… start", "… start 1", "… start 2" and so on; the first part has their number as a header.

All records are written in transactions with one transactional id, so that a router that opens the store ends the
writing of every router that opened it before.

Others may write to the topic too, so a note has a seal (`engine.seals`) as its last field. Which notes count is decided
in `engine.router.last_progress`.
"""

from __future__ import annotations

import json
import re
import socket
import time
from collections import deque
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from engine.errors import ClientEndedError, HardFailureError, UsageError
from engine.kafka.errors import MISSING, is_fatal, refusal, unavailable
from engine.kafka.reader import KafkaTopicReader
from engine.kafka.transactions import fatal_error_first
from engine.kafka.types import KafkaException
from engine.router.generation import Committed, RouterProgress, Start, offsets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine.kafka.clients import KafkaClients
    from engine.kafka.offsets import Offsets
    from engine.kafka.types import KafkaError, Producer
    from engine.message import Record
    from engine.router.generation import Generation
    from engine.seals import SealKeys
    from routes.model import JournalConfig

__all__ = ["NotedProgress", "NotedStart", "PositionStore", "UnreadableNoteError", "entry_of"]

_VERSION = 1
_START, _PROGRESS, _KEPT = "start", "place", "kept"
_SEAL = "seal of note"
"""Field of a note with the seal over its other fields; `Start.seal` names the secret."""
_ANSWER_SECONDS = 10.0
_NOTE_SECONDS = 2.0
_PART_BYTES = 48 * 1024
"""Greatest size of a part, and of a batch of parts: less than any limit that the state topic may have."""
_REPEAT_SECONDS = 300.0
"""Time after which the start is noted again, in case others have written over it and compaction removes the former."""
_MOST_NOTES = 1000
"""Greatest number of notes of a kind kept during a reading: more than compaction leaves, unless others write."""
_KEPT_STARTS = 32
"""Number of generations whose starts are kept."""
_PARTS = "parts"
"""Header with the number of parts of a note that has several."""


@dataclass(frozen=True, slots=True)
class NotedProgress:
    """Content of the store: the progress of the last run that was noted."""

    host: str
    """Name of the machine of that run."""
    path: str
    """Absolute path of its checkpoint folder."""
    progress: RouterProgress
    time_ms: int
    """Time of the latest note, in milliseconds since 1970."""
    is_sealed: bool = False
    """True if this bridge has written the notes: their seals are valid by a key that is known here."""
    own: NotedProgress | None = None
    """The newest notes with such seals, if these have none; None if there are none."""


@dataclass(frozen=True, slots=True)
class NotedStart:
    """Start of a generation, as it is noted."""

    start: Start
    time_ms: int
    """Time of the start, in milliseconds since 1970."""


class UnreadableNoteError(HardFailureError):
    """A note is not in the form that this version of the bridge writes."""


class PositionStore:
    """Reader and writer of one router's notes in the state topic. For one thread; `open` comes before writing."""

    def __init__(self, clients: KafkaClients, bridge_id: str, journal: JournalConfig) -> None:
        self._clients = clients
        self._bridge_id = bridge_id
        self._journal = journal.topic
        self._topic = journal.state_topic
        self._identity = f"{bridge_id}.router"
        self._producer: Producer | None = None
        self._run = ""
        self._keys: SealKeys | None = None
        self._start = b""
        self._started_at = 0.0
        """Time of `time.monotonic` at which the start was noted last."""
        self._waiting: dict[str, bytes] = {}
        """Records to be written, by the names of their notes."""
        self._written: dict[str, bytes] = {}
        """Records of the open transaction, by the same names."""
        self._is_to_abort = False

    def open(self) -> None:
        """Opens the store for writing; no router that opened it before can write any more.

        Raises:
            KafkaUnavailableError: Kafka has not answered.
            HardFailureError: Kafka refuses the bridge.
        """
        settings = {"transactional.id": self._identity, "batch.size": _PART_BYTES}
        self._producer = self._clients.producer(settings)
        self._waiting, self._written, self._is_to_abort = {}, {}, False
        self._call(self._producer, self._producer.init_transactions, _ANSWER_SECONDS)

    def read(self, keys: Sequence[SealKeys] = (), journal_id: str = "") -> NotedProgress | None:
        """The entry of this bridge and journal; None if there is none. Raises as `open` does, and as `entry_of`.

        Without one of the keys that the notes were sealed with, their seals cannot be checked. `journal_id` is Kafka's
        id of the journal, empty if it has none: own notes about an earlier journal of that name are passed over.
        """
        start, progress = (_Notes(self._key(name), name, keys) for name in (_START, _PROGRESS))
        self._read(start, progress)
        own = _sealed_entry(start, progress, self._topic, journal_id)
        try:
            if own is not None and start.is_last_sealed:
                return own
            last = entry_of(start.last(self._topic), progress.last(self._topic), self._topic)
        except UnreadableNoteError:
            if own is None:
                raise
            return own
        return own if last is None else replace(last, own=own)

    def starts(self, keys: Sequence[SealKeys] = (), journal_id: str = "") -> list[NotedStart]:
        """The starts of generations that the topic still has, the oldest first; the arguments are those of `read`.

        Those before the newest one are without the ends of outputs. If any has a seal by one of the keys, only such
        starts are returned. Notes that cannot be read are left out. Raises as `open` does.
        """
        notes = [_Notes(self._key(_START), _START, keys)]
        notes += [_Notes(self._key(f"{_KEPT} {number}"), _KEPT, keys) for number in range(_KEPT_STARTS)]
        self._read(*notes)
        sealed = [note for each in notes for note in each.sealed()]
        starts: dict[str, NotedStart] = {}
        for text in map(json.dumps, sealed) if sealed else (text for each in notes for text in each.texts):
            try:
                fields = _decoded(text)
                noted = NotedStart(Start.of(fields), int(fields["time_ms"]))
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
                continue
            if not journal_id or noted.start.journal_id in ("", journal_id):
                starts.setdefault(noted.start.run, noted)
        return sorted(starts.values(), key=lambda each: each.start.sequence)

    def _read(self, *notes: _Notes) -> None:
        """Reads the topic from its beginning."""
        try:
            with KafkaTopicReader(self._clients, self._topic) as reader:
                for located in reader.present():
                    for each in notes:
                        each.take(located.record)
        except UsageError as error:
            # The bridge that leads makes a missing topic.
            raise unavailable(self._clients.servers, str(error)) from error

    def begin(self, generation: Generation, keys: SealKeys | None = None) -> None:
        """Notes the start of a generation; on return Kafka has the note. Raises as `write` does.

        With `keys` this note and those of its progress are sealed.
        """
        self._run, self._keys = generation.start.run, keys
        where = {"host": socket.gethostname(), "path": str(generation.folder.parent.absolute())}
        fields = {**asdict(generation.start), **where}
        self._start = self._encoded(_START, fields)
        self._note_start()
        # The ends of the outputs are the largest part, and recovery alone needs them.
        kept = f"{_KEPT} {generation.start.sequence % _KEPT_STARTS}"
        self._waiting[kept] = self._encoded(_KEPT, {**fields, "outputs": {}})
        self.write()

    def note(self, committed: Committed | None, stopped: Offsets | None = None) -> None:
        """Prepares a note about the progress of the generation; `write` sends it."""
        fields = {"run": self._run, "committed": asdict(committed) if committed else None, "stopped": stopped}
        self._waiting[_PROGRESS] = self._encoded(_PROGRESS, fields)
        if time.monotonic() - self._started_at > _REPEAT_SECONDS:
            self._note_start()

    def _note_start(self) -> None:
        self._waiting[_START] = self._start
        self._started_at = time.monotonic()

    def write(self, timeout_seconds: float = _NOTE_SECONDS) -> None:
        """Sends the notes that are not yet in Kafka.

        Raises:
            KafkaUnavailableError: Kafka has not answered; the caller is to try again.
            HardFailureError: Kafka refuses the bridge.
            ClientEndedError: another router has opened the store.
        """
        client = self._producer
        if client is None or not (self._waiting or self._written):
            return
        if self._is_to_abort:
            self._call(client, client.abort_transaction, timeout_seconds)
            self._is_to_abort = False
        if not self._written:
            self._call(client, client.begin_transaction)
            self._written, self._waiting = self._waiting, {}
            for name, value in self._written.items():
                for key, part, headers in _parts(self._key(name), value):
                    self._call(client, partial(client.produce, self._topic, part, key, headers=headers))
        self._call(client, client.commit_transaction, timeout_seconds)
        self._written = {}

    def _encoded(self, name: str, fields: Mapping[str, Any]) -> bytes:
        """The note, with a seal if there are keys. Keys of its objects are text, as whoever reads it finds them."""
        note = json.loads(_encoded(fields))
        return json.dumps(note if self._keys is None else {**note, _SEAL: self._keys.seal(name, note)}).encode()

    def _key(self, name: str) -> bytes:
        return f"{self._bridge_id} {self._journal} {name}".encode()

    def _call(self, producer: Producer, what: Any, *arguments: Any) -> None:
        try:
            with fatal_error_first(producer, _ANSWER_SECONDS):
                what(*arguments)
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            if cause.txn_requires_abort():
                self._waiting, self._written = {**self._written, **self._waiting}, {}
                self._is_to_abort = True
            raise self._translated(cause) from error

    def _translated(self, error: KafkaError) -> Exception:
        what = f"topic '{self._topic}' and transactional id '{self._identity}'"
        refused = refusal(error, self._clients.servers, what, "READ and WRITE")
        if refused and error.code() not in MISSING:
            return refused
        if is_fatal(error):
            return ClientEndedError(f"another router of bridge.id={self._bridge_id} has taken over: {error.str()}")
        return unavailable(self._clients.servers, f"topic '{self._topic}': {error.str()}")


class _Notes:
    """Notes of one kind, as they are read from the topic's beginning."""

    def __init__(self, key: bytes, name: str, keys: Sequence[SealKeys]) -> None:
        self._key = key
        self._name = name
        self._keys = keys
        self._found: dict[bytes, Record] = {}
        """The last record of each part."""
        self._texts: deque[bytes] = deque(maxlen=_MOST_NOTES)
        """The last whole notes, in the order of the topic."""
        self._is_whole = False
        """True if the last record completes a note."""

    def take(self, record: Record) -> None:
        """Takes note of a record of the topic, of whatever kind."""
        key = record.key or b""
        if key != self._key and not re.fullmatch(rb"%s [1-9][0-9]{0,8}" % re.escape(self._key), key):
            return
        self._found[key] = record
        # Parts come in order, so a note is whole when its last part is there.
        count = _count(self._found.get(self._key))
        text = _joined(self._found, self._key) if count and key == _part_key(self._key, count - 1) else None
        self._is_whole = text is not None
        if text is not None:
            self._texts.append(text)

    @property
    def texts(self) -> Sequence[bytes]:
        """The last whole notes, in the order of the topic."""
        return self._texts

    def sealed(self) -> Iterator[dict[str, Any]]:
        """Yields the notes with a valid seal, the last one first; each is checked when it is asked for."""
        return filter(None, map(self._checked, reversed(self._texts)))

    @property
    def is_last_sealed(self) -> bool:
        """True if the last record belongs to a note with a valid seal."""
        return self._is_whole and self._checked(self._texts[-1]) is not None

    def _checked(self, text: bytes) -> dict[str, Any] | None:
        """The fields of a note with a valid seal, else None."""
        try:
            note: dict[str, Any] = json.loads(text)
            seal = note.pop(_SEAL, None)
        except (ValueError, RecursionError, AttributeError, TypeError):
            return None
        return note if any(each.holds(seal, self._name, note) for each in self._keys) else None

    def last(self, topic: str) -> bytes | None:
        """The last note; None if there is none. UnreadableNoteError if a part is missing."""
        first = self._found.get(self._key)
        if first is None or first.value is None:
            return None
        if _count(first) is None:
            raise _unreadable(topic, f"its number of parts is {dict(first.headers)[_PARTS]!r}")
        if (text := _joined(self._found, self._key)) is None:
            missing = next(n for n in range(_count(first) or 0) if _value(self._found, self._key, n) is None)
            raise _unreadable(topic, f"its part {missing} is missing")
        return text


def entry_of(start: bytes | None, progress: bytes | None, topic: str) -> NotedProgress | None:
    """The entry made from a start record and a progress record; None without a start.

    The progress of another run than that of the start is ignored.

    Raises:
        HardFailureError: a record is not in the form that this version of the bridge writes.
    """
    if start is None:
        return None
    try:
        fields = _decoded(start)
        begun, time_ms = Start.of(fields), int(fields["time_ms"])
        committed = stopped = None
        if progress is not None and (noted := _decoded(progress))["run"] == begun.run:
            time_ms = int(noted["time_ms"])
            stopped = None if noted["stopped"] is None else offsets(noted["stopped"])
            if (last := noted["committed"]) is not None:
                committed = Committed(offsets(last["positions"]), int(last["time_ms"]))
        return NotedProgress(fields["host"], fields["path"], RouterProgress(begun, committed, stopped), time_ms)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise _unreadable(topic, repr(error)) from error


def _sealed_entry(start: _Notes, progress: _Notes, topic: str, journal_id: str) -> NotedProgress | None:
    """The entry made from notes with valid seals; None if there is none.

    Whoever may write to the topic may repeat an earlier note, so that of the last run counts.

    Raises:
        HardFailureError: a newer version of the bridge wrote the note, in another form.
    """
    own = (each for each in start.sealed() if not journal_id or each["journal_id"] in ("", journal_id))
    begun = max(own, key=lambda note: note["sequence"], default=None)
    if begun is None:
        return None
    if begun["version"] > _VERSION:
        # The checkpoint of an earlier run must not take the place of this note.
        raise HardFailureError(
            f"the router's progress, noted in topic {topic!r}, cannot be read: a newer version of the bridge wrote it, "
            f"in form {begun['version']}, and this version reads form {_VERSION}. Start that version again"
        )
    place = next((each for each in progress.sealed() if each["run"] == begun["run"]), None)
    entry = entry_of(json.dumps(begun).encode(), json.dumps(place).encode() if place else None, topic)
    return None if entry is None else replace(entry, is_sealed=True)


def _unreadable(topic: str, why: str) -> UnreadableNoteError:
    return UnreadableNoteError(
        f"the router's progress, noted in topic {topic!r}, cannot be read: {why}. It was written by another version of "
        "the bridge or by another program: run that version, or start the bridge where its checkpoint is. The last "
        "resort is another journal.state-topic: without a checkpoint the router then publishes again all that the "
        "journal holds"
    )


def _parts(key: bytes, value: bytes) -> Iterator[tuple[bytes, bytes, list[tuple[str, str | bytes | None]]]]:
    """Keys, values and headers of the records that hold a note."""
    count = -(-len(value) // _PART_BYTES)
    for number in range(count):
        headers: list[tuple[str, str | bytes | None]] = [(_PARTS, str(count))] if number == 0 and count > 1 else []
        yield _part_key(key, number), value[number * _PART_BYTES : (number + 1) * _PART_BYTES], headers


def _count(first: Record | None) -> int | None:
    """Number of parts of a note, by its first one; None without that part, or with a faulty number."""
    if first is None:
        return None
    text = dict(first.headers).get(_PARTS) or b"1"
    return int(text) if re.fullmatch(rb"[1-9][0-9]{0,8}", text) else None


def _value(records: Mapping[bytes, Record], key: bytes, number: int) -> bytes | None:
    part = records.get(_part_key(key, number))
    return None if part is None else part.value


def _joined(records: Mapping[bytes, Record], key: bytes) -> bytes | None:
    """The note whose records have `key` and the keys of its other parts; None if there is none, or a part is missing.

    Parts of an earlier, longer note may still be there.
    """
    values: list[bytes] = []
    for number in range(_count(records.get(key)) or 0):
        if (value := _value(records, key, number)) is None:
            return None
        values.append(value)
    return b"".join(values) if values else None


def _part_key(key: bytes, number: int) -> bytes:
    return b"%s %d" % (key, number) if number else key


def _encoded(fields: Mapping[str, Any]) -> bytes:
    return json.dumps({"version": _VERSION, "time_ms": round(time.time() * 1000), **fields}).encode()


def _decoded(value: bytes | str) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(value)
    if fields["version"] != _VERSION:
        msg = f"version {fields['version']!r}"
        raise ValueError(msg)
    return fields
