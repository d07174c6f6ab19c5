"""Results of the queries computed from all events at once, in plain Python, with nothing of what is measured."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bench.nexmark.events import AUCTION, BID, PERSON

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bench.nexmark.events import Event

__all__ = ["Expectation"]

Fields = dict[str, Any]
_WITHIN_MS = 10_000
_HOP_MS = 2_000


def _day(time: int) -> str:
    return datetime.fromtimestamp(time / 1000, UTC).strftime("%Y-%m-%d")


def _rank(bid: Fields) -> int:
    return 1 if bid["price"] < 10_000 else 2 if bid["price"] < 1_000_000 else 3


class Expectation:
    """Expected results of some events."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._of: dict[int, list[Fields]] = {PERSON: [], AUCTION: [], BID: []}
        for event in events:
            value = json.loads(event.value)
            kind = value.pop("event_type")
            (fields,) = value.values()
            self._of[kind].append(fields)
        self._auctions = {auction["id"]: auction for auction in self._of[AUCTION]}

    def values(self, query: str) -> list[Fields]:
        """The results in force of a query; more fields than those that are compared may be there."""
        made: Callable[[], list[Fields]] = getattr(self, f"_{query}")
        return made()

    @property
    def _bids(self) -> list[Fields]:
        return self._of[BID]

    def _q0(self) -> list[Fields]:
        return self._bids

    def _q1(self) -> list[Fields]:
        return [{**bid, "price": bid["price"] * 908 / 1000} for bid in self._bids]

    def _q2(self) -> list[Fields]:
        return [bid for bid in self._bids if bid["auction"] % 123 == 0]

    def _q3(self) -> list[Fields]:
        people = {person["id"]: person for person in self._of[PERSON] if person["state"] in ("OR", "ID", "CA")}
        found = [auction for auction in self._of[AUCTION] if auction["category"] == 10 and auction["seller"] in people]
        return [{**people[auction["seller"]], "id": auction["id"]} for auction in found]

    def _q4(self) -> list[Fields]:
        highest: dict[int, int] = {}
        for bid in self._bids:
            auction = self._auctions.get(bid["auction"])
            if auction and auction["dateTime"] <= bid["dateTime"] <= min(
                auction["expires"], auction["dateTime"] + _WITHIN_MS
            ):
                highest[auction["id"]] = max(highest.get(auction["id"], 0), bid["price"])
        finals = defaultdict(list)
        for auction_id, price in highest.items():
            finals[self._auctions[auction_id]["category"]].append(price)
        return [{"category": each, "final": sum(prices) // len(prices)} for each, prices in finals.items()]

    def _q5(self) -> list[Fields]:
        counts: Counter[tuple[int, int]] = Counter()
        for bid in self._bids:
            last = bid["dateTime"] // _HOP_MS * _HOP_MS
            for start in range(last, last - _WITHIN_MS, -_HOP_MS):
                counts[start, bid["auction"]] += 1
        most: dict[int, int] = {}
        for (start, _), number in counts.items():
            most[start] = max(most.get(start, 0), number)
        return [
            {"starttime": start, "auction": auction, "num": number}
            for (start, auction), number in counts.items()
            if number == most[start]
        ]

    def _q7(self) -> list[Fields]:
        highest: dict[int, int] = {}
        for bid in self._bids:
            window = bid["dateTime"] // _WITHIN_MS
            highest[window] = max(highest.get(window, 0), bid["price"])
        return [bid for bid in self._bids if bid["price"] == highest[bid["dateTime"] // _WITHIN_MS]]

    def _q8(self) -> list[Fields]:
        sellers = {(auction["seller"], auction["dateTime"] // _WITHIN_MS) for auction in self._of[AUCTION]}
        return [
            {**person, "starttime": window * _WITHIN_MS}
            for person in self._of[PERSON]
            if (person["id"], window := person["dateTime"] // _WITHIN_MS) in sellers
        ]

    def _q11(self) -> list[Fields]:
        sessions: dict[int, list[Fields]] = defaultdict(list)
        for bid in self._bids:
            of_bidder, time = sessions[bid["bidder"]], bid["dateTime"]
            if not of_bidder or of_bidder[-1]["endtime"] < time:
                of_bidder.append({"bidder": bid["bidder"], "bid_count": 0, "starttime": time})
            of_bidder[-1]["bid_count"] += 1
            of_bidder[-1]["endtime"] = time + _WITHIN_MS
        return [session for of_bidder in sessions.values() for session in of_bidder]

    def _q12(self) -> list[Fields]:
        counts = Counter(bid["bidder"] for bid in self._bids)
        return [{"bidder": bidder, "bid_count": number} for bidder, number in counts.items()]

    def _q15(self) -> list[Fields]:
        return self._totals(lambda _: "")

    def _q16(self) -> list[Fields]:
        return self._totals(lambda bid: str(bid["channel"]))

    def _totals(self, channel: Callable[[Fields], str]) -> list[Fields]:
        groups: dict[tuple[str, str], list[Fields]] = defaultdict(list)
        for bid in self._bids:
            groups[channel(bid), _day(bid["dateTime"])].append(bid)
        found = []
        for (name, day), bids in groups.items():
            latest = datetime.fromtimestamp(max(bid["dateTime"] for bid in bids) / 1000, UTC)
            total: Fields = {"channel": name, "day": day, "minute": latest.strftime("%H:%M")}
            for label, ranks in (("total", (1, 2, 3)), ("rank1", (1,)), ("rank2", (2,)), ("rank3", (3,))):
                chosen = [bid for bid in bids if _rank(bid) in ranks]
                total[f"{label}_bids"] = len(chosen)
                total[f"{label}_bidders"] = len({bid["bidder"] for bid in chosen})
                total[f"{label}_auctions"] = len({bid["auction"] for bid in chosen})
            found.append(total)
        return found

    def _q17(self) -> list[Fields]:
        groups: dict[tuple[int, str], list[Fields]] = defaultdict(list)
        for bid in self._bids:
            groups[bid["auction"], _day(bid["dateTime"])].append(bid)
        found = []
        for (auction, day), bids in groups.items():
            prices, ranks = [bid["price"] for bid in bids], Counter(map(_rank, bids))
            found.append(
                {"auction": auction, "day": day, "total_bids": len(bids)}
                | {f"rank{rank}_bids": ranks[rank] for rank in (1, 2, 3)}
                | {"min_price": min(prices), "max_price": max(prices), "sum_price": sum(prices)}
                | {"avg_price": sum(prices) // len(prices)}
            )
        return found

    def _q18(self) -> list[Fields]:
        return list({(bid["bidder"], bid["auction"]): bid for bid in self._bids}.values())

    def _q19(self) -> list[Fields]:
        groups: dict[int, list[Fields]] = defaultdict(list)
        for bid in self._bids:
            groups[bid["auction"]].append(bid)
        return [
            {"auction": auction, "bids": sorted(bids, key=lambda bid: -int(bid["price"]))[:10]}
            for auction, bids in groups.items()
        ]

    def _q20(self) -> list[Fields]:
        found = []
        for bid in self._bids:
            auction = self._auctions.get(bid["auction"])
            if auction and auction["category"] == 10 and abs(auction["dateTime"] - bid["dateTime"]) <= _WITHIN_MS:
                times = {"bid_dateTime": bid["dateTime"], "bid_extra": bid["extra"]}
                times |= {"auction_dateTime": auction["dateTime"], "auction_extra": auction["extra"]}
                found.append({**auction, **bid, **times})
        return found
