"""The journal's producing side: canonical messages into one Kafka topic, confirmed one by one.

A source acknowledges a message to its broker only after `done(None)` was called for it here. The producer is
idempotent, so retries inside it neither double nor reorder. Memory is bounded: `append` waits while the producer's
buffer is full, which stops whoever appends from reading on. Who acknowledges what is the business of
`engine.connectors.source_flow`; the topic itself is made by `engine.topics`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, Producer

from engine.errors import HardFailureError, UnreachableError
from engine.kafka import QUIET, SILENT, librdkafka
from engine.message import LARGE_BYTES, SIZE
from engine.trace_context import published

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.message import Message, Record
    from routes.model import Config

__all__ = ["FRAMING_BYTES", "Done", "Journal", "JournalError", "JournalTooLargeError", "refusal"]

Done = Callable[[Exception | None], None]
"""Called once for each appended message: None when the journal has it, else why it never will."""

FRAMING_BYTES = 4096
"""What Kafka's framing may add to a record; the topic takes that much more than `journal.max-message-bytes`."""

_HEADER_FRAMING_BYTES = 6
_BUFFER_BYTES = 64 * 1024 * 1024
_BUFFER_MESSAGES = 20_000
_BATCH_BYTES = 512 * 1024
_POLL_SECONDS = 0.1
_POLL_EVERY = 32
_HURRY_SECONDS = 0.001
_CLOSE_SECONDS = 2.0

_MISSING = "there is no such topic; create it, or start the whole bridge, which does"
_REFUSED = {
    KafkaError._UNKNOWN_TOPIC: _MISSING,
    KafkaError.UNKNOWN_TOPIC_OR_PART: _MISSING,
    KafkaError.TOPIC_EXCEPTION: "Kafka does not take that for a topic's name",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "not authorised to write to it; grant WRITE on the topic",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "not authorised to write; grant IDEMPOTENT_WRITE on the cluster",
    KafkaError.MSG_SIZE_TOO_LARGE: "its max.message.bytes is less than what the bridge may write; raise it, or lower "
    "journal.max-message-bytes",
}


class JournalError(Exception):
    """A message did not get into the journal, for a reason that may pass. This journal is of no more use."""


class JournalTooLargeError(Exception):
    """A message is larger than `journal.max-message-bytes`; nothing was written."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"{size} bytes, the journal takes {limit}")
        self.size = size
        """Bytes of key, value and headers."""
        self.limit = limit


class Journal:
    """Writes messages and confirms each. For one thread: callbacks run inside its calls, on the caller's thread."""

    def __init__(
        self,
        config: Config,
        stop: Event | None = None,
        while_full: Callable[[], None] = lambda: None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`append` calls `while_full` now and then while it waits; `stop`, once set, ends the waiting.

        Kafka need not be there yet. `settings` are more of the producer's.
        """
        self._config = config
        self._topic = config.journal.topic
        self._limit = config.journal.max_message_bytes
        self._servers = config.bootstrap_servers
        self._outage_seconds = config.router.outage_timeout_seconds
        self._stop = stop or Event()
        self._while_full = while_full
        self._open = 0
        self._unpolled = 0
        self._progress = time.monotonic()
        self._refusal: HardFailureError | None = None
        chosen = {**_settings(config), **(settings or {}), "error_cb": self._on_error}
        self._producer = Producer(chosen, logger=SILENT)

    @property
    def stalled_seconds(self) -> float:
        """For how long Kafka has confirmed nothing although there is something to confirm."""
        return time.monotonic() - self._progress if self._open else 0.0

    def append(self, message: Message, done: Done, trace: Mapping[str, str] | None = None) -> bool:
        """Takes a message, waiting for room; False if `stop` was set before there was any, and it is not taken.

        `done` is called later, inside `append`, `poll` or `flush`, in the order of each partition. `trace` is the
        context in which the message goes on; without it, that in which it came.

        Raises:
            JournalTooLargeError: this message never fits; others still do.
            HardFailureError: Kafka refuses the bridge.
            UnreachableError: Kafka is gone for longer than `router.outage-timeout`.
        """
        record = message.to_record(published(message, self._config) if trace is None else trace)
        # Measuring costs as much as parsing. A record that is not marked as large is far below such a limit.
        if record.headers[-1][0] == SIZE or self._limit < 4 * LARGE_BYTES:
            size, framing = record.size, _HEADER_FRAMING_BYTES * len(record.headers)
            if size > self._limit or size + framing > self._limit + FRAMING_BYTES // 2:
                raise JournalTooLargeError(size, self._limit)
        return self._write(self._topic, record, done)

    def write(self, topic: str, record: Record, done: Done) -> bool:
        """The same for a record to another topic, such as a dead letter; without the check of its size."""
        return self._write(topic, record, done)

    def poll(self, timeout_seconds: float = 0) -> None:
        """Runs the callbacks that are due, waiting for the first one at most that long; raises as `append` does.

        Also JournalError, as `flush` does.
        """
        self._call(self._producer.poll, timeout_seconds)
        if self._refusal:
            raise self._refusal
        if self.stalled_seconds > self._outage_seconds:
            msg = f"Kafka at {self._servers} has taken nothing for {self._outage_seconds:.0f} s; is it running?"
            raise UnreachableError(msg)

    def hurry(self) -> None:
        """Sends at once what waits for more to go with it, and waits a moment until it is there; for a pause.

        Raises as `append` does.
        """
        if self._open:
            self._call(self._producer.flush, _HURRY_SECONDS)
            self.poll()

    def flush(self, timeout_seconds: float) -> bool:
        """Waits until everything is confirmed or has failed; False if there is still something open after that time.

        Raises:
            JournalError: the producer has failed for good.
        """
        return self._call(self._producer.flush, timeout_seconds) == 0

    def close(self) -> None:
        """Drops what is not on its way yet; call `flush` first to keep it. `done` is called for all that is open."""
        self._producer.purge(in_flight=False)
        if not self._settled():
            self._producer.purge()
            self._settled()

    def _settled(self) -> bool:
        try:
            return self.flush(_CLOSE_SECONDS)
        except JournalError:
            # It is told once, before all callbacks were called.
            return False

    def _call(self, what: Callable[..., int], *arguments: object) -> int:
        """A call of the producer, which raises where it has failed for good, as when another one took its place."""
        try:
            return what(*arguments)
        except KafkaException as error:
            raise JournalError(f"the producer for {self._servers}: {error.args[0].str()}") from error

    def _write(self, topic: str, record: Record, done: Done) -> bool:
        delivered = partial(self._delivered, done)
        while True:
            try:
                self._producer.produce(
                    topic, record.value, record.key, headers=list(record.headers), on_delivery=delivered
                )
            except BufferError:
                if self._stop.is_set():
                    return False
                self._while_full()
                self.poll(_POLL_SECONDS)
            except KafkaException as error:
                raise self._translated(error.args[0], topic) from error
            else:
                if not self._open:
                    self._progress = time.monotonic()
                self._open += 1
                self._unpolled += 1
                if self._unpolled >= _POLL_EVERY:
                    self._unpolled = 0
                    self.poll()
                return True

    def _delivered(self, done: Done, error: KafkaError | None, message: object) -> None:
        self._open -= 1
        if error is None:
            self._progress = time.monotonic()
            done(None)
        else:
            done(self._translated(error, message.topic()))  # type: ignore[attr-defined]

    def _on_error(self, error: KafkaError) -> None:
        # Everything else is either retried or comes back with the messages it concerns.
        if error.code() == KafkaError._AUTHENTICATION:
            self._refusal = HardFailureError(f"Kafka at {self._servers} refuses the login: {error.str()}")

    def _translated(self, error: KafkaError, topic: str | None) -> Exception:
        return refusal(error, self._servers, topic)


def refusal(error: KafkaError, servers: str, topic: str | None) -> Exception:
    """What to raise for an error about a topic: HardFailureError where no other try can help, else JournalError."""
    if remedy := _REFUSED.get(error.code()):
        return HardFailureError(f"Kafka at {servers} refuses topic '{topic}': {remedy} ({error.name()})")
    return JournalError(f"topic '{topic}' at {servers}: {error.str()}")


def _settings(config: Config) -> dict[str, str | int | bool]:
    """What users may change, what they have changed, and what the guarantee needs."""
    largest = config.journal.max_message_bytes + FRAMING_BYTES
    preferred: dict[str, str | int | bool] = {
        # Only where one message follows another closely, see `hurry`.
        "linger.ms": 5,
        # A batch that is too large fails as a whole, so that only a single record may come near the limit.
        "batch.size": min(_BATCH_BYTES, largest // 2),
        "queue.buffering.max.messages": _BUFFER_MESSAGES,
        "queue.buffering.max.kbytes": _BUFFER_BYTES // 1024,
        # A topic that was there at the start and is not any more is told this soon.
        "topic.metadata.propagation.max.ms": 10_000,
        # No message is given up while Kafka is away: that would only bring it in again, later and out of order.
        "message.timeout.ms": 0,
    }
    required: dict[str, str | int | bool] = {
        "enable.idempotence": True,
        "acks": "all",
        # As the Java clients do, so that a key has one partition whoever writes it.
        "partitioner": "murmur2_random",
        "message.max.bytes": largest,
        "allow.auto.create.topics": False,
        **QUIET,
    }
    settings = preferred | librdkafka(config, "producer") | required
    # A record larger than the buffer would wait for room for ever.
    room = "queue.buffering.max.kbytes"
    return settings | {room: max(int(settings[room]), 2 * largest // 1024)}
