"""Results of the queries: the fields that are compared, and what is in force among what a contestant published.

Contestants publish changes as often as they like, so what counts is the last value of each key of Kafka, and a record
without a value removes its key; where results do not change, all records count. Results of the tail are left out where
windows or days have to close first.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.nexmark.events import TAIL_BEGIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["QUERIES", "Query", "Row", "in_force"]

Row = tuple[Any, ...]
"""Values of the compared fields of one result."""

_LAST_START = TAIL_BEGIN - 10_000
"""Time from which on windows may have records of the tail."""
_LIMITS = {"day": "2026-01-02", "dateTime": TAIL_BEGIN}
"""Least values of fields in results of the tail, if they are not beginnings of windows."""
_BID = ("auction", "bidder", "price", "dateTime", "extra")
_FIGURES = tuple(
    f"{which}_{of}" for of in ("bids", "bidders", "auctions") for which in ("total", "rank1", "rank2", "rank3")
)


@dataclass(frozen=True, slots=True)
class Query:
    """Form of the results of a query."""

    fields: tuple[str, ...]
    """Fields that are compared."""
    tail: str = ""
    """Field with a time or a day, by which results of the tail are left out; empty: they count as all others."""
    many: str = ""
    """Field with an array whose elements are results of their own; empty: a value is one result."""
    is_summed: bool = False
    """True if the last field is added up over results that are alike otherwise."""
    is_keyed: bool = True
    """True if a record takes the place of an earlier one with its key."""

    def rows(self, values: Iterable[Mapping[str, Any]]) -> Counter[Row]:
        """The compared results in values, with how often each is there."""
        found: Counter[Row] = Counter()
        for value in values:
            if self.tail and value[self.tail] >= _LIMITS.get(self.tail, _LAST_START):
                continue
            for row in self._rows(value):
                if self.is_summed:
                    found[row[:-1]] += row[-1]
                else:
                    found[row] += 1
        return found

    def _rows(self, value: Mapping[str, Any]) -> Iterator[Row]:
        if not self.many or self.many not in value:
            yield tuple(value[name] for name in self.fields)
            return
        for rank, element in enumerate(value[self.many], 1):
            # An element is a row of its own or the one field that the array is named after, in the plural.
            fields = element if isinstance(element, dict) else {self.many.removesuffix("s"): element}
            yield tuple({**value, "rank_number": rank, **fields}[name] for name in self.fields)


def in_force(query: str, records: Iterable[tuple[Any, Any]]) -> list[Any]:
    """The values in force among pairs of key and value, in the order of publication for each key."""
    if not QUERIES[query].is_keyed:
        return [value for _, value in records]
    return [value for value in dict(records).values() if value is not None]


QUERIES = {
    "q0": Query(_BID, is_keyed=False),
    "q1": Query(_BID, is_keyed=False),
    "q2": Query(("auction", "price"), is_keyed=False),
    "q3": Query(("name", "city", "state", "id")),
    "q4": Query(("category", "final")),
    "q5": Query(("starttime", "auction", "num"), tail="starttime", many="auctions"),
    "q7": Query(_BID, tail="dateTime"),
    "q8": Query(("id", "name", "starttime"), tail="starttime"),
    "q11": Query(("bidder", "bid_count", "starttime", "endtime"), tail="starttime"),
    "q12": Query(("bidder", "bid_count"), is_summed=True),
    "q15": Query(("day", *_FIGURES), tail="day"),
    "q16": Query(("channel", "day", "minute", *_FIGURES), tail="day"),
    "q17": Query(
        ("auction", "day", *_FIGURES[:4], "min_price", "max_price", "avg_price", "sum_price"),
        tail="day",
    ),
    # Bids of one millisecond, and bids of one price, have no order.
    "q18": Query(("auction", "bidder", "dateTime")),
    "q19": Query(("auction", "price", "rank_number"), many="bids"),
    "q20": Query(
        (
            *("auction", "bidder", "price", "channel", "url", "bid_dateTime", "bid_extra", "itemName", "description"),
            *("initialBid", "reserve", "auction_dateTime", "expires", "seller", "category", "auction_extra"),
        ),
        is_keyed=False,
    ),
}
"""Queries by their names."""
