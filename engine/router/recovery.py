"""Recovery: makes the next generation from the last one, so that no message is lost and none is published twice.

After a clean stop the last generation holds its last positions. After a crash the outputs tell them: each output record
holds the journal position from which it was made. Recovery takes the journal records since Spark's last commit, up to
the highest position found in an output, and routes those that are in no output once, by the routes of the last run. The
new generation starts behind them. If the process dies during recovery, the next run repeats it with the same result.

    committed          highest published           end of the journal
        |  . # # . # # . #  |                           |
         - - - - - - - - - - - - - - - - - - - - - - - -
           # published already, left alone
           . not published: routed here     the new generation starts behind

Others may write to the outputs too. Records that the last run has not sealed, and positions that the journal did not
have when it ended, are counted and named in the log, and change nothing (docs/adr/0032-seals.md).
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog
from pyspark.sql import functions as F

from engine.errors import HardFailureError
from engine.kafka.clients import KafkaClients
from engine.kafka.errors import KafkaUnavailableError
from engine.kafka.offsets import ANSWER_SECONDS, offset_summary
from engine.kafka.topics import BridgeTopics, exists
from engine.router.generation import Start
from engine.router.kafka_io import RUN_CHARACTERS, Seal
from engine.router.last_progress import check_end, check_journal
from engine.router.past_routes import configuration_of, routes_text
from engine.router.plan.refusals import Refusals
from engine.router.plan.route import route
from engine.router.published import Proof, Published, find, records, slices
from engine.spark.cluster import lease_seconds
from engine.spark.session import running_tasks
from engine.spark.settings import is_cluster
from routes.errors import ConfigurationError
from routes.model import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from engine.kafka.offsets import KafkaOffsets, Offsets, Topics
    from engine.router.generation import Committed, Generation, Generations, RouterProgress
    from engine.router.kafka_io import KafkaIO
    from engine.router.meter import Meter
    from engine.router.published import ForeignRecords
    from engine.router.row_counters import RowCounters
    from engine.seals import SealKeys
    from engine.telemetry.meters import SparkMetrics
    from routes.model import Config, Route

__all__ = ["Recovery", "outputs", "seal_of", "written_since"]

_SLICE_RECORDS, _SLICE_RECORDS_OF_PARTITION = 1_000_000, 10_000
_MARGIN_MS = 60_000
"""Milliseconds by which the clocks of this machine and of Kafka may differ."""
_STILL_SECONDS, _STILL_TIMES = 0.25, 3
_STILL_AT_MOST_SECONDS = 5.0
_LONGER_SECONDS = 120.0
"""Seconds beyond `router.outage-timeout` for which recovery waits for earlier records; producers try for less, see
`engine.router.kafka_io`."""

_NO_KEY = (
    "the secret of the last run is not known here, since its checkpoint is elsewhere or gone: its records are told by "
    "the id of that run alone, which whoever reads the topics can forge. Set the same bridge.secret on all hosts of "
    "this bridge"
)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Recovery:
    """Maker of the next generation; runs before the query, while this router holds the checkpoint's lock."""

    config: Config
    kafka_io: KafkaIO
    kafka: KafkaOffsets
    generations: Generations
    counters: RowCounters
    meter: Meter
    metrics: SparkMetrics
    keys: Sequence[SealKeys]
    """Keys that are known, those of the new generation first."""
    alone_since: float
    """Time of `time.monotonic` from which on no other driver works with the checkpoint."""
    report: Callable[[str], None]
    """Called with a line for users about the progress of the recovery."""
    refused: Mapping[tuple[int, int, int], str]
    """Messages that Kafka has refused, see `Refusals.messages`."""
    resolved: Callable[[Config], Config]
    """Resolves templates of topics, see `engine.kafka.topics.BridgeTopics.routes`."""
    environment: Mapping[str, str]
    """Variables that the routes of the last run refer to."""

    def run(self, last: RouterProgress | None) -> Generation:
        """Makes the next generation; `last` is the progress of the last one, None before the first start.

        Raises:
            HardFailureError: the last generation belongs to another journal.
            KafkaUnavailableError: Kafka does not answer.
        """
        journal = self.config.journal.topic
        starts, ends = (found.get(journal, {}) for found in (self.kafka.starts([journal]), self._journal_ends()))
        positions = dict(starts) if last is None else self._resume(last, starts, ends)
        start = Start(
            journal=journal,
            journal_id=self.kafka.identity(journal),
            positions=positions,
            outputs=self.kafka.ends(outputs(self.config.routes, self.config.letter_topic)),
            bridge_id=self.config.bridge_id,
            routes=routes_text(self.config.text),
            run=uuid.uuid4().hex,
            after=last.start.run if last else "",
            seal=self.keys[0].id,
            sequence=(last.start.sequence if last else 0) + 1,
        )
        generation = self.generations.create(start)
        _log.info("router starts", generation=generation.number, **offset_summary(positions))
        return generation

    def _journal_ends(self) -> Topics:
        return self.kafka.ends([self.config.journal.topic])

    def _resume(self, last: RouterProgress, starts: Offsets, ends: Offsets) -> Offsets:
        journal, checkpoint = self.config.journal, self.config.router.checkpoint
        check_journal(journal, checkpoint, last.start, self.kafka.identity(journal.topic))
        positions = {**starts, **last.positions}
        check_end(journal, checkpoint, positions, ends)
        positions = self._kept(positions, starts)
        if last.stopped is None:
            positions = self._repair(last.start, positions, written_since(last.committed, time.time() * 1000))
        return positions

    def _kept(self, positions: Offsets, starts: Offsets) -> Offsets:
        """The positions, moved forward to the journal's first offsets; logs and counts the records that are gone."""
        lost = {p: starts[p] - at for p, at in positions.items() if starts.get(p, 0) > at}
        if lost:
            _log.error(
                "journal records are gone before they were routed; raise journal.retention",
                journal=self.config.journal.topic,
                records_by_partition=lost,
            )
            self.meter.lost(sum(lost.values()))
        return {partition: max(at, starts.get(partition, 0)) for partition, at in positions.items()}

    def _repair(self, start: Start, positions: Offsets, since_ms: int | None) -> Offsets:
        """Publishes the records that the last run left out; returns the positions behind its published ones."""
        routes = self._routes(start)
        self._await_sends()
        # The last run has ended, and has read no further than this.
        ends = self.kafka.ends([start.journal], committed=True).get(start.journal, {})
        before, after = self._written(outputs(routes.routes, routes.letter_topic), start, since_ms)
        if before == after:
            return positions
        published = self._published(self._proof(start, positions, ends, routes.letter_topic), before, after)
        highest = published.highest
        behind = {partition: highest.get(partition, at - 1) + 1 for partition, at in positions.items()}
        if routes.has_copies or sum(behind.values()) - sum(positions.values()) > published.count:
            journal = self.kafka_io.range({start.journal: positions}, {start.journal: behind}, committed=True)
            self._publish(routes, journal, published, after, seal_of(start, self.keys))
        return behind

    def _proof(self, start: Start, positions: Offsets, ends: Offsets, letters: str) -> Proof:
        """The records that count as written by the last run, and the positions that are believed."""
        seal = seal_of(start, self.keys)

        def is_own(found: Column, position: Column, topic: Column) -> Column:
            if not start.seal:
                # Of a version without seals. The next run has them.
                return F.lit(True)
            if seal is None:
                return found.cast("string").startswith(start.run[:RUN_CHARACTERS])
            return self.kafka_io.is_sealed(seal.key, found, position, topic)

        if start.seal and seal is None:
            _log.error(_NO_KEY, run=start.run)
        return Proof(start.journal, start.bridge_id, positions, ends, is_own, letters)

    def _published(self, proof: Proof, before: Topics, after: Topics) -> Published:
        """The journal positions in the outputs from `before` up to `after`."""
        published, read, total = Published(), 0, records(before, after)
        for starts, ends in slices(before, after, _SLICE_RECORDS, _SLICE_RECORDS_OF_PARTITION):
            self.report(f"recovering: {read:,} of {total:,} records read")
            frame = self.kafka_io.range(starts, ends, committed=False)
            published |= find(frame, proof)
            read += records(starts, ends)
            self.metrics.scanned(records(starts, ends))
        self._tell(published.foreign)
        self.report(f"recovering: publishing what the last run left out of {published.count:,} messages")
        return published

    def _tell(self, foreign: Iterable[ForeignRecords]) -> None:
        """Counts the records that others wrote, and names the first of each topic in the log."""
        for each in foreign:
            self.metrics.foreign(each.records)
            _log.warning(
                "records that the last run did not write name this bridge and its journal: they change nothing",
                topic=each.topic,
                records=each.records,
                first=f"{each.partition}:{each.offset}",
            )

    def _routes(self, start: Start) -> Config:
        """The present configuration with the routes and sinks of the last run."""
        try:
            routes = configuration_of(start, self.config, self.environment)
        except ConfigurationError as error:
            msg = f"the routes of the last run, kept in {self.config.router.checkpoint}, cannot be read: {error}"
            raise HardFailureError(msg) from error
        routes = replace(routes, routes=tuple(self._with_policy(each) for each in routes.routes))
        if not exists(KafkaClients(self.config.kafka_access), routes.letter_topic, ANSWER_SECONDS):
            # Dead letters go to the present topic; what the former one held is gone with it.
            present = self.config.routing.dead_letter_topic
            routes = replace(routes, routing=replace(routes.routing, dead_letter_topic=present))
        return self.resolved(routes)

    def _with_policy(self, of_then: Route) -> Route:
        """A route of the last run that stops the router, with its present policy.

        One copy of a message may be published and the next one fail. Then the operator chooses another policy: the
        routes of the last run are those of the message in any case.
        """
        if of_then.on_soft_failure is not Policy.STOP:
            return of_then
        present = {route.name: route.on_soft_failure for route in self.config.routes}
        return replace(of_then, on_soft_failure=present.get(of_then.name, Policy.DEAD_LETTER))

    def _written(self, topics: list[str], start: Start, since_ms: int | None) -> tuple[Topics, Topics]:
        """Starts and ends of the parts of existing outputs that the last run may have written."""
        after = self._settled_ends(topics)
        if vanished := sorted(set(topics) - set(after)):
            _log.warning("topics of the last run are gone; messages for them become dead letters", topics=vanished)
        before, after = in_both(self.kafka.starts(after), after)
        for since in (start.outputs, {} if since_ms is None else self.kafka.since(after, since_ms)):
            for topic, offsets in before.items():
                for partition in offsets:
                    begin = since.get(topic, {}).get(partition, 0)
                    # An offset behind the end is from an earlier topic of that name, which was deleted since.
                    if begin <= after[topic][partition]:
                        offsets[partition] = max(offsets[partition], begin)
        return before, after

    def _settled_ends(self, topics: list[str]) -> Topics:
        """The ends of the topics, once all records of the last run have arrived; none is under way any more."""
        deadline = time.monotonic() + _STILL_AT_MOST_SECONDS
        ends, same = self.kafka.ends(topics), 0
        # Records that a killed process gave to its sockets still arrive. The deadline is for topics that others write
        # to all the time.
        while same < _STILL_TIMES and time.monotonic() < deadline:
            time.sleep(_STILL_SECONDS)
            before, ends = ends, self.kafka.ends(topics)
            same = same + 1 if ends == before else 0
        return ends

    def _await_sends(self) -> None:
        """Waits until all records that were sent before have arrived or failed; producers give up in time.

        In a cluster these may also be of executors of an earlier driver, which hold a lease from it.
        """
        spark = self.kafka_io.spark
        if is_cluster(spark.sparkContext.master):
            time.sleep(max(0.0, self.alone_since + lease_seconds(spark) - time.monotonic()))
        deadline = time.monotonic() + self.config.router.outage_timeout_seconds + _LONGER_SECONDS
        self._await(lambda: not running_tasks(spark), deadline)
        self.counters.refresh()
        self._await(lambda: not self.counters.under_way(), deadline)

    @staticmethod
    def _await(condition: Callable[[], bool], deadline: float) -> None:
        while not condition():
            if time.monotonic() > deadline:
                msg = "records of the last query are still on their way"
                raise KafkaUnavailableError(msg)
            time.sleep(_STILL_SECONDS)

    def _publish(
        self, routes: Config, journal: DataFrame, published: Published, topics: Topics, seal: Seal | None
    ) -> None:
        """Publishes what is missing of a part of the journal."""
        of_run = BridgeTopics(routes)
        refusals = Refusals(of_run.unwritable(ANSWER_SECONDS), self.refused)
        limits, now = of_run.limits(ANSWER_SECONDS), self.counters.now()
        if routes.has_copies:
            # Which copies a message has is known once it is routed.
            routed = route(journal, routes, limits, now, refusals, published.missing_copies_in)
        else:
            routed = route(published.missing_in(journal), routes, limits, now, refusals)
        self.counters.begin(routed.outcomes, len(routes.publications))
        self.meter.begin(routes.publications, routes.journal.topic, routed.outcomes)
        self.kafka_io.write(routed, sorted(topics), sum(map(len, topics.values())), seal)
        reading = self.counters.read()
        self.meter.update(reading)
        self.metrics.published(reading.acknowledged)
        _log.info("published the records that the last run had left out", records=reading.acknowledged)


def seal_of(start: Start, keys: Iterable[SealKeys]) -> Seal | None:
    """The seal of a run's records; None if they have none, or its secret is not among those of `keys`."""
    for each in keys:
        if each.id == start.seal:
            return Seal(each.of_records(start.journal, start.journal_id), start.run)
    return None


def written_since(committed: Committed | None, now_ms: float) -> int | None:
    """A time that is before every record written after the commit, in milliseconds since 1970; None if there is none.

    None also if the clock was set back since the commit: later records may then look older than the commit.
    """
    return None if committed is None or committed.time_ms > now_ms else committed.time_ms - _MARGIN_MS


def in_both(starts: Topics, ends: Topics) -> tuple[Topics, Topics]:
    """Starts and ends of the partitions that are in both answers of Kafka.

    A partition may have been added, or a topic deleted, between the two questions.
    """
    places = {topic: starts[topic].keys() & ends[topic].keys() for topic in starts.keys() & ends.keys()}
    kept = [{topic: {p: answer[topic][p] for p in places[topic]} for topic in places} for answer in (starts, ends)]
    return kept[0], kept[1]


def outputs(routes: Iterable[Route], letters: str) -> list[str]:
    """The topics to which a router publishes; `letters` is that of dead letters."""
    return sorted({topic for route in routes for target in route.targets for topic in target.topics} | {letters})
