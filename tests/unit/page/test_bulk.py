"""All dead letters that match: counted, confirmed, settled in the background, one run at a time."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from engine.dead_letters import bulk
from engine.dead_letters.audit import Actor
from engine.dead_letters.bulk import BulkAction, BulkRun, BulkStage, BulkTask
from engine.dead_letters.replay import Options, Replayed, ReplayOutcome
from engine.dead_letters.state import LetterState
from engine.dead_letters.store import DeadLetterStore
from engine.errors import UnreachableError, UsageError
from tests.unit.dead_letters.letters import letter
from tests.unit.kafka.reader_stand_in import ReaderStandIn
from tests.unit.page.bridge import LOGIN, Page

PLACE = "/dead-letters/all"
SAME = {**LOGIN, "Origin": "http://127.0.0.1"}
WOULD = [ReplayOutcome.WOULD_REPLAY, ReplayOutcome.WOULD_REPLAY, ReplayOutcome.NOT_REPLAYABLE]
DONE = [ReplayOutcome.REPLAYED, ReplayOutcome.REPLAYED, ReplayOutcome.NOT_REPLAYABLE]


class Letters:
    """Stands for Kafka: tells these outcomes, each when it may."""

    def __init__(self) -> None:
        self.outcomes = {True: WOULD, False: DONE}
        self.asked: list[tuple[str, bool, Options]] = []
        self.error: Exception | None = None
        self.goes_on = Event()
        self.goes_on.set()

    def settle(self, name: str) -> Any:
        def done(
            _: DeadLetterStore, positions: None, *, dry_run: bool, options: Options, stop: Event, report: Any
        ) -> Iterator[Replayed]:
            assert positions is None
            self.asked.append((name, dry_run, options))
            for number, outcome in enumerate(self.outcomes[dry_run]):
                report(number, len(self.outcomes[dry_run]))
                while not self.goes_on.wait(0.01):
                    if stop.is_set():
                        return
                yield Replayed(letter(), outcome)
                if self.error:
                    raise self.error

        return done


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Letters:
    made = Letters()

    class Reader(ReaderStandIn):
        def bounds(self) -> Mapping[int, tuple[int, int]]:
            return {0: (2, 9), 1: (0, 4)}

    monkeypatch.setattr(bulk, "KafkaTopicReader", Reader)
    monkeypatch.setattr(bulk, "exists", lambda *_: False)
    for name in BulkAction:
        monkeypatch.setattr(bulk, name, made.settle(name))
    return made


@pytest.fixture
def page(tmp_path: Path, kafka: Letters) -> Page:
    return Page(tmp_path, login=True)


@pytest.fixture
def task(page: Page) -> BulkTask:
    return BulkTask(BulkAction.REPLAY, DeadLetterStore.of(page.config), Options(actor=Actor("anna", "desk")))


def until(run: BulkRun, *stages: BulkStage) -> bulk.BulkReport:
    deadline = time.monotonic() + 10
    while run.report is None or run.report.stage not in stages:
        assert time.monotonic() < deadline, run.report
        time.sleep(0.01)
    return run.report


def post(page: Page, **fields: str) -> Any:
    seal = page.seal("/try", LOGIN)
    return page.client.post(PLACE, data={"seal": seal, **fields}, headers=SAME, follow_redirects=False)


def shown(page: Page, *told: str) -> str:
    """The page as soon as it says so."""
    deadline = time.monotonic() + 10
    while True:
        text = page.client.get(PLACE, headers=LOGIN).text
        if all(each in text for each in told):
            return text
        assert time.monotonic() < deadline, text
        time.sleep(0.02)


def test_letters_are_counted_and_those_counted_are_settled(kafka: Letters, task: BulkTask) -> None:
    run = BulkRun()
    assert run.report is None
    run.count(task)
    counted = until(run, BulkStage.COUNTED)
    assert (counted.wanted, counted.matching, counted.outcomes) == (2, 3, {})
    run.settle(counted.token)
    done = until(run, BulkStage.DONE)
    assert (done.settled, done.skipped, done.left) == (2, 1, 0)
    assert [(name, dry) for name, dry, _ in kafka.asked] == [("replay", True), ("replay", False)]
    assert {(options.state, tuple((options.ends or {}).items())) for *_, options in kafka.asked} == {
        (LetterState.OPEN, ((0, 9), (1, 4)))
    }


def test_further_runs_are_refused_and_told_who_runs_the_first(kafka: Letters, task: BulkTask) -> None:
    run = BulkRun()
    kafka.goes_on.clear()
    run.count(task)
    for _ in range(10):
        with pytest.raises(UsageError, match="anna on desk has the bridge count, to replay them, dead letters"):
            run.count(task)
    kafka.goes_on.set()
    counted = until(run, BulkStage.COUNTED)
    kafka.goes_on.clear()
    run.settle(counted.token)
    for _ in range(10):
        with pytest.raises(UsageError, match="anna on desk has the bridge replay 2 dead letters at this moment"):
            run.count(task)
    with pytest.raises(UsageError, match="wait until that has ended, or cancel it"):
        run.settle(counted.token)
    kafka.goes_on.set()
    until(run, BulkStage.DONE)


def test_a_count_that_others_have_replaced_cannot_be_confirmed(kafka: Letters, task: BulkTask) -> None:
    run = BulkRun()
    run.count(task)
    first = until(run, BulkStage.COUNTED)
    run.count(task)
    second = until(run, BulkStage.COUNTED)
    with pytest.raises(UsageError, match="this count does not stand any more"):
        run.settle(first.token)
    run.cancel()
    assert until(run, BulkStage.CANCELLED).token == second.token
    with pytest.raises(UsageError, match="this count does not stand any more"):
        run.settle(second.token)
    assert [dry for _, dry, _ in kafka.asked] == [True, True]


@pytest.mark.parametrize("stage", [BulkStage.COUNTING, BulkStage.SETTLING])
def test_a_run_that_is_cancelled_ends_and_says_what_is_left(kafka: Letters, task: BulkTask, stage: BulkStage) -> None:
    run = BulkRun()
    if stage is BulkStage.SETTLING:
        run.count(task)
        counted = until(run, BulkStage.COUNTED)
        kafka.goes_on.clear()
        run.settle(counted.token)
    else:
        kafka.goes_on.clear()
        run.count(task)
    run.cancel()
    ended = until(run, BulkStage.CANCELLED)
    assert ended.left == (3 if stage is BulkStage.SETTLING else 0)
    run.check_free()


@pytest.mark.parametrize(
    ("error", "told"),
    [(UnreachableError("Kafka does not answer"), "Kafka does not answer"), (ValueError("x"), "a fault of the bridge")],
)
def test_a_run_that_fails_says_why_and_what_it_has_done(
    kafka: Letters, task: BulkTask, error: Exception, told: str
) -> None:
    run = BulkRun()
    run.count(task)
    counted = until(run, BulkStage.COUNTED)
    kafka.error = error
    run.settle(counted.token)
    failed = until(run, BulkStage.FAILED)
    assert told in failed.trouble
    assert (failed.settled, failed.left) == (1, 2)


def test_all_that_match_are_replayed_after_a_confirmation_and_the_page_tells_the_result(
    page: Page, kafka: Letters
) -> None:
    fields = {"reason": "unmatched", "since": "2026-11-21", "where": "region = 'emea'"}
    answer = post(page, action="replay", **fields)
    assert (answer.status_code, answer.headers["location"]) == (303, PLACE)
    text = shown(page, "Replay 2 dead letters?")
    for told in ("unmatched", "2026-11-21T00:00:00.000Z", "region = &#39;emea&#39;", "The audit will name anna."):
        assert told in text
    assert "Letters that come after that are not included." in text
    assert "not replayable" in text
    token = re.findall(r'name="token" value="(\w+)"', text)[0]
    assert post(page, action="confirm", token=token).status_code == 303
    text = shown(page, "<h1>Done</h1>")
    assert "<strong>2 of 2 settled</strong>, 1 skipped." in text
    target = "Reason: unmatched, Failed at or after: 2026-11-21T00:00:00.000Z, Where: a predicate"
    assert [(each.user, each.action, each.target, each.result) for each in page.actions.actions] == [
        ("anna", "replay all", target, result) for result in ("", "begun")
    ]
    options = kafka.asked[-1][2]
    assert options.actor.user == "anna"
    assert options.actor.command == (
        "status page: replay --reason unmatched --since 2026-11-21T00:00:00.000Z --where 'region = '\"'\"'emea'\"'\"''"
    )
    assert not options.force
    refused = post(page, action="confirm", token=token)
    assert refused.status_code == 400
    assert "this count does not stand any more" in refused.text


def test_from_the_quarantine_all_are_replayed_by_force(page: Page, kafka: Letters, monkeypatch: Any) -> None:
    monkeypatch.setattr(bulk, "exists", lambda *_: True)
    post(page, action="replay", quarantine="1")
    shown(page, "even though they have had their maximum of replays", "in quarantine")
    options = kafka.asked[0][2]
    assert (options.quarantine, options.force) == (True, True)
    assert options.actor.command == "status page: replay --all --quarantine"


def test_a_page_without_a_run_says_what_a_restart_means(page: Page) -> None:
    text = page.client.get(PLACE, headers=LOGIN).text
    assert "A restart of the bridge ends such a run" in text
    answer = page.client.post(PLACE, data={"action": "replay"}, headers=SAME)
    assert answer.status_code == 403
    for fields, told in (({"action": "drop"}, "there is no action"), ({"action": "replay", "since": "x"}, "from")):
        answer = post(page, **fields)
        assert answer.status_code == 400
        assert told in answer.text


def test_chosen_letters_wait_for_the_run(page: Page, kafka: Letters) -> None:
    post(page, action="discard")
    text = shown(page, "Discard 2 dead letters?")
    kafka.goes_on.clear()
    post(page, action="confirm", token=re.findall(r'name="token" value="(\w+)"', text)[0])
    chosen = {"seal": page.seal("/try", LOGIN), "action": "discard", "position": "0:7", "confirmed": "yes"}
    answer = page.client.post("/dead-letters/settle", data=chosen, headers=SAME)
    assert answer.status_code == 400
    assert "anna on testclient has the bridge discard 2 dead letters at this moment" in answer.text
    post(page, action="cancel")
    shown(page, "Cancelled")
    kafka.goes_on.set()
