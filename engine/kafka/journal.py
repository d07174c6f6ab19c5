"""Kafka producer of the journal: writes canonical messages to the journal topic and confirms each of them.

A source acknowledges a message to its broker only after this module has called the message's `done` with None. The
producer is idempotent, so its internal retries neither duplicate nor reorder records. Memory is bounded: `append` waits
while the producer's buffer is full, which stops the calling source from reading on.

Not here: the order of acknowledgements (`engine.delivery.ingress_pipeline`) and the creation of the topic
(`engine.kafka.topics`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from engine.kafka.errors import is_login_refused, refusal, unusable
from engine.kafka.settings import librdkafka
from engine.message import LARGE_BYTES, SIZE
from engine.trace_context import published

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import KafkaError

    from engine.errors import HardFailureError
    from engine.kafka.clients import KafkaClients
    from engine.message import Message, Record
    from engine.tracing_section import TracingConfig
    from routes.kafka_access import KafkaAccess

__all__ = ["BY_KEY", "FRAMING_BYTES", "Done", "Journal", "JournalError", "JournalTooLargeError", "error_about"]

Done = Callable[[Exception | None], None]
"""Callback of one appended message, called once: with None when the journal has the message, otherwise with the reason
why the journal never will have it."""

BY_KEY = -1
"""Stands for the partition that the key of a record chooses."""
FRAMING_BYTES = 4096
"""Bytes that Kafka's framing may add to a record; the topic's limit exceeds `journal.max-message-bytes` by this
much."""

_HEADER_FRAMING_BYTES = 6
_BUFFER_BYTES = 64 * 1024 * 1024
_BUFFER_MESSAGES = 20_000
_BATCH_BYTES = 512 * 1024
_POLL_SECONDS = 0.1
_POLL_EVERY = 32
_HURRY_SECONDS = 0.001
_CLOSE_SECONDS = 2.0


class JournalError(Exception):
    """A message did not get into the journal, for a reason that may pass; this `Journal` cannot be used any more."""


class JournalTooLargeError(Exception):
    """A message is larger than `journal.max-message-bytes`; nothing was written."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"{size} bytes, the journal takes {limit}")
        self.size = size
        """Bytes of the message's key, value and headers."""
        self.limit = limit


class Journal:
    """Writes messages to the journal topic and confirms each of them.

    For one thread: the `done` callbacks run inside its methods, on the caller's thread.
    """

    def __init__(
        self,
        clients: KafkaClients,
        topic: str,
        tracing: TracingConfig,
        stop: Event | None = None,
        while_full: Callable[[], None] = lambda: None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Makes the producer, which connects in the background; Kafka need not be reachable yet.

        `append` calls `while_full` repeatedly while it waits for room; `stop`, once set, ends that wait. `settings` are
        additional settings of the producer.
        """
        self._clients = clients
        self._topic = topic
        self._tracing = tracing
        self._limit = clients.access.max_message_bytes
        self._servers = clients.servers
        self._stop = stop or Event()
        self._while_full = while_full
        self._open = 0
        self._unpolled = 0
        self._progress = time.monotonic()
        self._refusal: HardFailureError | None = None
        self._producer = clients.producer({**_settings(clients.access), **(settings or {}), "error_cb": self._on_error})

    @property
    def stalled_seconds(self) -> float:
        """Seconds since Kafka last confirmed a record, while records wait for confirmation; 0 if none waits."""
        return time.monotonic() - self._progress if self._open else 0.0

    def append(self, message: Message, done: Done, trace: Mapping[str, str] | None = None) -> bool:
        """Queues a message for the journal topic and waits for room; False if `stop` is set before there is room.

        A message for which it returns False is not queued. `done` is called later, inside `append`, `poll` or `flush`,
        in order within each partition. `trace` is the trace context that the record carries; None: the context in which
        the message came, if the bridge propagates it.

        Raises:
            JournalTooLargeError: the message exceeds `journal.max-message-bytes`; later messages may still fit.
            JournalError: the producer has failed.
            HardFailureError: Kafka refuses the bridge.
            UnreachableError: Kafka has not answered for longer than `router.outage-timeout`.
        """
        record = message.to_record(published(message, self._tracing) if trace is None else trace)
        # Measuring costs as much as parsing. A record without the SIZE header has less than LARGE_BYTES, far below a
        # limit of at least four times that.
        if record.headers[-1][0] == SIZE or self._limit < 4 * LARGE_BYTES:
            size, framing = record.size, _HEADER_FRAMING_BYTES * len(record.headers)
            if size > self._limit or size + framing > self._limit + FRAMING_BYTES // 2:
                raise JournalTooLargeError(size, self._limit)
        return self._write(self._topic, record, done)

    def write(self, topic: str, record: Record, done: Done, partition: int = BY_KEY) -> bool:
        """Queues a record for any topic, such as a dead letter; like `append`, but without the size check.

        `partition` is that of the record; by default its key chooses one.
        """
        return self._write(topic, record, done, partition)

    def poll(self, timeout_seconds: float = 0) -> None:
        """Runs the callbacks that are due; waits at most `timeout_seconds` for the first.

        Raises:
            JournalError: the producer has failed for good.
            HardFailureError: Kafka refuses the bridge.
            UnreachableError: Kafka has confirmed nothing for longer than `router.outage-timeout`.
        """
        self._call(self._producer.poll, timeout_seconds)
        if self._refusal:
            raise self._refusal
        if self.stalled_seconds > self._clients.access.outage_timeout_seconds:
            raise unusable(self._clients.access)

    def hurry(self) -> None:
        """Sends the records that still wait to fill a batch, and waits briefly for their confirmation.

        Called when a source has nothing more to read. Raises as `poll` does.
        """
        if self._open:
            self._call(self._producer.flush, _HURRY_SECONDS)
            self.poll()

    def flush(self, timeout_seconds: float) -> bool:
        """Waits until every record is confirmed or has failed; False if some are still open after `timeout_seconds`.

        Raises:
            JournalError: the producer has failed for good.
        """
        return self._call(self._producer.flush, timeout_seconds) == 0

    def close(self) -> None:
        """Drops the records that are not sent yet and calls `done` for every unconfirmed record.

        Call `flush` first to keep the queued records. Waits at most a few seconds.
        """
        self._producer.purge(in_flight=False)
        if not self._settled():
            self._producer.purge()
            self._settled()

    def _settled(self) -> bool:
        try:
            return self.flush(_CLOSE_SECONDS)
        except JournalError:
            # librdkafka reports a fatal error once, before all callbacks have run: the next call runs the rest.
            return False

    def _call(self, what: Callable[..., int], *arguments: object) -> int:
        """Calls a method of the producer and translates its exception.

        Raises:
            JournalError: the producer has failed for good, for example because another one with its id has taken its
                place.
        """
        try:
            return what(*arguments)
        except KafkaException as error:
            raise JournalError(f"the producer for {self._servers}: {error.args[0].str()}") from error

    def _write(self, topic: str, record: Record, done: Done, partition: int = BY_KEY) -> bool:
        delivered = partial(self._delivered, done)
        while True:
            try:
                self._producer.produce(
                    topic, record.value, record.key, partition, headers=list(record.headers), on_delivery=delivered
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
        # librdkafka retries all other errors or reports them with the messages they concern.
        if is_login_refused(error):
            self._refusal = refusal(error, self._servers, f"topic '{self._topic}'")

    def _translated(self, error: KafkaError, topic: str | None) -> Exception:
        return error_about(topic, error, self._servers, "WRITE")


def error_about(topic: str | None, error: KafkaError, servers: str, rights: str) -> Exception:
    """Exception for a Kafka error about a topic: HardFailureError if no retry can help, else JournalError.

    `rights` as for `engine.kafka.errors.remedy`.
    """
    return refusal(error, servers, f"topic '{topic}'", rights) or JournalError(
        f"topic '{topic}' at {servers}: {error.str()}"
    )


def _settings(access: KafkaAccess) -> dict[str, str | int | bool]:
    """Settings of the producer, in rising precedence: defaults, the user's own settings, and those the guarantee needs.

    The buffer always has room for two records of the largest size.
    """
    largest = access.max_message_bytes + FRAMING_BYTES
    preferred: dict[str, str | int | bool] = {
        # Delays only messages that follow each other closely; `hurry` ends the wait in a pause.
        "linger.ms": 5,
        # Kafka refuses a batch above the limit as a whole, so only a single record may come near it.
        "batch.size": min(_BATCH_BYTES, largest // 2),
        "queue.buffering.max.messages": _BUFFER_MESSAGES,
        "queue.buffering.max.kbytes": _BUFFER_BYTES // 1024,
        # Sets how soon a topic that disappears after the start is reported.
        "topic.metadata.propagation.max.ms": 10_000,
        # Never times out a message while Kafka is away: the broker would deliver it again, later and out of order.
        "message.timeout.ms": 0,
    }
    required: dict[str, str | int | bool] = {
        "enable.idempotence": True,
        "acks": "all",
        # The partitioner of the Java clients, so that a key has one partition whichever client writes it.
        "partitioner": "murmur2_random",
        "message.max.bytes": largest,
        "allow.auto.create.topics": False,
    }
    settings = preferred | librdkafka(access, "producer") | required
    # A record larger than the buffer would wait for room for ever.
    room = "queue.buffering.max.kbytes"
    return settings | {room: max(int(settings[room]), 2 * largest // 1024)}
