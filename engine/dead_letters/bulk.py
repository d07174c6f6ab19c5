"""Settling of all open dead letters that match, for the status page: counted first, settled once that is confirmed.

Both are done in a thread of their own, one run at a time, and stop in order when they are cancelled. Letters that come
after the count are left out of the run. Nothing of a run is kept: the letters that it has settled are in the audit, and
all others stay open.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

import structlog

from engine.dead_letters.replay import Histogram, Options, ReplayOutcome, discard, replay
from engine.dead_letters.state import LetterState
from engine.errors import UsageError
from engine.kafka.reader import KafkaTopicReader
from engine.kafka.topics import exists
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from engine.dead_letters.replay import Group, HistogramRow, Replayed
    from engine.dead_letters.store import DeadLetterStore

__all__ = ["BulkAction", "BulkReport", "BulkRun", "BulkStage", "BulkTask"]

_WOULD = (ReplayOutcome.WOULD_REPLAY, ReplayOutcome.WOULD_QUARANTINE, ReplayOutcome.WOULD_DISCARD)
_SETTLED = (ReplayOutcome.REPLAYED, ReplayOutcome.QUARANTINED, ReplayOutcome.DISCARDED)
_log = structlog.get_logger(__name__)


class BulkAction(StrEnum):
    """Actions on all letters that match."""

    REPLAY = "replay"
    DISCARD = "discard"


class BulkStage(StrEnum):
    """Stages of a run."""

    COUNTING = "counting"
    COUNTED = "counted"
    """Counted, and not confirmed yet."""
    SETTLING = "settling"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def is_busy(self) -> bool:
        """True while a thread works."""
        return self in (BulkStage.COUNTING, BulkStage.SETTLING)


@dataclass(frozen=True, slots=True)
class BulkTask:
    """The letters to settle, and the manner."""

    action: BulkAction
    store: DeadLetterStore
    options: Options
    """Filters, quarantine and actor; the state is always open, and the ends are those at the count."""
    words: tuple[tuple[str, str], ...] = ()
    """Names and values of the filters, as a user reads them."""


@dataclass(frozen=True, slots=True)
class BulkReport:
    """State of a run at one moment."""

    token: str
    """Names the run; a confirmation has to show it."""
    task: BulkTask
    begun_ms: int
    """Time of the count, in milliseconds since 1970."""
    stage: BulkStage = BulkStage.COUNTING
    read: int = 0
    """Number of offsets that the stage has read."""
    total: int = 0
    """Number of offsets that it has to read."""
    expected: tuple[tuple[Group, HistogramRow], ...] = ()
    """Result of the count: letters by reason, route and outcome that each would have."""
    outcomes: Mapping[ReplayOutcome, int] = field(default_factory=dict)
    """Numbers of letters that were treated, by outcome."""
    trouble: str = ""
    """Reason why the run has failed."""

    @property
    def wanted(self) -> int:
        """Number of letters that the count found to settle."""
        return sum(row.count for group, row in self.expected if group.outcome in _WOULD)

    @property
    def matching(self) -> int:
        """Number of letters that the count found, those among them that cannot be settled included."""
        return sum(row.count for _, row in self.expected)

    @property
    def settled(self) -> int:
        """Number of letters that the run has settled."""
        return sum(self.outcomes.get(each, 0) for each in _SETTLED)

    @property
    def skipped(self) -> int:
        """Number of letters that the run has treated and not settled."""
        return sum(self.outcomes.values()) - self.settled

    @property
    def left(self) -> int:
        """Number of letters that the count found and the run has not treated; others may have settled them since."""
        return max(self.matching - sum(self.outcomes.values()), 0)


class BulkRun:
    """The one run of a bridge at a time, and its last report. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._report: BulkReport | None = None
        self._stop = Event()

    @property
    def report(self) -> BulkReport | None:
        """State of the last run; None if there was none since the process started."""
        return self._report

    def count(self, task: BulkTask) -> None:
        """Begins to count the letters of a task; UsageError if another run is at work."""
        with self._lock:
            self.check_free()
            self._stop = Event()
            self._report = BulkReport(secrets.token_hex(8), task, round(time.time() * 1000))
            self._start(self._count, self._report, self._stop)

    def settle(self, token: str) -> None:
        """Begins to settle the letters that were counted; UsageError if the count with that token does not stand."""
        with self._lock:
            self.check_free()
            if self._report is None or self._report.token != token or self._report.stage is not BulkStage.COUNTED:
                msg = "this count does not stand any more: the bridge was restarted, or others were counted since"
                raise UsageError(msg)
            self._stop = Event()
            self._report = replace(self._report, stage=BulkStage.SETTLING, read=0, total=0)
            self._start(self._settle, self._report, self._stop)

    def cancel(self) -> None:
        """Has the run stop after the transaction under way; drops a count that is not confirmed."""
        with self._lock:
            self._stop.set()
            if self._report is not None and self._report.stage is BulkStage.COUNTED:
                self._report = replace(self._report, stage=BulkStage.CANCELLED)

    def check_free(self) -> None:
        """Raises UsageError if a run is at work: of two replays at once the later one would end the earlier one."""
        report = self._report
        if report is not None and report.stage.is_busy:
            actor, action = report.task.options.actor, report.task.action
            what = f"{action} {report.wanted:,}" if report.stage is BulkStage.SETTLING else f"count, to {action} them,"
            msg = (
                f"{actor.user} on {actor.host} has the bridge {what} dead letters at this moment; wait until that has "
                "ended, or cancel it"
            )
            raise UsageError(msg)

    def _start(self, work: Callable[[BulkReport, Event], None], begun: BulkReport, stop: Event) -> None:
        def run() -> None:
            try:
                work(begun, stop)
            except BridgeError as error:
                self._note(stage=BulkStage.FAILED, trouble=str(error))
            except Exception:
                _log.exception("a run over all dead letters that match has failed")
                self._note(stage=BulkStage.FAILED, trouble="a fault of the bridge; its log has the details")

        # A daemon: the end of the bridge does not wait for it, and Kafka ends its transaction.
        Thread(target=run, name="all dead letters", daemon=True).start()

    def _count(self, begun: BulkReport, stop: Event) -> None:
        task = begun.task
        topic = task.store.source(quarantine=task.options.quarantine)
        ends: dict[int, int] = {}
        if not task.options.quarantine or exists(task.store.kafka, topic):
            with KafkaTopicReader(task.store.kafka, topic) as reader:
                ends = {partition: high for partition, (_, high) in reader.bounds().items()}
        options = replace(task.options, state=LetterState.OPEN, ends=ends)
        self._note(task=replace(task, options=options))
        histogram = Histogram()
        for each in self._replayed(task, options, stop, dry_run=True):
            histogram.add(each)
        stage = BulkStage.CANCELLED if stop.is_set() else BulkStage.COUNTED
        self._note(stage=stage, expected=tuple(histogram.rows))

    def _settle(self, begun: BulkReport, stop: Event) -> None:
        task, outcomes = begun.task, Counter[ReplayOutcome]()
        actor = task.options.actor
        try:
            for each in self._replayed(task, task.options, stop):
                outcomes[each.outcome] += 1
                self._note(outcomes=dict(outcomes))
        finally:
            count = sum(outcomes[each] for each in _SETTLED)
            _log.info(f"dead letters: {task.action} all that match", by=actor.user, host=actor.host, count=count)
        is_cancelled = stop.is_set() and outcomes.total() < begun.matching
        self._note(stage=BulkStage.CANCELLED if is_cancelled else BulkStage.DONE)

    def _replayed(self, task: BulkTask, options: Options, stop: Event, *, dry_run: bool = False) -> Iterator[Replayed]:
        settle = replay if task.action is BulkAction.REPLAY else discard

        def report(read: int, total: int) -> None:
            self._note(read=read, total=total)

        return settle(task.store, None, dry_run=dry_run, options=options, stop=stop, report=report)

    def _note(self, **changes: Any) -> None:
        with self._lock:
            assert self._report is not None, "a run has a report"
            self._report = replace(self._report, **changes)
