"""Consumers at the sinks' systems, which take everything away so that brokers do not grow, and count it."""

from __future__ import annotations

import time
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, TopicPartition

from tests.chaos.ledger import Number
from tests.integration.connectors.stomp_harness import Peer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.soak.numbers import Arrivals

__all__ = ["DropboxDrain", "QueueDrain", "TopicReader"]

_PAUSE_SECONDS = 0.5
_OLD_SECONDS = 5.0
"""What a consumer has taken stays that long: a sink may look for its own files after a crash."""


class _Worker:
    """A thread that starts again after any failure of its broker, until it is told to stop."""

    def __init__(self) -> None:
        self._stop = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self.failure: BaseException | None = None
        self.count = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        if self.failure:
            raise self.failure

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                with suppress(OSError):
                    self._work()
                self._stop.wait(_PAUSE_SECONDS)
        except BaseException as error:
            self.failure = error

    def _work(self) -> None:
        """Returns, or fails, from time to time."""
        raise NotImplementedError


class TopicReader(_Worker):
    """Reads topics from their beginning and gives each record to the arrivals of its topic."""

    def __init__(self, bootstrap: str, topics: Mapping[str, Arrivals]) -> None:
        super().__init__()
        self._topics = topics
        settings = {"bootstrap.servers": bootstrap, "group.id": "soak", "enable.auto.commit": False, "log_level": 0}
        self._consumer = Consumer({**settings, "isolation.level": "read_committed"})
        known = self._consumer.list_topics(timeout=30).topics
        self._consumer.assign(
            [TopicPartition(topic, partition, 0) for topic in topics for partition in known[topic].partitions]
        )

    def _work(self) -> None:
        while not self._stop.is_set():
            for message in self._consumer.consume(1000, 0.5):
                if message.error() is None:
                    self._topics[message.topic() or ""].add(Number.of(message.value() or b""))
                    self.count += 1


class QueueDrain(_Worker):
    """A consumer of a queue of Artemis."""

    def __init__(self, port: int, queue: str) -> None:
        super().__init__()
        self._port = port
        self._queue = queue

    def _work(self) -> None:
        with Peer(self._port, 5) as peer:
            peer.subscribe(self._queue, "auto")
            while not self._stop.is_set():
                peer.expect("MESSAGE")
                self.count += 1


class DropboxDrain(_Worker):
    """Removes the older files of a dropbox, as consumers do."""

    def __init__(self, *folders: Path) -> None:
        super().__init__()
        self._folders = folders

    def _work(self) -> None:
        for folder in self._folders:
            for file in folder.iterdir():
                if file.is_file() and file.name != ".lock" and time.time() - file.stat().st_ctime > _OLD_SECONDS:
                    file.unlink()
                    self.count += 1
