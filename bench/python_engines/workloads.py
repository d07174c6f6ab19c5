"""Inputs of the comparison, and what plain Python computes of them.

    words     lines of eight words; how often each word has come
    windows   events with keys; their number by key and ten seconds
    function  events; what the Python function of `rule` makes of each

Engines publish changes as often as they like, so that of counts the greatest of each key is compared; of `function`
all results are. An hour of event time follows the warm-up, and the last events, one for each key, come a day later: so
windows are closed wherever a contestant closes them by event time, and none is open while the contestant waits.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.broker import PARTITIONS
from bench.feed import FeedRecord
from bench.python_engines.rule import FIELDS, scored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["WORKLOADS", "Row", "Workload"]

Row = tuple[Any, ...]
"""Values of the compared fields of one result."""
_BEGIN = 1_767_225_600_000
"""Time of the first event in milliseconds since 1970: 1 January 2026, 0:00 UTC."""
_HOUR_MS = 3_600_000
_TAIL = _BEGIN + 24 * _HOUR_MS
"""Time of the last events, whose windows are left out."""
_LEAST_STEP_MS = 1
_WARM_UP_MS = 60_000
"""Event time of a short warm-up, so that windows close in it."""
_WINDOW_MS = 10_000
_KEYS = 500
_WORDS, _WORDS_IN_LINE = 10_000, 8


@dataclass(frozen=True, slots=True)
class Workload:
    """Input and results."""

    records: Callable[[int, int], Iterator[FeedRecord]]
    """The input of so many records, so many of them for the warm-up."""
    expected: Callable[[Iterable[FeedRecord]], Counter[Row]]
    """How often each result is in the output; of counts, the count itself."""
    fields: tuple[str, ...]
    """Fields of a result; of counts, all but the count."""
    count: str = ""
    """Field of the count; empty: each record is a result."""

    def results(self, values: Iterable[dict[str, Any]]) -> Counter[Row]:
        """The results among published values, as `expected` gives them."""
        found: Counter[Row] = Counter()
        for value in values:
            if value.get("start", 0) >= _TAIL:
                continue
            row = tuple(value[name] for name in self.fields)
            found[row] = max(found[row], value[self.count]) if self.count else found[row] + 1
        return found


def _lines(count: int, warm_up: int) -> Iterator[FeedRecord]:
    draw = random.Random(1)  # noqa: S311
    words = [f"word{number}" for number in range(_WORDS)]
    weights = [1 / (number + 10) for number in range(_WORDS)]
    many = draw.choices(words, weights, k=1 << 16)
    for number in range(count):
        begin = draw.randrange(len(many) - _WORDS_IN_LINE)
        line = " ".join(many[begin : begin + _WORDS_IN_LINE])
        yield FeedRecord(number % PARTITIONS, _time(number, count, warm_up), line)


def _events(count: int, warm_up: int) -> Iterator[FeedRecord]:
    draw = random.Random(1)  # noqa: S311
    for number in range(count):
        is_tail = number >= count - _KEYS
        key = number % _KEYS if is_tail else int(draw.random() * _KEYS)
        time = _time(number, count, warm_up)
        url = f"https://shop{key % 20}.example.com/items/{number % 9973}?from=mail"
        value = {"key": f"key-{key}", "time": time, "user": f" User-{key} ", "url": url}
        value["cents"] = int(draw.random() ** 4 * 300_000)
        yield FeedRecord(key % PARTITIONS, time, json.dumps(value), f"key-{key}")


def _time(number: int, count: int, warm_up: int) -> int:
    if number >= count - _KEYS:
        return _TAIL
    step = max(_LEAST_STEP_MS, _WARM_UP_MS // warm_up)
    return _BEGIN + number * step + (_HOUR_MS if number >= warm_up else 0)


def _counted(records: Iterable[FeedRecord]) -> Counter[Row]:
    return Counter((word,) for record in records for word in record.value.split())


def _windowed(records: Iterable[FeedRecord]) -> Counter[Row]:
    return Counter((record.key, record.time - record.time % _WINDOW_MS) for record in records if record.time < _TAIL)


def _scored(records: Iterable[FeedRecord]) -> Counter[Row]:
    values = (json.loads(record.value) for record in records)
    return Counter(scored(value["user"], value["url"], value["cents"]) for value in values)


WORKLOADS = {
    "words": Workload(_lines, _counted, ("word",), "count"),
    "windows": Workload(_events, _windowed, ("key", "start"), "count"),
    "function": Workload(_events, _scored, FIELDS),
}
"""Workloads by their names."""
