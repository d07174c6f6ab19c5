"""What a connection of a source knows of its journal, with a journal that is a list."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from engine.connectors.base import Redelivery
from engine.delivery.deduplication import deduplicator
from engine.delivery.deduplication.deduplicator import Deduplicator
from engine.message import Message, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class Journal:
    """Its partitions, the positions of a source in them, and the time."""

    def __init__(self) -> None:
        self.partitions: list[list[tuple[str, Record]]] = [[]]
        self.found = 0
        self.position: dict[int, int] | None = None
        self.notes: list[str] = []
        self.read_from: list[int] = []
        self.now = 0.0
        self.workers = 1
        self.answers = True

    def write(self, *messages: Message, partition: int = 0) -> None:
        self.partitions[partition] += [(message.headers["JMSMessageID"], message.to_record()) for message in messages]

    # As `Bookmarks`:
    def tend(self) -> None: ...

    def find(self, retry: object) -> None:
        self.find_partitions(retry)

    def find_partitions(self, retry: object) -> None:
        self.found = len(self.partitions)

    def ask_ends(self) -> dict[int, Any]:
        asked: dict[int, Any] = {}
        for partition, end in self.ends(None).items():
            asked[partition] = Future()
            if self.answers:
                asked[partition].set_result(SimpleNamespace(offset=end))
        return asked

    def ends(self, retry: object) -> dict[int, int]:
        return {partition: len(self.partitions[partition]) for partition in range(self.found)}

    def starts(self, retry: object) -> dict[int, int] | None:
        position = self.position
        return position and {partition: position.get(partition, 0) for partition in range(self.found)}

    def keep(self, positions: Mapping[int, int], note: str) -> None:
        self.position = dict(positions)
        self.notes = [note] if note else self.notes

    def keep_first(self, positions: Mapping[int, int]) -> None:
        self.position = self.position or dict(positions)

    def keep_end(self) -> None:
        self.position = self.ends(None)

    # As `Tail`:
    def read(
        self,
        starts: Mapping[int, int],
        ends: Mapping[int, int],
        take: Callable[[int, int, str, Record], None],
        retry: object,
    ) -> None:
        self.read_from.append(starts.get(0, 0))
        for partition, end in ends.items():
            for offset in range(starts.get(partition, 0), end):
                take(partition, offset, *self.partitions[partition][offset])


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Journal:
    made = Journal()
    monkeypatch.setattr(deduplicator, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


class Counting:
    """A source whose system counts its messages."""

    def __init__(self) -> None:
        self.at = 0
        self.recalled: Sequence[str] = ()

    def position(self) -> str:
        return str(self.at)

    def recall(self, notes: Sequence[str]) -> None:
        self.recalled = tuple(notes)


def connected(
    journal: Any, *, is_marked: bool = True, positioned: Counting | None = None, doubt_seconds: float = 30
) -> Deduplicator:
    redelivery = Redelivery(60, doubt_seconds, is_marked)
    made = Deduplicator(journal, journal, SimpleNamespace(), redelivery, positioned)  # type: ignore[arg-type]
    made.begin()
    return made


def message(number: int, *, again: bool = False) -> Message:
    fields = {"JMSMessageID": f"ID:{number}", "JMSTimestamp": str(1000 + number)}
    return Message(headers=fields | ({"JMSRedelivered": "true"} if again else {}))


def test_what_the_journal_had_when_the_connection_was_made_is_known(journal: Journal) -> None:
    journal.write(message(1))
    source = connected(journal)

    assert source.suspects(message(1))
    assert source.knows(message(1))
    assert not source.suspects(message(2))


def test_what_another_worker_journals_later_is_known_after_a_look(journal: Journal) -> None:
    source = connected(journal)
    journal.write(message(1))
    assert not source.suspects(message(1))

    assert source.suspects(message(1, again=True))
    assert source.is_unsure(message(1, again=True))
    source.look()

    assert source.knows(message(1, again=True))


@pytest.mark.parametrize("seconds", [0, 60])
def test_a_look_also_reads_partitions_that_were_added_since_the_connection_was_made(
    journal: Journal, seconds: float
) -> None:
    journal.write(message(1))
    source = connected(journal)
    journal.partitions.append([])
    journal.write(message(2), message(3), partition=1)
    journal.now += seconds

    source.look()

    assert source.knows(message(2, again=True))
    assert source.knows(message(3, again=True))
    run(source, journal, 100, received=3, acknowledged=3)
    assert journal.position == {0: 1, 1: 2}


def test_a_message_that_comes_late_is_looked_for_where_the_system_does_not_mark_it(journal: Journal) -> None:
    journal.workers = 2
    source = connected(journal, is_marked=False)

    assert not any(source.suspects(message(number)) for number in (1, 3, 3))
    assert source.suspects(message(2))
    assert source.is_unsure(message(2))
    assert not connected(journal).suspects(message(2))


def test_the_first_position_is_the_first_record_of_the_source(journal: Journal) -> None:
    connected(journal)
    assert journal.position == {0: 0}

    journal.position = None
    journal.write(message(1), message(2))
    connected(journal)
    assert journal.position == {0: 0}


def run(source: Deduplicator, journal: Journal, seconds: float, received: int, acknowledged: int) -> None:
    end = journal.now + seconds
    while journal.now < end:
        journal.now += 0.5
        source.tend(received, acknowledged)


def test_the_position_follows_when_everything_is_acknowledged_and_surely_so(journal: Journal) -> None:
    journal.write(message(1))
    source = connected(journal)
    journal.write(message(2))

    run(source, journal, 88, received=1, acknowledged=1)
    assert journal.position == {0: 0}
    assert source.suspects(message(1))
    run(source, journal, 10, received=1, acknowledged=1)

    assert journal.position == {0: 2}
    # It could only have come again in the time after the connection was made.
    assert not source.suspects(message(1))
    assert journal.read_from == [0]


def test_where_the_system_counts_is_noted_with_the_position_and_recalled_by_the_next_connection(
    journal: Journal,
) -> None:
    source = Counting()
    deduplicator = connected(journal, positioned=source)
    journal.write(message(1))
    source.at = 7
    run(deduplicator, journal, 100, received=1, acknowledged=1)
    assert journal.notes == ["7"]

    following = Counting()
    connected(journal, positioned=following)
    assert following.recalled == ("7",)


def test_a_clean_stop_leaves_in_doubt_what_a_broker_may_not_have_kept_yet(journal: Journal) -> None:
    broker, folder = connected(journal), connected(journal, doubt_seconds=0)
    journal.write(message(1))

    broker.finish()
    assert journal.position == {0: 0}
    folder.finish()
    assert journal.position == {0: 1}


def test_the_position_stays_while_something_is_not_acknowledged(journal: Journal) -> None:
    source = connected(journal)
    journal.write(message(1), message(2))

    run(source, journal, 1000, received=2, acknowledged=1)
    assert journal.position == {0: 0}
    run(source, journal, 40, received=2, acknowledged=2)

    assert journal.position == {0: 2}


def test_a_kafka_that_does_not_answer_holds_up_nothing_but_the_position(journal: Journal) -> None:
    source = connected(journal)
    journal.write(message(1))
    journal.answers = False

    run(source, journal, 200, received=1, acknowledged=1)

    assert journal.position == {0: 0}


def test_a_look_begins_where_the_last_one_ended_or_where_nothing_is_in_doubt(journal: Journal) -> None:
    source = connected(journal)
    journal.write(*(message(number) for number in range(10)))
    source.look()
    journal.write(*(message(number) for number in range(10, 20)))
    source.look()
    assert journal.read_from == [0, 0, 10]

    journal.now += 60
    journal.position = {0: 15}
    journal.write(message(20))
    source.look()

    assert journal.read_from[-1] == 20
    journal.write(*(message(number) for number in range(21, 40)))
    journal.now += 60
    journal.position = {0: 38}
    source.look()
    assert journal.read_from[-1] == 38
