"""A sink and the bodies that are kept as files: read in turn, waited for, refused, and never too many at once."""

from __future__ import annotations

import hashlib
from threading import Event
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry

from engine.claims.claim import CLAIM
from engine.connectors.base import Outcome
from engine.delivery import sink_loop
from engine.delivery.back_off import BackOff
from engine.delivery.replies import Requests
from engine.delivery.sink_letters import SinkLetters
from engine.delivery.sink_loop import SinkLoop
from engine.delivery.sink_topic_reader import TakenRecord
from engine.message import DESTINATION, POSITION, Message, Record
from engine.telemetry.meters import SinkMetrics
from engine.telemetry.status import State
from routes.config import loads

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from engine.connectors.base import Outgoing

CONFIG = """
bridge.id=b1
claim-check.folder={}
routes.a.in.include=TRUE
routes.a.out.topic=stomp:queue/a
source.jms.type=stomp
source.jms.destinations=queue:q
sink.out.type=stomp
kafka.bootstrap.servers=127.0.0.1:1
"""
DAY = "2026-11-28"


class Reader:
    """A topic that hands out its records once; `changes` are made between the loop's steps."""

    is_full = is_committing = False
    down_seconds = 0.0

    def __init__(
        self, bodies: Sequence[bytes], claimed: Collection[int], changes: Sequence[Callable[[], object]]
    ) -> None:
        self._records = [taken(number, body, number in claimed) for number, body in enumerate(bodies)]
        self._changes = list(changes)
        self.done_offsets: list[int] = []

    def __call__(self, *_: object) -> Reader:
        return self

    def take(self, most: int, _: float) -> list[TakenRecord]:
        self.rest(0)
        found, self._records = self._records[:most], self._records[most:]
        return found

    def rest(self, _: float) -> None:
        if self._changes:
            self._changes.pop(0)()

    def done(self, record: TakenRecord) -> None:
        self.done_offsets.append(record.offset)

    def commit(self, *, wait: bool = False) -> None:
        pass

    def has_more(self) -> bool:
        return bool(self._records)

    def lag(self) -> dict[int, int]:
        return {0: len(self._records)}

    def close(self) -> None:
        pass


class Sink:
    """A system that confirms each message at the next look."""

    address = "stomp://127.0.0.1:1"
    most_under_way = 10
    settle_seconds = 0.0

    def __init__(self) -> None:
        self.connections = 0
        self.sent: list[bytes] = []
        self.most_bytes = 0
        self._waiting: list[Outgoing] = []

    def connect(self) -> None:
        self.connections += 1

    def send(self, messages: Sequence[Outgoing]) -> None:
        self._waiting += messages
        self.sent += [each.message.body for each in messages]
        self.most_bytes = max(self.most_bytes, sum(len(each.message.body) for each in self._waiting))

    def outcomes(self, _: float) -> Sequence[Outcome]:
        done, self._waiting = self._waiting, []
        return [Outcome(each.number) for each in done]

    def close(self) -> None:
        pass


class Voice:
    def __init__(self) -> None:
        self.states: list[tuple[State | str, str]] = []

    def state(self, state: State | str, detail: str = "") -> None:
        self.states.append((state, detail))


def taken(number: int, body: bytes, claimed: bool) -> TakenRecord:
    plain = Message(b"" if claimed else body, headers={"JMSMessageID": f"ID:{number}"}).to_record()
    claim = f"{DAY}/{hashlib.sha256(body).hexdigest()} {len(body)}".encode()
    own = ((POSITION, b"journal:0:%d" % number), *([(CLAIM, claim)] if claimed else []), (DESTINATION, b"queue/a"))
    return TakenRecord(0, number, Record(None, plain.value, (*plain.headers, *own)))


def keep(folder: Path, body: bytes) -> None:
    (folder / DAY).mkdir(parents=True, exist_ok=True)
    (folder / DAY / hashlib.sha256(body).hexdigest()).write_bytes(body)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[Sink, Reader, Voice, list[Any]]]:
    """Runs a sink over records, with changes between its steps, and then a few steps more."""

    def made(
        bodies: Sequence[bytes], claimed: Collection[int], changes: Sequence[Callable[[], object]] = ()
    ) -> tuple[Sink, Reader, Voice, list[Any]]:
        stop, sink, voice, refused = Event(), Sink(), Voice(), []
        reader = Reader(bodies, claimed, [*changes, *[lambda: None] * 20, stop.set])
        monkeypatch.setattr(sink_loop, "SinkTopicReader", reader)
        monkeypatch.setattr(BackOff, "next", lambda *_: 0.0)
        monkeypatch.setattr(SinkLetters, "open", lambda _: None)
        monkeypatch.setattr(SinkLetters, "write", lambda *_: 0)
        monkeypatch.setattr(
            SinkLetters, "add", lambda _, record, why, route: refused.append((record.offset, why, route))
        )
        config = loads(CONFIG.format(tmp_path / "bodies"))
        metrics = SinkMetrics(CollectorRegistry(), "out", "sink:out")
        own: Any = config.sinks[0]
        listener: Any = SimpleNamespace(check=lambda: None)
        said: Any = voice
        SinkLoop(config, own, sink, Requests(config, own, 1, metrics), metrics, said).run(stop, listener)
        return sink, reader, voice, refused

    return made


def test_messages_wait_for_the_folder_in_their_order_and_the_connection_stays(
    run: Callable[..., tuple[Sink, Reader, Voice, list[Any]]], tmp_path: Path
) -> None:
    folder = tmp_path / "bodies"
    changes = [*[lambda: None] * 10, lambda: keep(folder, b"large")]
    sink, reader, voice, refused = run([b"one", b"large", b"three"], {1}, changes)
    assert (sink.sent, sink.connections, refused) == ([b"one", b"large", b"three"], 1, [])
    assert sorted(reader.done_offsets) == [0, 1, 2]
    degraded = (State.DEGRADED, f"claim-check.folder {folder} cannot be read: there is no such folder")
    assert degraded in voice.states
    assert (State.READY, Sink.address) in voice.states[voice.states.index(degraded) :]


def test_a_body_that_is_gone_is_refused_and_the_others_go_on(
    run: Callable[..., tuple[Sink, Reader, Voice, list[Any]]], tmp_path: Path
) -> None:
    folder = tmp_path / "bodies"
    keep(folder, b"large")
    sink, reader, _, refused = run([b"one", b"gone", b"large", b"three"], {1, 2})
    assert (sink.sent, sorted(reader.done_offsets)) == ([b"one", b"large", b"three"], [0, 2, 3])
    [(offset, why, _)] = refused
    assert offset == 1
    assert why.startswith(f"its body is gone: there is no file {folder}/{DAY}/")


def test_no_more_bodies_are_read_than_may_be_under_way(
    run: Callable[..., tuple[Sink, Reader, Voice, list[Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink_loop, "_MOST_BYTES_UNDER_WAY", 10)
    bodies = [b"body %d" % number for number in range(8)]
    for body in bodies:
        keep(tmp_path / "bodies", body)
    sink, reader, _, _ = run(bodies, set(range(8)))
    assert sink.sent == bodies
    # The message that fills the limit is the last one.
    assert sink.most_bytes == 12
    assert sorted(reader.done_offsets) == list(range(8))
