"""Search for the newest dead letters that filters take: reads backwards from the end, in bounded time and memory.

Only for display: `replay` reads the letters that it settles again, by position.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.dead_letters.letter import DeadLetter
from engine.kafka.reader import KafkaTopicReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.dead_letters.letter import Filters
    from engine.kafka.clients import KafkaClients
    from engine.kafka.reader import LocatedRecord, Position

__all__ = ["Found", "Summary", "search"]

_STEP = 200
"""Number of offsets of each partition that are read at first; each further step reads four times as many."""
_MOST_STEP = 20_000
_MOST_TEXT = 300
_KEY_BYTES = 200


@dataclass(frozen=True, slots=True)
class Summary:
    """A dead letter without its large parts."""

    position: Position
    time_ms: int
    """Time of the failure, in milliseconds since 1970."""
    reason: str
    route: str
    """Name of the route; empty for none."""
    detail: str
    """The reason in a sentence, cut to `_MOST_TEXT` characters."""
    key: bytes | None
    """Key, cut to `_KEY_BYTES`."""
    bytes: int
    """Size of the body."""
    replays: int

    @staticmethod
    def of(letter: DeadLetter, shown: Callable[[LocatedRecord], LocatedRecord]) -> Summary:
        """Creates the summary of a letter, with the texts of the record that `shown` makes of the letter's."""
        size = len(letter.located.record.value or b"")
        letter = DeadLetter(shown(letter.located))
        record = letter.located.record
        return Summary(
            letter.position,
            letter.time_ms,
            letter.reason[:_MOST_TEXT],
            letter.route[:_MOST_TEXT],
            letter.detail[:_MOST_TEXT],
            record.key and record.key[:_KEY_BYTES],
            size,
            letter.replays,
        )


@dataclass(frozen=True, slots=True)
class Found:
    """Result of a search."""

    letters: tuple[Summary, ...]
    """Matching letters, the newest first."""
    looked_at: int
    """Number of dead letters that were read."""
    is_complete: bool
    """True if all letters of the topic were read; if not, there may be more, older ones."""


def search(
    clients: KafkaClients,
    topic: str,
    filters: Filters,
    count: int,
    seconds: float,
    is_wanted: Callable[[Position], bool] = lambda _: True,
    shown: Callable[[LocatedRecord], LocatedRecord] = lambda located: located,
) -> Found:
    """Returns the newest letters that filters take and whose positions are wanted.

    At least `count`, if there are as many and `seconds` suffice to find them; older ones are left out. The texts of
    each are those of the record that `shown` makes of its record.

    Raises:
        UsageError: the topic does not exist.
        HardFailureError: Kafka does not let this user read it.
        UnreachableError: Kafka does not answer.
    """
    until = time.monotonic() + seconds
    summaries: list[Summary] = []
    looked_at, step = 0, _STEP
    with KafkaTopicReader(clients, topic, seconds) as reader:
        bounds = reader.bounds()
        ends = {partition: high for partition, (_, high) in bounds.items()}
        while True:
            starts = {
                partition: max(bounds[partition][0], end - step)
                for partition, end in ends.items()
                if end > bounds[partition][0]
            }
            for located in reader.read(starts, ends):
                looked_at += 1
                letter = DeadLetter(located)
                if filters.takes(letter) and is_wanted(letter.position):
                    summaries.append(Summary.of(letter, shown))
                if time.monotonic() > until:
                    return Found(_newest(summaries), looked_at, is_complete=False)
            ends |= starts
            is_complete = all(ends[partition] <= low for partition, (low, _) in bounds.items())
            if is_complete or len(summaries) >= count:
                return Found(_newest(summaries), looked_at, is_complete=is_complete)
            step = min(step * 4, _MOST_STEP)


def _newest(summaries: list[Summary]) -> tuple[Summary, ...]:
    return tuple(sorted(summaries, key=lambda letter: (letter.time_ms, letter.position), reverse=True))
