"""Waits for Kafka, which end with one error when Kafka has been unusable for `router.outage-timeout`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from confluent_kafka import KafkaException

from engine.kafka.errors import PASSING, unusable
from engine.kafka.journal import error_about

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future
    from threading import Event

    from confluent_kafka import KafkaError

    from routes.kafka_access import KafkaAccess

__all__ = ["ANSWER_SECONDS", "KafkaRetry", "Outage", "StoppedError"]

K = TypeVar("K")
T = TypeVar("T")

ANSWER_SECONDS = 5.0
"""Seconds that Kafka has for an answer before it is asked again."""
_BACK_OFF_SECONDS = (1.0, 2.0, 5.0, 10.0)
_SLICE_SECONDS = 0.05
_PAUSE_SECONDS = 0.2
_STALLED_SECONDS = 3.0
_GRACE_SECONDS = 1.0
"""Seconds that a wait may go on after a request to stop, so that nearly finished work can complete."""


class StoppedError(Exception):
    """A wait ended because the worker is to stop."""


class Outage:
    """Time since Kafka was last usable, and number of attempts since then; for one thread."""

    def __init__(self, access: KafkaAccess, clock: Callable[[], float] = time.monotonic) -> None:
        self._access = access
        self._clock = clock
        self._usable_at = clock()
        self._attempts = 0

    @property
    def seconds(self) -> float:
        """Seconds since Kafka was last usable."""
        return self._clock() - self._usable_at

    @property
    def is_too_long(self) -> bool:
        """True if the outage exceeds `router.outage-timeout`."""
        return self.seconds > self._access.outage_timeout_seconds

    def over(self) -> None:
        """Ends the outage: Kafka is usable now, or is asked only now."""
        self._usable_at, self._attempts = self._clock(), 0

    def goes_on(self, error: Exception) -> float:
        """Counts a failed attempt; returns the seconds to wait before the next one. Raises as `check`."""
        self.check(error)
        self._attempts += 1
        return _BACK_OFF_SECONDS[min(self._attempts, len(_BACK_OFF_SECONDS)) - 1]

    def check(self, error: Exception | None = None) -> None:
        """Raises UnreachableError if the outage exceeds `router.outage-timeout`; `error` is the latest from Kafka."""
        if self.is_too_long:
            raise unusable(self._access, error) from error


class KafkaRetry:
    """Waits for Kafka that also serve the source's broker, such as with heart-beats; for one thread."""

    def __init__(
        self, access: KafkaAccess, topic: str, stop: Event, tend: Callable[[], None], stalled: Callable[[], None]
    ) -> None:
        """Sets up the waits; `topic` is the one that errors are about.

        A wait calls `tend` several times a second, and `stalled` when Kafka has not answered for some seconds.
        """
        self._servers = access.servers
        self._topic = topic
        self._stop = stop
        self._tend = tend
        self._stalled = stalled
        self._outage = Outage(access)
        self._stopping_at: float | None = None

    def restart(self) -> None:
        """Restarts the measured time without an answer: Kafka has answered, or is asked only now."""
        self._outage.over()

    def wait(self) -> None:
        """Checks during a wait for Kafka whether to go on; the caller calls it repeatedly until Kafka answers.

        Raises:
            StoppedError: the worker was asked to stop more than a moment ago.
            UnreachableError: Kafka has not answered for longer than `router.outage-timeout`.
            NotConnectedError: the connection to the source's broker is gone.
        """
        if self._stop.is_set():
            now = time.monotonic()
            self._stopping_at = self._stopping_at or now
            if now - self._stopping_at > _GRACE_SECONDS:
                raise StoppedError
        self._tend()
        self._outage.check()
        if self._outage.seconds > _STALLED_SECONDS:
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
        self.restart()
        while True:
            try:
                return ask()
            except KafkaException as error:
                found = error.args[0]
                if found.code() not in PASSING:
                    raise self.translated(found) from error
            time.sleep(_PAUSE_SECONDS)
            self.wait()

    def translated(self, error: KafkaError) -> Exception:
        """Exception for a Kafka error that an immediate retry would not change."""
        return error_about(self._topic, error, self._servers, "READ")

    def _awaited(self, future: Future[T]) -> T:
        while True:
            try:
                return future.result(_SLICE_SECONDS)
            except TimeoutError:
                self.wait()
