"""Entries of the audit: written, and read whatever stands there."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.dead_letters import audit
from engine.dead_letters.audit import Action, Actor, AuditEntry, parse
from engine.dead_letters.state import LetterState
from engine.dead_letters.store import DeadLetterStore
from engine.kafka.reader import LocatedRecord, Position
from engine.message import Record
from engine.seals import SealKeys
from routes.config import loads

AT = Position("dead", 2, 17)


def read(value: bytes | None, key: bytes | None = b"dead:2:17") -> AuditEntry | None:
    return parse(LocatedRecord(Position("dead.replayed", 0, 0), 0, Record(key, value, ())))


def test_an_entry_is_read_as_it_was_written() -> None:
    actor = Actor("alice", "host-1", "dlt replay --reason 'größer'")
    time = "2026-11-22T05:00:00.000Z"
    entry = AuditEntry(AT, Action.QUARANTINED, time, "dead.quarantine:0:3", "unmatched", "", "j:0:1", 3, actor, "id")
    assert read(entry.to_json().encode()) == entry


def test_an_entry_says_who_did_what_when_and_where_the_copy_is() -> None:
    written = json.loads(
        AuditEntry(AT, Action.DISCARDED, actor=Actor("alice", "host-1", "dlt discard --all")).to_json()
    )
    assert written == {
        "action": "discarded",
        "time": "",
        "user": "alice",
        "host": "host-1",
        "command": "dlt discard --all",
        "reason": "",
        "route": "",
        "journal": "",
        "replays": 0,
        "copy": "",
        "origin": "",
        "topic_id": "",
    }


def test_the_text_of_earlier_versions_is_read() -> None:
    found = read(b"journal:1:5 2026-11-21T06:47:07Z")
    assert found == AuditEntry(AT, Action.REPLAYED, "2026-11-21T06:47:07Z", "journal:1:5")


@pytest.mark.parametrize("value", [b"{", b"{}", b'{"action": "sold"}', b'{"action": 5, "replays": "x"}', b"\xff", b""])
def test_what_nobody_can_read_counts_as_replayed_rather_than_be_replayed_twice(value: bytes) -> None:
    found = read(value)
    assert found is not None
    assert (found.position, found.action, found.replays) == (AT, Action.REPLAYED, 0)


@pytest.mark.parametrize("key", [None, b"", b"dead", b"dead:2:x", b"\xff:0:1", b"2:", b"dead:0:" + b"9" * 5000])
def test_a_record_that_names_no_dead_letter_is_passed_over(key: bytes | None) -> None:
    assert read(b"{}", key) is None


def test_a_record_without_a_value_is_passed_over() -> None:
    assert read(None) is None


@given(st.binary(), st.binary() | st.just(b"{" + b"[" * 100_000))
def test_no_record_breaks_the_reading(key: bytes, value: bytes) -> None:
    read(value, key)
    read(value)


def test_whoever_runs_the_process_is_named() -> None:
    actor = Actor.here("dlt replay --all")
    assert actor.user
    assert actor.host
    assert actor.command == "dlt replay --all"


def test_a_user_without_a_name_is_told_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert Actor.here().user.startswith("uid ")


KEYS, OTHERS = SealKeys(b"ours", "b1"), SealKeys(b"theirs", "b1")
ENTRY = AuditEntry(AT, Action.DISCARDED, origin="id", topic_id="t")


def doubtful(value: str, key: bytes = b"dead:2:17") -> bool:
    entry = parse(LocatedRecord(Position("dead.replayed", 0, 0), 0, Record(key, value.encode(), ())), (KEYS,))
    assert entry is not None
    return entry.is_doubtful


def test_an_entry_with_the_seal_of_the_bridge_is_sure() -> None:
    assert not doubtful(ENTRY.to_json(KEYS))
    assert read(ENTRY.to_json(KEYS).encode()) == ENTRY


def test_an_entry_of_others_is_doubtful() -> None:
    own = json.loads(ENTRY.to_json(KEYS))
    assert doubtful(ENTRY.to_json())
    assert doubtful(ENTRY.to_json(OTHERS))
    assert doubtful(json.dumps({**own, "topic_id": "u"}))
    assert doubtful(json.dumps({**own, "seal": 5}))
    assert doubtful(json.dumps(own), b"dead:2:18")
    assert doubtful("journal:1:5 2026-11-21T06:47:07Z")


@given(st.binary())
def test_no_record_of_others_is_sure(value: bytes) -> None:
    entry = parse(LocatedRecord(Position("dead.replayed", 0, 0), 0, Record(b"dead:2:17", value, ())), (KEYS,))
    assert entry is not None
    assert entry.is_doubtful


def test_an_older_entry_of_a_letter_comes_before_the_newest_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    written = [AuditEntry(Position("dead", 0, offset % 4), Action.DISCARDED, str(offset)) for offset in range(8)]
    monkeypatch.setattr(audit, "entries", lambda _: iter(written))
    store = DeadLetterStore.of(loads("bridge.id=b1\nroutes.x.in.include=TRUE\nroutes.x.out.topic=orders\n"))
    assert [entry.time for entry in audit.last(store, 2)] == ["6", "7"]
    assert [entry.time for entry in audit.last(store, 2, Position("dead", 0, 1))] == ["5", "6", "7"]
    assert [entry.time for entry in audit.last(store, 2, Position("dead", 0, 3))] == ["6", "7"]
    assert [entry.time for entry in audit.last(store, 2, Position("dead", 1, 3))] == ["6", "7"]


@pytest.mark.parametrize("action", Action)
def test_every_entry_makes_a_state(action: Action) -> None:
    of_journal = action in (Action.ROUTED_AGAIN, Action.SENT)
    assert AuditEntry(AT, action).state == (LetterState.REPLAYED if of_journal else action)
