"""Batches of a replay: their size, and the time at which each may go. A batch is one transaction."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from threading import Event

__all__ = ["MOST_BYTES", "MOST_MESSAGES", "BatchShare", "Pace", "batches"]

MOST_BYTES = 16 * 1024 * 1024
"""Greatest size in memory of the messages of one transaction, except for a single larger one."""
_LINES = 1000
"""Greatest number of outcomes held back until a transaction is complete."""
MOST_MESSAGES = 200
"""Greatest number of messages that a replay sends at a time."""
_TURNS_A_SECOND = 10
"""Number of batches a second at higher rates; at lower rates messages go one by one."""

_T = TypeVar("_T")


class BatchShare(NamedTuple):
    """Share of one message that moves in its batch."""

    size: int
    """Bytes in memory."""
    counts: bool = True
    """True if it counts towards the messages asked for."""


class Pace:
    """The size of the next batch, and the time until it may go."""

    def __init__(self, per_second: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        """Creates it; without a rate, a batch may go at any time."""
        self._per_second = per_second
        self._clock = clock
        self._due = clock()
        self.batch = (
            MOST_MESSAGES if per_second is None else max(1, min(MOST_MESSAGES, int(per_second / _TURNS_A_SECOND)))
        )
        """Greatest number of messages in a batch."""

    @property
    def wait_seconds(self) -> float:
        """Seconds until the next batch may go."""
        return max(self._due - self._clock(), 0.0)

    def sent(self, count: int) -> None:
        """Takes note that `count` messages go now."""
        if self._per_second is not None:
            self._due = max(self._due, self._clock()) + count / self._per_second


def batches(
    judged: Iterable[_T],
    share: Callable[[_T], BatchShare | None],
    per_second: float | None,
    most: int | None,
    stop: Event,
) -> Iterator[list[_T]]:
    """Groups judged messages into transactions, and yields each when it may go.

    Args:
        judged: messages with their verdicts.
        share: returns the share of a message in its batch; None for one that does not move.
        per_second: greatest number of messages a second; None for no limit.
        most: number of messages after which it ends; None for all.
        stop: ends it before the next batch.
    """
    pace, left = Pace(per_second), most
    batch: list[_T] = []
    moves = size = 0
    for each in judged:
        batch.append(each)
        if moved := share(each):
            moves, size = moves + 1, size + moved.size
            left = left - 1 if left is not None and moved.counts else left
        if left == 0 or moves == pace.batch or size >= MOST_BYTES or len(batch) == _LINES:
            if stop.wait(pace.wait_seconds if moves else 0):
                return
            pace.sent(moves)
            yield batch
            batch, moves, size = [], 0, 0
        if left == 0 or stop.is_set():
            return
    if batch and not stop.wait(pace.wait_seconds):
        yield batch
