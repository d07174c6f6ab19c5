"""Measured cases: each source and sink with its load."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench.connectors.amqp_side import fill
from bench.connectors.artemis_side import Queues
from bench.connectors.case import BODY, JOURNAL, Case, Servers, Sink, Source, headers_of, message_of
from bench.connectors.folders_side import Folders
from bench.connectors.nats_side import Counter, Publisher, Streams, line

__all__ = ["CASES"]

_AHEAD = 40_000
"""Messages without a stream that may be on their way: the server keeps 64 MiB of them for a slow reader."""
_CHUNK = 500


class _CoreSource(Source):
    name, loop = "nats-source", "core-source"

    def open(self) -> None:
        self._publisher = Publisher(self.servers.nats)

    def begin(self, run: str) -> None:
        super().begin(run)
        self._published = 0

    def feed(self, arrived: int) -> None:
        if not self._published:
            # Without a subscriber every message would be lost.
            self._published = int(self._publisher.heard(self.place, headers_of(0), BODY))
            return
        while self._published < min(self.messages, arrived + _AHEAD):
            numbers = range(self._published, min(self._published + _CHUNK, self.messages))
            self._publisher.publish(b"".join(line(self.place, headers_of(number), BODY) for number in numbers))
            self._published = numbers.stop

    def close(self) -> None:
        self._publisher.close()


class _StreamSource(Source):
    name, loop = "nats-stream-source", "stream-source"

    def open(self) -> None:
        self._streams = Streams(self.servers.nats)
        self._streams.make(self.place)
        self._streams.fill(self.place, headers_of, BODY, self.messages)

    def left(self, run: str) -> int:
        return self._streams.left(self.place, run)

    def close(self) -> None:
        self._streams.close()

    def bare(self, run: str) -> Mapping[str, str]:
        return {**super().bare(run), "stream": self.place, "consumer": run}

    def settings(self, run: str) -> Mapping[str, str]:
        return {**super().settings(run), ".stream": self.place, ".consumer": run}


class _CoreSink(Sink):
    name, loop = "nats-sink", "core-sink"

    def begin(self, run: str) -> None:
        self._counter = Counter(self.servers.nats, self.place)

    def count(self, run: str) -> int:
        return self._counter.count

    def end(self, run: str) -> None:
        self._counter.close()


class _StreamSink(Sink):
    name, loop = "nats-stream-sink", "stream-sink"

    def open(self) -> None:
        super().open()
        self._streams = Streams(self.servers.nats)

    def begin(self, run: str) -> None:
        self._streams.make(self.place)

    def count(self, run: str) -> int:
        return self._streams.count(self.place)

    def end(self, run: str) -> None:
        self._streams.remove(self.place)

    def close(self) -> None:
        super().close()
        self._streams.close()

    def settings(self, run: str) -> Mapping[str, str]:
        return {**super().settings(run), ".stream": "true"}


class _QueueSink(Sink):
    name, loop = "stomp-sink", "queue-sink"
    address = "queue/{}"

    def open(self) -> None:
        super().open()
        self._queues = Queues(self.servers.stomp)

    def begin(self, run: str) -> None:
        self._queues.remove(self.place)

    def count(self, run: str) -> int:
        return self._queues.count(self.place)

    def end(self, run: str) -> None:
        self._queues.remove(self.place)

    def close(self) -> None:
        super().close()
        self._queues.close()

    def bare(self, run: str) -> Mapping[str, str]:
        return {**super().bare(run), "url": self.servers.stomp}

    def settings(self, run: str) -> Mapping[str, str]:
        return {**super().settings(run), ".type": "stomp", ".url": self.servers.stomp}


class _AmqpSource(Source):
    name, loop = "amqp-source", "amqp-source"

    def open(self) -> None:
        self._queues = Queues(self.servers.stomp)

    def begin(self, run: str) -> None:
        super().begin(run)
        self._queues.remove(self.place)
        fill(self.servers.amqp, self.place, map(message_of, range(self.messages)))

    def left(self, run: str) -> int:
        return self._queues.count(self.place)

    def close(self) -> None:
        self._queues.close()

    def bare(self, run: str) -> Mapping[str, str]:
        return {**super().bare(run), "url": self.servers.amqp}

    def settings(self, run: str) -> Mapping[str, str]:
        amqp = {".type": "amqp", ".url": self.servers.amqp, ".destinations": f"queue:{self.place}"}
        return {**super().settings(run), **amqp}


class _AmqpSink(_QueueSink):
    name, loop = "amqp-sink", "amqp-sink"

    def bare(self, run: str) -> Mapping[str, str]:
        return {**super().bare(run), "url": self.servers.amqp}

    def settings(self, run: str) -> Mapping[str, str]:
        return {**super().settings(run), ".type": "amqp", ".url": self.servers.amqp}


class _DropboxSource(Source):
    name, loop = "dropbox-source", "dropbox-source"

    def open(self) -> None:
        self._folders = Folders(self.servers.dropbox, self.place)
        self._folders.make()
        self._folders.fill(headers_of, BODY, self.messages)

    def begin(self, run: str) -> None:
        super().begin(run)
        self._folders.refill()

    def left(self, run: str) -> int:
        return self.messages - self._folders.count("processed")

    def close(self) -> None:
        self._folders.remove()

    def bare(self, run: str) -> Mapping[str, str]:
        return {"box": str(self._folders.box), "topic": run}

    def settings(self, run: str) -> Mapping[str, str]:
        own = {".type": "dropbox", ".root": str(self.servers.dropbox), ".destinations": f"queue:{self.place}"}
        return {"bridge.id": run, "journal.topic": run, **own}


class _DropboxSink(Sink):
    name, loop = "dropbox-sink", "dropbox-sink"
    address = "queue/{}"

    def open(self) -> None:
        super().open()
        self._folders = Folders(self.servers.dropbox, self.place)

    def begin(self, run: str) -> None:
        self._folders.make()

    def count(self, run: str) -> int:
        return self._folders.count("target")

    def end(self, run: str) -> None:
        self._folders.remove()

    def bare(self, run: str) -> Mapping[str, str]:
        return {**super().bare(run), "box": str(self._folders.box)}

    def settings(self, run: str) -> Mapping[str, str]:
        own = {".type": "dropbox", ".root": str(self.servers.dropbox)}
        return {"bridge.id": run, "journal.topic": JOURNAL, ".topic": self._topic, **own}


_ALL: tuple[type[Case], ...] = (
    _CoreSource,
    _StreamSource,
    _AmqpSource,
    _DropboxSource,
    _CoreSink,
    _StreamSink,
    _QueueSink,
    _AmqpSink,
    _DropboxSink,
)
CASES: Mapping[str, Callable[[Servers, int], Case]] = {case.name: case for case in _ALL}
"""By name."""
