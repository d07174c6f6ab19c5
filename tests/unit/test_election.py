"""Who leads, from what was asked and answered."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.kafka.retry import Outage
from engine.supervision.election import Election, OtherLeader, Term
from engine.supervision.parts import stands_for_election
from routes.config import loads
from tests.unit.clock import Clock

if TYPE_CHECKING:
    pass

SCRIPT = Path(__file__).with_name("parts_for_tests.py")
SECONDS = 20
CONFIGURATION = """\
bridge.id=b1
kafka.bootstrap.servers=127.0.0.1:1
source.jms.type=stomp
source.jms.url=stomp://127.0.0.1:1
source.jms.destinations=queue:a
routes.all.in.include=TRUE
routes.all.out.topic=out
"""


def test_a_leader_leads_from_the_answer_on_and_not_for_a_whole_session_from_the_question() -> None:
    clock = Clock()
    term = Term(10, clock)
    term.assigned()
    assert term.is_to_ask
    number = term.ask()
    assert term.until == 0
    clock.now += 3
    term.answered(number, confirmed=True)
    assert term.until == 108


def test_questions_are_asked_now_and_then_and_only_with_the_partition() -> None:
    clock = Clock()
    term = Term(10, clock)
    assert not term.is_to_ask
    term.assigned()
    term.ask()
    assert not term.is_to_ask
    clock.now += 1
    assert term.is_to_ask
    term.lost()
    assert not term.is_to_ask


def test_a_question_that_is_refused_or_stays_without_an_answer_changes_nothing() -> None:
    clock = Clock()
    term = Term(10, clock)
    term.assigned()
    term.answered(term.ask(), confirmed=True)
    clock.now += 5
    term.answered(term.ask(), confirmed=False)
    term.ask()
    assert term.until == 108


def test_who_loses_the_partition_leads_no_more_whatever_is_answered_then() -> None:
    term = Term(10, Clock())
    term.assigned()
    first, second = term.ask(), term.ask()
    term.answered(first, confirmed=True)
    term.lost()
    assert term.until == 0
    term.answered(second, confirmed=True)
    assert term.until == 0


def test_who_is_unknown_to_the_group_leads_no_more_before_the_group_says_so() -> None:
    term = Term(10, Clock())
    term.assigned()
    first, second = term.ask(), term.ask()
    term.answered(first, confirmed=True)
    term.deposed()
    term.answered(second, confirmed=True)
    assert term.until == 0
    assert term.has_partition
    term.answered(term.ask(), confirmed=True)
    assert term.until == 108


def test_answers_that_come_late_do_not_shorten_the_term() -> None:
    clock = Clock()
    term = Term(10, clock)
    term.assigned()
    first = term.ask()
    clock.now += 2
    term.answered(term.ask(), confirmed=True)
    term.answered(first, confirmed=True)
    assert term.until == 110


def test_another_bridge_leads_for_a_session_after_its_last_offset() -> None:
    clock = Clock()
    other = OtherLeader("me", 10, clock)
    assert not other.leads
    other.committed(7, "b")
    clock.now += 9
    assert (other.leads, other.name) == (True, "b")
    other.committed(8, "b")
    clock.now += 9
    assert other.leads
    other.committed(8, "b")
    clock.now += 2
    assert not other.leads


def test_no_bridge_leads_after_one_that_resigned() -> None:
    other = OtherLeader("me", 10, Clock())
    other.committed(7, "b")
    other.committed(8, "")
    assert (other.leads, other.name) == (False, "")


def test_what_a_bridge_has_committed_itself_does_not_tell_of_another_leader() -> None:
    other = OtherLeader("me", 10, Clock())
    other.committed(7, "me")
    assert (other.leads, other.name) == (False, "")


def test_a_group_that_kafka_answers_for_and_in_which_no_bridge_leads_is_joined_anew() -> None:
    election = Election(loads(CONFIGURATION))
    election._led_at = time.monotonic()
    election._check()
    assert not election._is_broken
    election._led_at -= 3 * 10 + 1
    election._check()
    assert election._is_broken


def test_a_kafka_that_does_not_answer_is_no_reason_to_join_anew() -> None:
    election, clock = Election(loads(CONFIGURATION)), Clock()
    election._outage = Outage(loads(CONFIGURATION).kafka_access, clock)
    clock.now += 10
    election._led_at = time.monotonic() - 110
    election._check()
    assert not election._is_broken
    assert election.why_not == "waiting for Kafka at 127.0.0.1:1"
    assert not election.stands_by


@pytest.mark.parametrize(
    ("only", "stands"), [(None, True), ("router", True), ("sources", False), ("source:a", False), ("kafka", False)]
)
def test_bridges_with_a_router_stand_for_election(only: str | None, stands: bool) -> None:
    assert stands_for_election(only) is stands
