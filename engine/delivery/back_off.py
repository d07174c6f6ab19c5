"""Waiting times between attempts to connect, which grow and are jittered."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from engine.connectors.base import NotConnectedError
from engine.errors import HardFailureError, SetupError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BackOff", "Connecting"]

_FIRST_BACK_OFF_SECONDS = 0.5
_LONGEST_BACK_OFF_SECONDS = 30.0
_CONFIRMED_SECONDS = 5.0
"""Time for which a connection has to last behind an acknowledgement before that counts as taken. Most systems confirm
no acknowledgement, and some hang up at one: at the same message on each connection."""
_REFUSED_SECONDS = 30.0
"""Shortest wait after a system has refused a request of the configuration."""


class BackOff:
    """Waiting times that double from 0.5 to 30 seconds, with jitter so that many clients do not reconnect at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next_seconds = _FIRST_BACK_OFF_SECONDS
        self._connected_since: float | None = None
        self._acknowledged_since: float | None = None

    def next(self, at_least_seconds: float | None = None) -> float:
        """Returns the seconds to wait after another failure, no less than `at_least_seconds`.

        The wait is between half the current step and the whole step. The step doubles with each call. It starts again
        at 0.5 seconds if the last connection lasted longer than 30 seconds, or than 5 seconds behind its first
        acknowledgement.
        """
        now = self._clock()
        for since, seconds in (
            (self._connected_since, _LONGEST_BACK_OFF_SECONDS),
            (self._acknowledged_since, _CONFIRMED_SECONDS),
        ):
            if since is not None and now - since > seconds:
                self.reset()
        self._connected_since = self._acknowledged_since = None
        wait = self._next_seconds * random.uniform(0.5, 1.0)  # noqa: S311 # no secret depends on it
        self._next_seconds = min(self._next_seconds * 2, _LONGEST_BACK_OFF_SECONDS)
        return max(wait, at_least_seconds or 0.0)

    def connected(self) -> None:
        """Notes that a connection exists.

        The next wait does not shrink yet: only messages or time can show that the connection works.
        """
        self._connected_since = self._clock()

    def acknowledged(self) -> None:
        """Notes that a source has acknowledged messages; the wait shrinks only if the connection outlives that."""
        if self._acknowledged_since is None:
            self._acknowledged_since = self._clock()

    def reset(self) -> None:
        """Makes the next wait short, since the system has confirmed that it has taken something."""
        self._next_seconds = _FIRST_BACK_OFF_SECONDS


class Connecting:
    """Attempts to connect to one system.

    What a system refuses at the first attempt ends the bridge: an operator has just started it, and is told. Later the
    other systems are at work, so a refusal is a connection that failed. The broker may have come only now, or another
    one in its place. The same holds for what the machine lacks, such as a file of TLS or the memory for a Java.
    """

    def __init__(self, connect: Callable[[], None], *, is_first: bool = True) -> None:
        """`connect` makes an attempt; it raises NotConnectedError, or HardFailureError or SetupError for a refusal.

        `is_first` is false in a process of a bridge that was at work before, see `engine.supervision.child`.
        """
        self._connect = connect
        self._is_first = is_first

    def attempt(self) -> None:
        """Connects.

        Raises:
            NotConnectedError: the attempt failed, or the system refused a request.
            HardFailureError: the system refused that at the first attempt.
            SetupError: the machine lacked something at the first attempt.
        """
        is_first, self._is_first = self._is_first, False
        try:
            self._connect()
        except (HardFailureError, SetupError) as error:
            if is_first:
                raise
            raise NotConnectedError(str(error), _REFUSED_SECONDS) from error
