"""The judge of the chaos suite sees each kind of fault, and none where there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.chaos.ledger import DESTINATIONS, SOURCES, Ledger, Number
from tests.chaos.verdict import Arrival, Position, Verdict, judge


@dataclass
class Run:
    """A run without a fault, to be spoilt."""

    ledger: Ledger = field(default_factory=Ledger)
    journal: list[Arrival] = field(default_factory=list)
    arrived: dict[str, list[Arrival]] = field(default_factory=lambda: {name: [] for name in DESTINATIONS})

    def __post_init__(self) -> None:
        for source in SOURCES:
            for number in self.ledger.issue(source, 64):
                self.ledger.acknowledge(number)
                self.take(number)

    def take(self, number: Number) -> None:
        arrival = Arrival(number, Position(0, len(self.journal)))
        self.journal.append(arrival)
        self.arrived[number.destination].append(arrival)

    def judge(self) -> Verdict:
        return judge(self.ledger.sent, self.journal, self.arrived)


def lose(run: Run) -> None:
    run.arrived["kafka"].pop()


def lose_before_the_journal(run: Run) -> None:
    lost = run.arrived["kafka"].pop()
    run.journal.remove(lost)


def publish_again(run: Run) -> None:
    run.arrived["stomp"].append(run.arrived["stomp"][-1])


def swap_behind_the_journal(run: Run) -> None:
    one, other = (i for i, each in enumerate(run.arrived["kafka"]) if each.number in (("nats", 1, 0), ("nats", 1, 2)))
    found = run.arrived["kafka"]
    found[one], found[other] = found[other], found[one]


def send_elsewhere(run: Run) -> None:
    run.arrived["nats"].append(run.arrived["amqp"].pop())


def invent(run: Run) -> None:
    run.arrived["kafka"].append(Arrival(None, Position(0, 7)))


def leave_out_the_position(run: Run) -> None:
    run.arrived["amqp"][-1] = run.arrived["amqp"][-1]._replace(position=None)


def take_in_again(run: Run) -> None:
    number = run.journal[3].number
    assert number is not None
    run.take(number)


def test_a_run_without_a_fault_has_none() -> None:
    verdict = Run().judge()
    assert verdict.faults() == {}
    assert verdict.unknown == 0
    total = verdict.total
    assert (total.sent, total.acknowledged, total.delivered) == (64 * len(SOURCES),) * 3


@pytest.mark.parametrize(
    ("spoil", "faults"),
    [
        (lose, {"lost": 1}),
        (lose_before_the_journal, {"lost": 1}),
        (publish_again, {"published twice": 1}),
        (swap_behind_the_journal, {"reordered after the journal": 1}),
        (send_elsewhere, {"lost": 1, "misrouted": 1}),
        (invent, {"unknown": 1}),
        (leave_out_the_position, {"unknown": 1}),
    ],
)
def test_each_fault_of_the_bridge_is_counted(spoil: Callable[[Run], None], faults: dict[str, int]) -> None:
    run = Run()
    spoil(run)
    assert run.judge().faults() == faults


def test_what_a_broker_delivers_again_is_told_from_what_the_bridge_publishes_twice() -> None:
    run = Run()
    take_in_again(run)
    assert run.judge().faults() == {"journaled twice": 1}


def test_an_order_that_the_journal_has_wrong_already_is_not_counted_again() -> None:
    run = Run(Ledger())
    first, second = run.ledger.issue("amqp", 16)[::8]
    for number in (second, first):
        run.ledger.acknowledge(number)
        run.take(number)
    verdict = run.judge()
    assert (verdict.total.reordered_before, verdict.total.reordered_after) == (1, 0)
    assert verdict.faults() == {"reordered before the journal": 1}


def test_what_jetstream_sends_again_may_come_behind_newer_messages() -> None:
    run = Run(Ledger())
    first, second = run.ledger.issue("nats", 16)[::8]
    for number in (second, first):
        run.ledger.acknowledge(number)
        run.take(number)
    assert run.judge().faults() == {}


def test_a_message_that_nobody_acknowledged_may_be_missing_or_there() -> None:
    run = Run()
    missing, there = run.ledger.issue("dropbox", 2)
    run.take(there)
    verdict = run.judge()
    assert verdict.faults() == {}
    assert missing not in {each.number for each in run.journal}


def test_a_number_is_read_back_from_a_body() -> None:
    number = Number("stomp", 3, 17)
    assert Number.of(number.body) == number
    assert Number.of(b"hello") is None
    assert Number.of(b"\xff/x/y/") is None


def test_losses_before_the_journal_are_told_from_those_behind_it() -> None:
    for spoil, count in ((lose, 0), (lose_before_the_journal, 1)):
        run = Run()
        spoil(run)
        assert run.judge().total.not_journaled == count
