"""Source for the Kafka topics of another cluster than that of the journal.

A transaction does not reach into another cluster, so the positions are kept beside the journal (`source_positions`), in
the transactions that write the records there. The workers are members of a consumer group of the bridge's own cluster,
which divides the shares of the other cluster's partitions among them. Its generation fences: a worker whose share has
gone to another cannot commit any more (KIP-447). At the other cluster the source only reads.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog

from engine.connectors.base import NotConnectedError
from engine.connectors.kafka.source import KafkaSource, group_of
from engine.connectors.kafka.source_positions import KeptPosition, SourcePositions
from engine.errors import HardFailureError
from engine.kafka.clients import member
from engine.kafka.errors import MISSING, KafkaUnavailableError, is_fatal, refusal
from engine.kafka.journal import JournalError
from engine.kafka.types import OFFSET_END, KafkaException, TopicPartition
from routes.targets import position_topic

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.kafka.settings import KafkaSourceConfig
    from engine.kafka.offsets import Place, TopicFacts
    from engine.kafka.types import Consumer, KafkaError

__all__ = ["OtherClusterSource", "positions_of"]

_WRITTEN_SECONDS = 30.0
_TOLD_SECONDS = 5.0
"""Pause between two commits of the positions at the other cluster, which only tools for lag read."""
_REFUSED_SECONDS = 30.0
_log = structlog.get_logger(__name__)


def positions_of(endpoint: SystemEndpoint[KafkaSourceConfig]) -> SourcePositions:
    """Returns the positions of a source, not yet read."""
    owner = f"{endpoint.bridge_id}/{endpoint.settings.name}"
    return SourcePositions(endpoint.kafka, position_topic(endpoint.journal), owner)


class OtherClusterSource(KafkaSource):
    """Source of one worker. One thread uses it, and also runs the callbacks."""

    def __init__(self, endpoint: SystemEndpoint[KafkaSourceConfig], worker: int) -> None:
        """Creates the source without connecting; `worker` is its number, from 1, and part of the transactional id."""
        super().__init__(endpoint, worker)
        self._topic = position_topic(endpoint.journal)
        self._member: Consumer | None = None
        self._shares: frozenset[int] = frozenset()
        self._is_moved = False
        """True if the shares have changed, and what they mean has not been read yet."""
        self._positions = positions_of(endpoint)
        self._found: Mapping[str, int] = {}
        """Numbers of partitions of the topics to read, by name."""
        self._told_at = 0.0

    def connect(self) -> None:
        """Creates both consumers; shares are assigned later, while `receive` is called.

        Raises:
            NotConnectedError: one of the clusters does not answer, or the other one refuses the bridge.
            HardFailureError: the bridge's own Kafka refuses it.
        """
        super().connect()
        self._positions = positions_of(self._endpoint)
        try:
            self._positions.ask()
        except KafkaUnavailableError as error:
            raise NotConnectedError(str(error)) from error
        settings = member(self._on_member_error) | {
            "auto.offset.reset": "latest",
            # The shares of a topic follow each other, so that they are divided evenly.
            "partition.assignment.strategy": "roundrobin",
        }
        self._member = self._endpoint.kafka.consumer(group_of(self._endpoint), settings)
        self._member.subscribe(
            [self._topic], on_assign=self._on_shares, on_revoke=self._on_shares_revoked, on_lost=self._on_lost
        )

    def close(self) -> None:
        """Leaves the consumer group; records that were not committed are read again."""
        super().close()
        if self._member is not None:
            self._member.close()
        self._member = None
        self._shares, self._is_moved = frozenset(), False

    def _fill(self, timeout_seconds: float, now: float) -> None:
        """Takes part in the group, and then reads as `KafkaSource`."""
        if self._member is not None and (told := self._member.poll(0)) is not None and (error := told.error()):
            self._on_member_error(error)
        if self._fault:
            raise self._fault
        if self._is_moved:
            self._assign()
        super()._fill(timeout_seconds, now)

    def _follow(self, found: Mapping[str, int]) -> None:
        if found != self._found:
            self._found = dict(found)
            self._assign()

    def _assign(self) -> None:
        """Reads the partitions that belong to the shares of this worker, from their positions on.

        Raises:
            NotConnectedError: one of the clusters does not answer, or the other one refuses the bridge.
            HardFailureError: the bridge's own Kafka refuses it.
        """
        wanted = [
            (topic, partition)
            for topic, count in self._found.items()
            for partition in range(count)
            if self._shares and self._positions.share_of((topic, partition)) in self._shares
        ]
        if self._next:
            self._commit(self._next)
        # What was only read is read again.
        self._read.clear()
        try:
            if wanted:
                self._positions.read(self._shares)
        except KafkaUnavailableError as error:
            raise NotConnectedError(str(error)) from error
        self._opened().assign(self._starts_of(wanted))
        self._is_moved = False

    def _starts_of(self, wanted: Collection[Place]) -> list[TopicPartition]:
        """Returns partitions with the offsets to begin at; a topic that was made anew is read from its start."""
        topics = {topic for topic, _ in wanted}
        now = self._facts(topics)
        try:
            first = self._asked().starts(topics)
        except (KafkaUnavailableError, HardFailureError) as error:
            raise NotConnectedError(str(error)) from error
        self._ids = {topic: each.id for topic, each in now.items()}
        starts = []
        for topic, partition in wanted:
            position = self._positions.of((topic, partition))
            start = first.get(topic, {}).get(partition, 0)
            if not position.is_of(self._ids.get(topic, "")):
                _log.warning("reads a topic that was created again", source=self._source.name, topic=topic)
                place = TopicPartition(topic, partition, start)
            else:
                place = self._start(TopicPartition(topic, partition, position.offset), start)
            starts.append(place)
        return starts

    def _commit(self, ends: Mapping[Place, int]) -> None:
        journal, group = self._journal, self._member
        if journal is None or group is None:
            raise NotConnectedError("not connected")
        ends = dict(ends)
        if ends:
            for place, at in ends.items():
                position = KeptPosition(at, self._ids.get(place[0], ""))
                record = self._positions.record(place, position)
                if not journal.write(self._topic, record, lambda _: None, self._positions.share_of(place)):
                    raise JournalError("the worker stops")
            # Before the group: who gets a share from it then finds the records of a transaction that may be committed.
            if not journal.flush(_WRITTEN_SECONDS):
                raise JournalError(f"Kafka has not taken the positions for {_WRITTEN_SECONDS:.0f} s")
            shares = sorted({self._positions.share_of(place) for place in ends})
            fence = [TopicPartition(self._topic, share, 0) for share in shares]
            journal.move(fence, group.consumer_group_metadata())
        journal.commit()
        self._next.clear()
        self._tell(ends)

    def _tell(self, ends: Mapping[Place, int]) -> None:
        """Commits positions at the other cluster now and then, if a group for that is configured; failures are logged.

        Nothing reads them but tools that show how far behind consumers are.
        """
        now = time.monotonic()
        if self._source.consumer is None or now - self._told_at < _TOLD_SECONDS:
            return
        self._told_at = now
        try:
            self._opened().commit(offsets=[TopicPartition(*place, at) for place, at in ends.items()], asynchronous=True)
        except KafkaException as error:
            _log.warning("the other cluster does not take positions", source=self._source.name, why=str(error.args[0]))

    def _on_shares(self, client: Consumer, places: list[TopicPartition]) -> None:
        """Handles new shares; nothing is read of the topic itself."""
        client.assign([TopicPartition(place.topic, place.partition, OFFSET_END) for place in places])
        client.pause(places)
        self._shares, self._is_moved = frozenset(place.partition for place in places), True

    def _on_shares_revoked(self, _: Consumer, places: list[TopicPartition]) -> None:
        """Handles the loss of all shares in a rebalance: commits what was handed over, and drops what was only read."""
        self._read.clear()
        self._shares, self._is_moved = frozenset(), True
        self._commit_handed_over()

    def _check_ids(self, now: Mapping[str, TopicFacts]) -> None:
        """Raises NotConnectedError if a topic is another one of its name.

        The next connection reads that from its start. What has been read of it since the last commit is dropped with
        the transaction.
        """
        for topic, before in self._ids.items():
            if before and topic in now and now[topic].id not in ("", before):
                raise NotConnectedError(f"topic '{topic}' was deleted and created again, and is read from its start")

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in MISSING:
            # A topic that is deleted may be created again at once.
            self._looked_at = 0.0
        super()._on_error(error)

    def _on_member_error(self, error: KafkaError) -> None:
        servers = self._endpoint.kafka.servers
        if refused := refusal(error, servers, f"group '{group_of(self._endpoint)}'"):
            self._fault = refused
        elif is_fatal(error):
            self._fault = NotConnectedError(f"Kafka at {servers}: {error.str()}")

    def _facts(self, topics: Iterable[str]) -> dict[str, TopicFacts]:
        try:
            return super()._facts(topics)
        except HardFailureError as error:
            raise NotConnectedError(str(error), _REFUSED_SECONDS) from error

    def _translated(self, error: KafkaError, what: str) -> Exception:
        # What the other cluster refuses concerns this source alone.
        found = super()._translated(error, what)
        return NotConnectedError(str(found), _REFUSED_SECONDS) if isinstance(found, HardFailureError) else found
