"""Keys of seals, the secret in the checkpoint, and notes in Kafka that others have written or changed."""

from __future__ import annotations

import json
import random
import socket
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import pytest

from engine.errors import HardFailureError
from engine.kafka.clients import KafkaClients
from engine.message import Record
from engine.router import position_store
from engine.router.generation import Committed, Generation, Generations, Start
from engine.router.last_progress import last_progress, noted
from engine.router.position_store import NotedProgress, PositionStore, UnreadableNoteError
from engine.router.secret import known_keys, present_keys
from engine.seals import SealKeys, configured_keys
from routes.config import lint_text, loads
from routes.model import Config
from tests.unit.kafka.reader_stand_in import ReaderStandIn

CONFIGURATION = """\
bridge.id=b1
kafka.bootstrap.servers=127.0.0.1:1
source.s.type=nats
source.s.url=nats://127.0.0.1:1
source.s.destinations=in
routes.r.in.include=TRUE
routes.r.out.topic=out
"""
SHARED = "0123456789abcdef0123456789abcdef"
KEYS, OTHERS = SealKeys(b"ours", "b1"), SealKeys(b"theirs", "b1")
START = Start("jms-bridge.journal", "id", {0: 10}, {"out": {0: 3}}, "b1", "r", "run-2", "run-1", KEYS.id, 2)
FAR = {"0": 99}


def config(folder: Path, more: str = "") -> Config:
    return loads(CONFIGURATION + more, folder)


def test_keys_of_two_bridges_journals_and_secrets_differ() -> None:
    keys = {
        SealKeys(secret, bridge).of_records(journal, identity)
        for secret in (b"a", b"b")
        for bridge in ("b1", "b2")
        for journal in ("j", "k")
        for identity in ("", "id")
    }
    assert len(keys) == 16
    assert {len(key) for key in keys} == {16}
    assert KEYS.id == SealKeys(b"ours", "b1").id != OTHERS.id


def test_a_seal_holds_for_its_fields_and_purpose_alone() -> None:
    fields = {"positions": {"0": 1}, "text": "\u00fc\ud800"}
    seal = KEYS.seal("start", fields)
    assert KEYS.holds(seal, "start", fields)
    assert KEYS.holds(seal, "start", dict(reversed(fields.items())))
    assert not KEYS.holds(seal, "place", fields)
    assert not KEYS.holds(seal, "start", {**fields, "text": ""})
    assert not OTHERS.holds(seal, "start", fields)
    wrong: Any
    for wrong in (None, 1, "", "\u00e9", [], {}):
        assert not KEYS.holds(wrong, "start", fields)


def named(config: Config) -> tuple[str, str | None]:
    return config.bridge_id, config.secret


def store_of(config: Config) -> PositionStore:
    return PositionStore(KafkaClients(config.kafka_access), config.bridge_id, config.journal)


def test_the_secret_is_made_once_and_readable_by_its_user_alone(tmp_path: Path) -> None:
    given = config(tmp_path)
    root = cast(Path, given.router.checkpoint)
    assert known_keys(*named(given), root) == ()
    first = present_keys(*named(given), root)
    assert present_keys(*named(given), root) == known_keys(*named(given), root) == first
    assert (root / "secret").stat().st_mode & 0o777 == 0o600
    assert not Generations(root).newest()


@pytest.mark.parametrize("text", ["", "x", "0" * 63, "\x00" * 64])
def test_a_damaged_secret_is_replaced(tmp_path: Path, text: str) -> None:
    given = config(tmp_path)
    root = cast(Path, given.router.checkpoint)
    root.mkdir(parents=True)
    (root / "secret").write_text(text)
    (made,) = present_keys(*named(given), root)
    assert known_keys(*named(given), root) == (made,)


def test_a_configured_secret_comes_first_and_the_former_one_stays_known(tmp_path: Path) -> None:
    (former,) = present_keys(*named(config(tmp_path)), tmp_path)
    given = config(tmp_path, f"bridge.secret={SHARED}\n")
    assert [keys.is_shared for keys in present_keys(*named(given), tmp_path)] == [True, False]
    assert known_keys(*named(given), tmp_path) == (
        configured_keys(*named(given)),
        former,
    )
    assert SHARED not in repr(given)


def test_a_short_secret_is_refused_and_not_shown() -> None:
    faults = lint_text(CONFIGURATION + "bridge.secret=tooshort\n").errors
    assert ["fewer than 32 characters" in str(fault) for fault in faults] == [True]
    assert "tooshort" not in str(faults[0])


class Topic:
    """A state topic in memory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.records: list[Record] = []
        self.config = config(folder)
        self.generations = Generations(cast(Path, self.config.router.checkpoint))
        topic = self

        class Reader(ReaderStandIn):
            def present(self) -> list[Any]:
                return [type("Located", (), {"record": each}) for each in topic.records]

        monkeypatch.setattr(position_store, "KafkaTopicReader", Reader)

    def write(self, start: Start, keys: SealKeys | None, stopped: int | None = None) -> list[Record]:
        """The notes of a run, as its router writes them; returns their records."""
        store = store_of(self.config)
        monkey: Any = store
        monkey.write = lambda *_: None
        store.begin(Generation(self.generations.root / "1", start), keys)
        store.note(Committed({0: 20}, 1000), None if stopped is None else {0: stopped})
        written = []
        for name, value in monkey._waiting.items():
            for key, part, headers in position_store._parts(monkey._key(name), value):
                found: Any = tuple((each, str(text).encode()) for each, text in headers)
                written.append(Record(key, part, found))
        self.records += written
        return written

    def forge(self, name: str = "start", **fields: Any) -> None:
        """The last note of that kind with other fields, as somebody writes it who has read it."""
        last = next(each for each in reversed(self.records) if (each.key or b"").endswith(f" {name}".encode()))
        note = json.loads(last.value or b"")
        self.records.append(replace(last, value=json.dumps({**note, **fields}).encode()))

    def read(self, *keys: SealKeys) -> NotedProgress | None:
        return store_of(self.config).read(keys, "id")

    def progress(self, *keys: SealKeys) -> Any:
        entry = noted(
            store_of(self.config),
            self.generations,
            "id",
            keys,
        )
        return last_progress(self.generations, entry, "id", keys)


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Topic:
    return Topic(monkeypatch, tmp_path)


FORGERIES: list[dict[str, Any]] = [
    {"positions": FAR},
    {"positions": FAR, "run": "x"},
    {"positions": FAR, "run": "x", "host": "elsewhere"},
    {"positions": FAR, "run": "x", "seal": ""},
    {"positions": FAR, "run": "x", "seal of note": None},
    {"positions": FAR, "run": "x", "seal of note": ["x"], "sequence": 10**9},
    {"positions": {"0": 1e999}},
    {"positions": None},
    {"journal": 5},
    {"version": 2},
]


@pytest.mark.parametrize("fields", FORGERIES)
@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_a_forged_start_does_not_move_the_router(topic: Topic, fields: dict[str, Any], has_checkpoint: bool) -> None:
    if has_checkpoint:
        topic.generations.create(START)
    topic.write(START, KEYS)
    wanted = topic.read(KEYS)
    assert wanted is not None
    assert wanted.is_sealed
    topic.forge(**fields)
    found = topic.read(KEYS)
    assert found is not None
    assert (found if found.is_sealed else found.own) == wanted
    if has_checkpoint:
        assert topic.progress(KEYS) == topic.generations.newest().progress()  # type: ignore[union-attr]


@pytest.mark.parametrize("fields", [{"stopped": FAR}, {"stopped": FAR, "run": "x"}, {"committed": {"positions": FAR}}])
def test_a_forged_progress_does_not_move_the_router(topic: Topic, fields: dict[str, Any]) -> None:
    topic.write(START, KEYS)
    wanted = topic.read(KEYS)
    topic.forge("place", **fields)
    assert topic.read(KEYS) == wanted


def test_a_note_of_an_earlier_run_that_is_repeated_does_not_count(topic: Topic) -> None:
    earlier = topic.write(replace(START, run="run-1", sequence=1), KEYS, stopped=5)
    topic.generations.create(START)
    topic.write(START, KEYS)
    wanted = topic.read(KEYS)
    topic.records += earlier
    assert topic.read(KEYS) == wanted
    # Nor does it when compaction has removed the later one.
    topic.records = earlier
    assert topic.progress(KEYS) == topic.generations.newest().progress()  # type: ignore[union-attr]


def test_an_own_note_about_an_earlier_journal_of_the_name_does_not_count(topic: Topic) -> None:
    common = replace(KEYS, is_shared=True)
    earlier = topic.write(replace(START, journal_id="earlier", sequence=57), common)
    topic.write(replace(START, run="first", sequence=1), common)
    topic.records += earlier
    found = topic.read(common)
    assert found is not None
    assert found.is_sealed
    assert found.progress.start.run == "first"


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"1", b"\xff", b"[" * 100_000, b'{"version": 1}', None])
def test_a_malformed_note_stops_nothing_where_there_is_a_checkpoint(topic: Topic, text: bytes | None) -> None:
    generation = topic.generations.create(START)
    (first, *_) = topic.write(START, KEYS)
    topic.records = [replace(first, value=text)]
    assert topic.progress(KEYS) == generation.progress()


def test_the_start_is_noted_again_now_and_then(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    store: Any = store_of(topic.config)
    monkeypatch.setattr(store, "write", lambda *_: None)
    store.begin(Generation(topic.generations.root / "1", START), KEYS)
    start = store._waiting.pop("start")
    store.note(None)
    assert "start" not in store._waiting
    monkeypatch.setattr(position_store, "_REPEAT_SECONDS", 0.0)
    store.note(None)
    assert store._waiting["start"] == start


def test_a_number_of_parts_that_is_none_is_named(topic: Topic) -> None:
    (first, *_) = topic.write(START, None)
    topic.records = [replace(first, headers=(("parts", b"x"),))]
    with pytest.raises(UnreadableNoteError, match=r"its number of parts is b'x'.* publishes again all"):
        topic.read()
    with pytest.raises(HardFailureError):
        topic.progress()
    topic.generations.create(START)
    assert topic.progress() is not None


def test_large_notes_are_found_among_parts_of_others(topic: Topic) -> None:
    large = replace(START, routes="r" * 200_000)
    topic.write(large, KEYS)
    wanted = topic.read(KEYS)
    assert wanted is not None
    assert wanted.is_sealed
    chance = random.Random(3)  # noqa: S311 # data of a test
    for each in list(topic.records):
        topic.records.append(replace(each, value=chance.randbytes(10)))
    assert topic.read(KEYS) == wanted


def test_a_bridge_on_another_host_with_a_secret_of_its_own_is_still_followed(topic: Topic) -> None:
    topic.generations.create(replace(START, run="run-1", sequence=1))
    topic.write(replace(START, run="run-1", sequence=1), KEYS)
    topic.write(replace(START, seal=OTHERS.id), OTHERS)
    topic.forge(host="elsewhere")
    found = topic.progress(KEYS)
    assert found.start.run == "run-2"


def test_with_a_common_secret_only_its_notes_count(topic: Topic) -> None:
    common = replace(KEYS, is_shared=True)
    generation = topic.generations.create(START)
    topic.write(START, common)
    topic.write(replace(START, run="x", positions={0: 99}, seal=OTHERS.id), OTHERS)
    topic.forge(host="elsewhere")
    assert topic.progress(common) == generation.progress()


def test_notes_of_an_older_version_are_followed_once(topic: Topic) -> None:
    old = replace(START, seal="", sequence=0)
    generation = topic.generations.create(old)
    topic.write(old, None)
    assert topic.progress(KEYS) == generation.progress()
    topic.write(replace(START, after="run-2", run="run-3"), KEYS)
    topic.write(old, None)
    assert topic.progress(KEYS).start.run == "run-3"


def test_a_note_of_a_newer_version_is_refused_where_there_is_a_checkpoint_too(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic.generations.create(START)
    with monkeypatch.context() as newer:
        newer.setattr(position_store, "_VERSION", 2)
        topic.write(replace(START, after="run-2", run="run-3", sequence=99), KEYS)
    with pytest.raises(HardFailureError, match=r"a newer version .* form 2, .* form 1\. Start that version again$"):
        topic.progress(KEYS)


def test_notes_are_as_earlier_versions_read_them(topic: Topic) -> None:
    (first, *_) = topic.write(START, KEYS)
    note = json.loads(first.value or b"")
    assert Start.of(note) == START
    assert note["host"] == socket.gethostname()
    assert asdict(START).keys() < note.keys()
    assert b"ours" not in (first.value or b"")
