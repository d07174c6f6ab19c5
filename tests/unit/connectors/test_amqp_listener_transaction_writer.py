"""How clients' transactions get into the journal: as a whole, beside other work, bounded, and told in every case."""

from __future__ import annotations

import time
from threading import Event
from typing import TYPE_CHECKING, cast

import pytest

from engine.connectors.amqp_listener.limits import ListenerLimits, TransactionUse
from engine.connectors.amqp_listener.transaction_writer import TransactionWriter
from engine.errors import HardFailureError
from engine.kafka.journal import JournalError, JournalTooLargeError
from engine.kafka.transactions import InDoubtError, TransactionalJournal
from engine.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.connectors.amqp_listener.coordinator import Transaction


LIMITS = ListenerLimits(clients=2, transaction_messages_of_all=100, transaction_messages=50)


class Work:
    """A transaction that notes what it is told."""

    def __init__(self, use: TransactionUse | None = None) -> None:
        self.use = use or TransactionUse()
        self.work: list[Message] = []
        self.size = 0
        self.told: list[str] = []

    def committed(self) -> None:
        self.told.append("committed")

    def rolled_back(self, why: str) -> None:
        self.told.append(f"rolled back: {why}")

    def in_doubt(self, why: str) -> None:
        self.told.append(f"in doubt: {why}")


class Ledger:
    """A journal without Kafka, which is as slow and as unwilling as a test wants."""

    def __init__(self) -> None:
        self.open: list[bytes] = []
        self.committed: list[list[bytes]] = []
        self.opened = self.closed = 0
        self.go = Event()
        self.go.set()
        self.refusals: list[Exception] = []
        self.unwilling: Exception | None = None

    def __call__(self, stop: Event) -> TransactionalJournal:
        self.opened += 1
        if self.unwilling:
            raise self.unwilling
        return cast("TransactionalJournal", self)

    def append(self, message: Message, done: Callable[[Exception | None], None]) -> bool:
        self.open.append(message.body)
        return True

    def commit(self) -> None:
        assert self.go.wait(10)
        if self.refusals:
            raise self.refusals.pop(0)
        self.committed.append(self.open)
        self.open = []

    def close(self) -> None:
        self.closed += 1
        self.open = []


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def woken() -> Event:
    return Event()


@pytest.fixture
def commits(ledger: Ledger, woken: Event) -> Iterator[TransactionWriter]:
    made = TransactionWriter(ledger, woken.set, LIMITS)
    yield made
    ledger.go.set()
    made.close()


def holding(commits: TransactionWriter, *bodies: bytes) -> Work:
    work = Work()
    for body in bodies:
        assert commits.take(cast("Transaction", work), Message(body), len(body)) is None
    return work


def ask(commits: TransactionWriter, *works: Work) -> None:
    for each in works:
        commits.ask(cast("Transaction", each))


def told(commits: TransactionWriter, *works: Work) -> int:
    """How many messages were committed when all have been told."""
    deadline = time.monotonic() + 10
    count = 0
    while not all(each.told for each in works):
        assert time.monotonic() < deadline
        count += commits.end()
    return count


def test_a_transaction_is_told_when_the_journal_has_it(
    commits: TransactionWriter, ledger: Ledger, woken: Event
) -> None:
    work = holding(commits, b"1", b"2")
    ask(commits, work)
    assert woken.wait(10)
    assert work.told == []
    assert commits.end() == 2
    assert (work.told, ledger.committed) == (["committed"], [[b"1", b"2"]])


def test_an_empty_transaction_needs_no_journal(commits: TransactionWriter, ledger: Ledger) -> None:
    work = Work()
    ask(commits, work)
    assert (work.told, ledger.opened) == (["committed"], 0)


def test_what_is_asked_for_during_a_commit_is_committed_together_and_in_order(
    commits: TransactionWriter, ledger: Ledger
) -> None:
    ledger.go.clear()
    first = holding(commits, b"1")
    ask(commits, first)
    while not ledger.open:
        time.sleep(0.001)
    others = [holding(commits, b"2"), holding(commits, b"3", b"4")]
    ask(commits, *others)
    ledger.go.set()
    assert told(commits, first, *others) == 4
    assert ledger.committed == [[b"1"], [b"2", b"3", b"4"]]


@pytest.mark.parametrize(
    ("refusal", "told_"),
    [
        (JournalError("too bad"), "rolled back: too bad"),
        (JournalTooLargeError(7, 5), "rolled back: 7 bytes, the journal takes 5"),
        (HardFailureError("not authorised"), "rolled back: not authorised"),
        (InDoubtError("who knows"), "in doubt: who knows"),
    ],
)
def test_a_commit_that_fails_is_told_and_the_next_has_another_journal(
    commits: TransactionWriter, ledger: Ledger, refusal: Exception, told_: str
) -> None:
    ledger.refusals.append(refusal)
    work = holding(commits, b"1")
    ask(commits, work)
    assert told(commits, work) == 0
    assert work.told == [told_]
    following = holding(commits, b"2")
    ask(commits, following)
    assert told(commits, following) == 1
    assert (ledger.opened, ledger.closed, ledger.committed) == (2, 1, [[b"2"]])


def test_a_kafka_that_refuses_transactions_stops_nothing_else(commits: TransactionWriter, ledger: Ledger) -> None:
    ledger.unwilling = HardFailureError("grant WRITE on the transactional id")
    work = holding(commits, b"1")
    ask(commits, work)
    told(commits, work)
    assert work.told == ["rolled back: grant WRITE on the transactional id"]


def test_a_fault_of_our_own_is_not_hidden(commits: TransactionWriter, ledger: Ledger, woken: Event) -> None:
    ledger.refusals.append(ZeroDivisionError("ours"))
    ask(commits, holding(commits, b"1"))
    assert woken.wait(10)
    with pytest.raises(ZeroDivisionError, match="ours"):
        commits.check()


def test_the_transactions_of_a_client_have_no_more_than_so_many_messages_and_bytes(commits: TransactionWriter) -> None:
    many = cast("Transaction", holding(commits, *[b"x"] * LIMITS.transaction_messages))
    condition = commits.take(many, Message(b"x"), 1)
    assert condition is not None
    assert str(condition) == (
        "more than 50 messages or 32 MiB in a client's transactions; commit sooner (amqp:resource-limit-exceeded)"
    )
    large = cast("Transaction", Work())
    assert commits.take(large, Message(b"x"), LIMITS.transaction_bytes + 1) is None
    assert commits.take(large, Message(b"x"), 1) is not None


def test_the_transactions_of_one_client_are_counted_together(commits: TransactionWriter) -> None:
    use = TransactionUse()
    first, second = Work(use), Work(use)
    for number in range(LIMITS.transaction_messages):
        assert commits.take(cast("Transaction", (first, second)[number % 2]), Message(b"x"), 1) is None
    for work in (first, second):
        assert commits.take(cast("Transaction", work), Message(b"x"), 1) is not None
    commits.forget(cast("Transaction", first))
    assert commits.take(cast("Transaction", second), Message(b"x"), 1) is None


def test_each_client_has_a_share_that_the_transactions_of_others_do_not_take(ledger: Ledger) -> None:
    commits = TransactionWriter(ledger, lambda: None, ListenerLimits(clients=5, transaction_messages_of_all=10))
    hung = holding(commits, *[b"x"] * 10)
    assert commits.take(cast("Transaction", hung), Message(b"x"), 1) is not None
    for _ in range(4):
        other = holding(commits, b"1", b"2")
        assert commits.take(cast("Transaction", other), Message(b"3"), 1) is not None
    commits.forget(cast("Transaction", hung))
    assert (hung.work, hung.size) == ([], 0)
    holding(commits, b"1", b"2")


def test_closing_waits_for_what_was_asked_for(commits: TransactionWriter, ledger: Ledger) -> None:
    works = [holding(commits, b"1"), holding(commits, b"2")]
    ask(commits, *works)
    commits.close()
    assert commits.end() == 2
    assert sorted(body for each in ledger.committed for body in each) == [b"1", b"2"]
    assert ledger.closed == 1
