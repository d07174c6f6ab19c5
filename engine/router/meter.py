"""Metrics and log lines, under the names of routes and topics, made from the JVM's counts."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from typing import TYPE_CHECKING

import structlog
from prometheus_client.samples import Exemplar

from engine.message import Message
from engine.printable import printable
from engine.telemetry.metrics import NO_ROUTE, OTHER_ADDRESSES, RETENTION, UNMATCHED
from routes.model import Policy
from routes.predicate.nodes import ADDRESS
from routes.sections import HELD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.router.lag import Lag
    from engine.router.plan.failures import StoppedByPolicyError
    from engine.router.plan.route import RoutingOutcome
    from engine.router.row_counters import Example, Note, RowCounts
    from engine.telemetry.meters import RouterMetrics
    from routes.model import Publication

__all__ = ["Meter"]

_EXEMPLAR_SECONDS = 600.0
"""Age above which an exemplar is left out: it is no longer useful, and its message may be gone from the journal."""
_LINES, _LINES_SECONDS = 20, 10.0
"""Limit of log lines about single messages: number of lines, and seconds in which it applies."""

_MOST_ADDRESSES = 100

_log = structlog.get_logger(__name__)

_Series = tuple[str, ...]
"""A metric series: the name of a method of `RouterMetrics`, followed by its labels."""


class Meter:
    """Sums of the readings of successive queries; series continue although the routes may differ."""

    def __init__(self, metrics: RouterMetrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self._clock = clock
        self._publications: Sequence[Publication] = ()
        self._journal = ""
        self._outcomes: tuple[RoutingOutcome, ...] = ()
        self._before: Counter[_Series] = Counter()
        self._now: Counter[_Series] = Counter()
        self._latency_before: tuple[Sequence[int], float] = ((), 0.0)
        self._latency: tuple[Sequence[int], float] = ((), 0.0)
        self._lines = 0
        self._quiet = 0
        self._lines_since = clock()
        self._unnoted = 0
        self._addresses: set[str] = set()

    def begin(self, publications: Sequence[Publication], journal: str, outcomes: tuple[RoutingOutcome, ...]) -> None:
        """Prepares for the readings of a new query, which count from 0, with its publications, topic and outcomes."""
        self._before += self._now
        self._latency_before = _added(self._latency_before, self._latency)
        self._now, self._latency = Counter(), ((), 0.0)
        self._publications, self._journal, self._outcomes, self._unnoted = publications, journal, outcomes, 0

    def update(self, reading: RowCounts) -> None:
        """Publishes a reading's figures and logs its failures."""
        self._now = self._series(reading)
        for (method, *labels), count in (self._before + self._now).items():
            getattr(self._metrics, method)(*labels, count)
        self._latency = (reading.buckets, reading.latency_seconds)
        buckets, seconds = _added(self._latency_before, self._latency)
        cumulative = list(itertools.accumulate(buckets))
        now = time.time()
        exemplars = [_exemplar(example, now) for example in reading.examples]
        self._metrics.latency(cumulative[:-1], seconds, cumulative[-1], exemplars)
        self._log_failures(reading)

    def lag(self, lag: Lag) -> None:
        """Publishes the router's lag."""
        for partition, records in lag.records.items():
            self._metrics.lag(partition, records)
        self._metrics.lag_seconds(lag.seconds)

    def lost(self, records: int) -> None:
        """Counts journal records that retention removed before they were routed."""
        self._count("unrouted", RETENTION, records)

    def stopped(self, error: StoppedByPolicyError) -> None:
        """Counts a message that stops the router."""
        self._count("failed", error.route, error.destination, error.reason, Policy.STOP.value, 1)

    def _count(self, method: str, *labels_and_count: str | int) -> None:
        *labels, count = labels_and_count
        series = (method, *(str(label) for label in labels))
        self._before[series] += int(count)
        getattr(self._metrics, method)(*labels, self._before[series] + self._now[series])

    def _series(self, reading: RowCounts) -> Counter[_Series]:
        series: Counter[_Series] = Counter()
        for outcome, row in zip(self._outcomes, reading.counts, strict=True):
            for publication, count in zip((None, *self._publications), row, strict=True):
                if not count:
                    continue
                if outcome.kind == "unrouted" or outcome.reason == HELD:
                    series["unrouted", outcome.reason] += count
                elif outcome.kind == "routed" and publication is not None:
                    topic = publication.target.topic or str(publication.target.address)
                    series["routed", publication.route.name, topic] += count
                else:
                    place = (publication.route.name, str(publication.target)) if publication else (NO_ROUTE, NO_ROUTE)
                    series["failed", *place, outcome.reason, outcome.kind] += count
        for destination, count in reading.destinations.items():
            series[UNMATCHED, self._address(destination)] += count
        if reading.elsewhere:
            series[UNMATCHED, OTHER_ADDRESSES] += reading.elsewhere
        return series

    def _address(self, destination: str) -> str:
        """Value of the label for a destination; the addresses told apart are bounded over all queries, too."""
        address = printable(Message(headers={"JMSDestination": destination}).text_of(ADDRESS) or "")
        if address not in self._addresses and len(self._addresses) >= _MOST_ADDRESSES:
            return OTHER_ADDRESSES
        self._addresses.add(address)
        return address

    def _log_failures(self, reading: RowCounts) -> None:
        now = self._clock()
        if now - self._lines_since >= _LINES_SECONDS:
            if self._quiet:
                _log.warning("more messages failed than are logged one by one", messages=self._quiet)
            self._lines_since, self._lines, self._quiet = now, 0, 0
        for note in reading.notes:
            if self._lines < _LINES:
                self._lines += 1
                self._log_failure(note)
            else:
                self._quiet += 1
        self._quiet += reading.unnoted - self._unnoted
        self._unnoted = reading.unnoted

    def _log_failure(self, note: Note) -> None:
        outcome = self._outcomes[note.outcome]
        publication = None if note.publication is None else self._publications[note.publication]
        _log.warning(
            "message skipped" if outcome.kind == Policy.SKIP else "message dead-lettered",
            message=note.message or "without id",
            route=publication and publication.route.name,
            destination=publication and str(publication.target),
            reason=outcome.reason,
            position=f"{self._journal}:{note.partition}:{note.offset}",
        )


def _exemplar(example: Example | None, now: float) -> Exemplar | None:
    if example is None or abs(now - example.time_ms / 1000) > _EXEMPLAR_SECONDS:
        return None
    # The form that `jms-bridge explain --journal` takes.
    place = f"{example.partition}:{example.offset}"
    return Exemplar({"journal": place}, example.latency_ms / 1000, example.time_ms / 1000)


def _added(left: tuple[Sequence[int], float], right: tuple[Sequence[int], float]) -> tuple[Sequence[int], float]:
    buckets = [a + b for a, b in itertools.zip_longest(left[0], right[0], fillvalue=0)]
    return buckets, left[1] + right[1]
