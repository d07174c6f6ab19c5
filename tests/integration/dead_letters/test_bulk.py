"""Runs over all dead letters that match, in a real Kafka: bounded, cancelled, ended by others, and gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.dead_letters.audit import Actor, last
from engine.dead_letters.bulk import BulkAction, BulkReport, BulkRun, BulkStage, BulkTask
from engine.dead_letters.letter import Filters
from engine.dead_letters.replay import Options, ReplayOutcome
from engine.embedded import EmbeddedKafka
from tests.conftest import TopicFactory
from tests.integration.buried import Bridge, dead_letters_of, message, replayed
from tests.waiting import until

MANY = 3000
SLOW = Options(actor=Actor("anna", "desk"), per_second=400)


@pytest.fixture
def bridge(tmp_path: Path, kafka: EmbeddedKafka, topic: TopicFactory) -> Bridge:
    return dead_letters_of(kafka, topic, tmp_path)


def reached(run: BulkRun, *stages: BulkStage) -> BulkReport:
    def report() -> BulkReport | None:
        return run.report if run.report is not None and run.report.stage in stages else None

    until(lambda: report() is not None)
    found = report()
    assert found is not None
    return found


def counted(
    bridge: Bridge, run: BulkRun, options: Options = SLOW, action: BulkAction = BulkAction.REPLAY
) -> BulkReport:
    run.count(BulkTask(action, bridge.store, options))
    return reached(run, BulkStage.COUNTED)


def test_a_run_that_is_cancelled_leaves_the_rest_to_the_next_one(bridge: Bridge) -> None:
    bridge.bury(*map(message, range(MANY)))
    bridge.bury(*map(message, range(MANY, MANY + 5)), partition=1)
    run = BulkRun()
    report = counted(bridge, run)
    assert (report.wanted, report.read, report.total) == (MANY + 5, MANY + 5, MANY + 5)
    bridge.bury(message(9999))
    run.settle(report.token)
    until(lambda: (found := run.report) is not None and found.settled > 0)
    run.cancel()
    ended = reached(run, BulkStage.CANCELLED)
    assert 0 < ended.settled < MANY
    assert ended.settled + ended.left == MANY + 5
    assert len(last(bridge.store, 2 * MANY)) == len(bridge.journal()) == ended.settled
    # As after a restart: nothing of the run is known.
    other = BulkRun()
    report = counted(bridge, other, Options(actor=Actor("bob", "desk")), BulkAction.DISCARD)
    assert report.wanted == ended.left + 1
    other.settle(report.token)
    done = reached(other, BulkStage.DONE)
    assert (done.settled, done.left) == (report.wanted, 0)
    assert len(last(bridge.store, 2 * MANY)) == MANY + 6


def test_a_command_that_replays_ends_the_run_which_says_so(bridge: Bridge) -> None:
    bridge.bury(*map(message, range(MANY)))
    run = BulkRun()
    run.settle(counted(bridge, run).token)
    until(lambda: (found := run.report) is not None and found.settled > 0)
    assert bridge.replay(MANY - 1) == [(MANY - 1, ReplayOutcome.REPLAYED)]
    failed = reached(run, BulkStage.FAILED)
    assert "another replay for bridge 'b1' took over" in failed.trouble
    assert len(bridge.journal()) == failed.settled + 1


def test_only_open_letters_that_match_are_counted_and_the_quarantine_is_replayed_by_force(bridge: Bridge) -> None:
    bridge.bury(replayed(message(0), 3), message(1), message(2, JMSExpiration="1"), message(3))
    assert bridge.command("dlt", "discard", "0:3") == 0
    run = BulkRun()
    report = counted(bridge, run, Options())
    assert {(group.outcome, row.count) for group, row in report.expected} == {
        (ReplayOutcome.WOULD_QUARANTINE, 1),
        (ReplayOutcome.WOULD_REPLAY, 1),
        (ReplayOutcome.NOT_REPLAYABLE, 1),
    }
    run.settle(report.token)
    done = reached(run, BulkStage.DONE)
    assert (done.settled, done.skipped, done.left) == (2, 1, 0)
    assert counted(bridge, run, Options(Filters(reasons=frozenset({"unmatched"})))).matching == 0
    report = counted(bridge, run, Options(quarantine=True, force=True))
    assert report.wanted == 1
    run.settle(report.token)
    assert reached(run, BulkStage.DONE).outcomes == {ReplayOutcome.REPLAYED: 1}
    assert counted(bridge, run, Options(quarantine=True, force=True)).matching == 0


def test_a_quarantine_that_is_not_there_is_empty(bridge: Bridge) -> None:
    assert counted(bridge, BulkRun(), Options(quarantine=True)).matching == 0
