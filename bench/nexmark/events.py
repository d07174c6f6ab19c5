"""Generator of Nexmark events: persons, auctions and bids of an auction house, in the proportions 1 : 3 : 46.

Proportions, ids, prices, sizes and hot sellers, auctions and bidders are those of Apache Beam and nexmark-flink. The
event with a number is the same in every run. Event time is a fixed step for each event, but for a tail: the last events
are of the day after, so that each partition of each topic has records behind which all windows close.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["AUCTION", "BEGIN", "BID", "PERSON", "TAIL_BEGIN", "Event", "events"]

PERSON, AUCTION, BID = 0, 1, 2
"""Values of the field `event_type`."""
BEGIN = 1_767_225_600_000
"""Time of the first event in milliseconds since 1970: 1 January 2026, 0:00 UTC."""
TAIL_BEGIN = BEGIN + 86_400_000
"""Time of the first event of the tail."""
_PERSONS, _AUCTIONS, _ALL = 1, 3, 50
_FIRST_ID = 1000
_FIRST_CATEGORY, _CATEGORIES = 10, 5
_ACTIVE_PERSONS, _OPEN_AUCTIONS, _LEAD = 1000, 100, 10
_HOT = 100
"""One person and one auction of so many is hot."""
_HOT_SELLERS, _HOT_AUCTIONS, _HOT_BIDDERS, _HOT_CHANNELS = 4, 2, 4, 2
"""All but one of so many choices fall on what is hot."""
_CHANNELS = 10_000
_PERSON_BYTES, _AUCTION_BYTES, _BID_BYTES = 200, 500, 100
_TAIL_EVENTS = 1000
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
_FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_LETTERS = 1 << 16


@dataclass(frozen=True, slots=True)
class Event:
    """Event of the auction house."""

    time: int
    """Milliseconds since 1970, also in the field `dateTime`."""
    value: str
    """JSON object with `event_type` and one of `person`, `auction` and `bid`."""


def events(count: int, per_second: int = 10_000) -> Iterator[Event]:
    """Yields the first `count` events of a stream with `per_second` events in a second of event time, a tail included.

    Raises:
        ValueError: the events would reach the day of the tail.
    """
    body = count - min(_TAIL_EVENTS, count // 10)
    if body * 1000 // per_second >= TAIL_BEGIN - BEGIN:
        msg = f"{count:,} events at {per_second:,} a second take longer than a day: take fewer"
        raise ValueError(msg)
    house = _House(per_second)
    for number in range(count):
        since = number * 1000 // per_second
        time = BEGIN + since if number < body else TAIL_BEGIN + since - body * 1000 // per_second
        yield Event(time, house.event(number, time))


class _House:
    """Random choices of the events."""

    def __init__(self, per_second: int) -> None:
        random = Random(1)  # noqa: S311
        self._random: Callable[[], float] = random.random
        self._letters = "".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=_LETTERS + 1000))
        self._length_ms = 2 * _OPEN_AUCTIONS * _ALL // _AUCTIONS * 1000 // per_second
        """Upper bound of the time for which an auction is open."""
        self._hot = [(name, self._url()) for name in ("Google", "Facebook", "Baidu", "Apple")]
        self._cold = [
            (f"channel-{each}", self._url() + (f"&channel_id={each * 2_654_435_761 % (1 << 31)}" if each % 10 else ""))
            for each in range(_CHANNELS)
        ]

    def event(self, number: int, time: int) -> str:
        """The value of an event."""
        offset = number % _ALL
        if offset < _PERSONS:
            return self._person(number // _ALL, time)
        if offset < _PERSONS + _AUCTIONS:
            return self._auction(number // _ALL, offset - _PERSONS, time)
        return self._bid(number // _ALL, time)

    def _person(self, epoch: int, time: int) -> str:
        name = f"{_FIRST_NAMES[self._below(11)]} {_LAST_NAMES[self._below(9)]}"
        email = f"{self._text(3, 7)}@{self._text(3, 5)}.com"
        card = " ".join(f"{self._below(10_000):04d}" for _ in range(4))
        city, state = _CITIES[self._below(10)], _STATES[self._below(6)]
        extra = self._extra(_PERSON_BYTES - 8 - len(name) - len(email) - len(card) - len(city) - len(state))
        return (
            f'{{"event_type":0,"person":{{"id":{_FIRST_ID + epoch},"name":"{name}","emailAddress":"{email}",'
            f'"creditCard":"{card}","city":"{city}","state":"{state}","dateTime":{time},"extra":"{extra}"}}}}'
        )

    def _auction(self, epoch: int, index: int, time: int) -> str:
        seller = epoch // _HOT * _HOT if self._below(_HOT_SELLERS) else self._any_person(epoch)
        first = self._price()
        name, description = self._text(3, 20), self._text(3, 100)
        extra = self._extra(_AUCTION_BYTES - 48 - len(name) - len(description))
        return (
            f'{{"event_type":1,"auction":{{"id":{_FIRST_ID + epoch * _AUCTIONS + index},"itemName":"{name}",'
            f'"description":"{description}","initialBid":{first},"reserve":{first + self._price()},'
            f'"dateTime":{time},"expires":{time + 1 + self._below(self._length_ms)},"seller":{_FIRST_ID + seller},'
            f'"category":{_FIRST_CATEGORY + self._below(_CATEGORIES)},"extra":"{extra}"}}}}'
        )

    def _bid(self, epoch: int, time: int) -> str:
        last = epoch * _AUCTIONS + _AUCTIONS - 1
        if self._below(_HOT_AUCTIONS):
            auction = last // _HOT * _HOT
        else:
            oldest = max(last - _OPEN_AUCTIONS, 0)
            auction = oldest + self._below(last - oldest + 1 + _LEAD)
        # The second person of a batch, so that the hot bidder is not the hot seller.
        bidder = epoch // _HOT * _HOT + 1 if self._below(_HOT_BIDDERS) else self._any_person(epoch)
        channel, url = self._hot[self._below(4)] if self._below(_HOT_CHANNELS) else self._cold[self._below(_CHANNELS)]
        return (
            f'{{"event_type":2,"bid":{{"auction":{_FIRST_ID + auction},"bidder":{_FIRST_ID + bidder},'
            f'"price":{self._price()},"channel":"{channel}","url":"{url}","dateTime":{time},'
            f'"extra":"{self._extra(_BID_BYTES - 32)}"}}}}'
        )

    def _any_person(self, epoch: int) -> int:
        persons = epoch + 1
        active = min(persons, _ACTIVE_PERSONS)
        return persons - active + self._below(active + _LEAD)

    def _price(self) -> int:
        return round(math.pow(10.0, self._random() * 6.0) * 100.0)

    def _below(self, bound: int) -> int:
        return int(self._random() * bound)

    def _text(self, least: int, bound: int) -> str:
        return self._exactly(least + self._below(bound - least))

    def _extra(self, average: int) -> str:
        spread = round(average * 0.2)
        return self._exactly(average - spread + self._below(2 * spread))

    def _exactly(self, length: int) -> str:
        at = int(self._random() * _LETTERS)
        return self._letters[at : at + length]

    def _url(self) -> str:
        folders = "/".join(self._text(3, 5) for _ in range(3))
        return f"https://www.example.com/{folders}/item.htm?query=1"
