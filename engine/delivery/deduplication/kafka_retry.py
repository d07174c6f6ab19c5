"""Waits for Kafka that also serve the source's broker, such as with heart-beats, and end when the worker is to stop."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from confluent_kafka import KafkaError, KafkaException

from engine.connectors.group import REFUSED
from engine.errors import HardFailureError, UnreachableError
from engine.journal import refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future
    from threading import Event

    from routes.model import Config

__all__ = ["ANSWER_SECONDS", "KafkaRetry", "StoppedError"]

K = TypeVar("K")
T = TypeVar("T")

ANSWER_SECONDS = 5.0
"""Seconds that Kafka has for an answer before it is asked again."""
_SLICE_SECONDS = 0.05
_PAUSE_SECONDS = 0.2
_STALLED_SECONDS = 3.0
_GRACE_SECONDS = 1.0
"""Seconds that a wait may go on after a request to stop, so that nearly finished work can complete."""
_PASSING = frozenset(
    {
        *(KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN),
        # No leader of a partition is known.
        KafkaError._NOENT,
        *(KafkaError.REQUEST_TIMED_OUT, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION),
        *(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR),
    }
)
"""Kafka errors that a repeated request may overcome."""


class StoppedError(Exception):
    """A wait ended because the worker is to stop."""


class KafkaRetry:
    """Waits for Kafka until `router.outage-timeout`; for one thread."""

    def __init__(self, config: Config, stop: Event, tend: Callable[[], None], stalled: Callable[[], None]) -> None:
        """A wait calls `tend` several times a second, and `stalled` when Kafka has not answered for some seconds."""
        self.servers = config.bootstrap_servers
        self._topic = config.journal.topic
        self._outage_seconds = config.router.outage_timeout_seconds
        self._stop = stop
        self._tend = tend
        self._stalled = stalled
        self._heard_at = time.monotonic()
        self._stopping_at: float | None = None

    def heard(self) -> None:
        """Restarts the measured time without an answer: Kafka has answered, or is asked only now."""
        self._heard_at = time.monotonic()

    def wait(self) -> None:
        """Checks during a wait for Kafka whether to go on; the caller calls it repeatedly until Kafka answers.

        Raises:
            StoppedError: the worker was asked to stop more than a moment ago.
            UnreachableError: Kafka has not answered for longer than `router.outage-timeout`.
            NotConnectedError: the connection to the source's broker is gone.
        """
        now = time.monotonic()
        if self._stop.is_set():
            self._stopping_at = self._stopping_at or now
            if now - self._stopping_at > _GRACE_SECONDS:
                raise StoppedError
        self._tend()
        silent = now - self._heard_at
        if silent > self._outage_seconds:
            msg = f"Kafka at {self.servers} has not answered for {self._outage_seconds:.0f} s; is it running?"
            raise UnreachableError(msg)
        if silent > _STALLED_SECONDS:
            self._stalled()

    def answers(self, ask: Callable[[], Mapping[K, Future[T]]]) -> dict[K, T]:
        """Returns Kafka's answers to several requests, repeating those that get none; raises as `result` does."""
        return self.result(lambda: {key: self._awaited(future) for key, future in ask().items()})

    def result(self, ask: Callable[[], T]) -> T:
        """Returns Kafka's answer to a request, repeating the request while Kafka does not answer.

        Raises, beside the errors of `wait`:
            HardFailureError: Kafka refuses the request.
            JournalError: Kafka reports another error.
        """
        self.heard()
        while True:
            try:
                return ask()
            except KafkaException as error:
                found = error.args[0]
                if found.code() not in _PASSING:
                    raise self.translated(found) from error
            time.sleep(_PAUSE_SECONDS)
            self.wait()

    def translated(self, error: KafkaError) -> Exception:
        """Exception for a Kafka error that an immediate retry would not change."""
        if remedy := REFUSED.get(error.code()):
            return HardFailureError(f"Kafka at {self.servers} refuses looking for repeated messages: {remedy}")
        return refusal(error, self.servers, self._topic)

    def _awaited(self, future: Future[T]) -> T:
        while True:
            try:
                return future.result(_SLICE_SECONDS)
            except TimeoutError:
                self.wait()
