"""Queries of Nexmark as topologies; they read the topic that BENCH_PREFIX and "events" name, and write to BENCH_OUTPUT.

`peer/…/nexmark` has the same as Kafka Streams programs, `queries.sql` as Flink SQL. Nodes are native but for
`process` in q4 and `python` in q12. Bids and auctions join within ten seconds, between which all bids of an auction
lie.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

from engine.streams import (
    InputRecord,
    ProcessorContext,
    SessionWindows,
    Stream,
    StreamsBuilder,
    TimeWindows,
    Topology,
    json,
    python,
)

__all__ = [
    "q0",
    "q1",
    "q2",
    "q3",
    "q4",
    "q5",
    "q7",
    "q8",
    "q11",
    "q12",
    "q15",
    "q16",
    "q17",
    "q18",
    "q19",
    "q20",
]

EVENTS = f"{os.environ.get('BENCH_PREFIX', '')}events"
OUTPUT = os.environ.get("BENCH_OUTPUT", "out")
_GRACE = "10 s"
_WITHIN = "10 s"
_DAY = "cast(date_from_unix_date(cast(dateTime div 86400000 as int)) as string)"
_RANKS = {
    "rank1": "price < 10000",
    "rank2": "price >= 10000 AND price < 1000000",
    "rank3": "price >= 1000000",
}
"""Ranks of bids by their prices, and their conditions."""
_TYPES = {
    "person": "id bigint, name string, city string, state string, dateTime bigint",
    "auction": "id bigint, itemName string, description string, initialBid bigint, reserve bigint, dateTime bigint, "
    "expires bigint, seller bigint, category bigint, extra string",
    "bid": "auction bigint, bidder bigint, price bigint, channel string, url string, dateTime bigint, extra string",
}
_KINDS = tuple(_TYPES)


class _Query:
    """A topology that is being built, of which each node reads only the fields that it needs."""

    def __init__(self, name: str, **fields: str) -> None:
        """Creates the source; `fields` are names of fields of persons, auctions or bids, with blanks between them."""
        self._fields = {kind: names.split() for kind, names in fields.items()}
        types = {
            kind: dict(field.split() for field in _TYPES[kind].split(", "))  # each field is a name and a type
            for kind in fields
        }
        structs = [
            f"{kind} struct<{', '.join(f'{name}: {types[kind][name]}' for name in names)}>"
            for kind, names in self._fields.items()
        ]
        self.builder = StreamsBuilder(f"{name}-{OUTPUT}")
        self._events = self.builder.stream(EVENTS, value=json(", ".join(["event_type int", *structs])))

    def of(self, kind: str, condition: str = "TRUE") -> Stream:
        """The persons, auctions or bids for which a condition on the event is true."""
        fields = {name: f"{kind}.{name}" for name in self._fields[kind]}
        chosen = self._events.filter(f"event_type = {_KINDS.index(kind)} AND {condition}")
        return chosen.map_values(**fields)

    def to(self, results: Stream) -> Topology:
        """The topology that publishes the results."""
        results.to(OUTPUT)
        return self.builder.build()


def q0() -> Topology:
    """Bids as they are."""
    query = _Query("q0", bid="auction bidder price dateTime extra")
    return query.to(query.of("bid"))


def q1() -> Topology:
    """Bids with prices in euros."""
    query = _Query("q1", bid="auction bidder price dateTime extra")
    bids = query.of("bid").map_values(
        auction="auction",
        bidder="bidder",
        price="cast(0.908 * price as decimal(23, 3))",
        dateTime="dateTime",
        extra="extra",
    )
    return query.to(bids)


def q2() -> Topology:
    """Bids on some auctions."""
    query = _Query("q2", bid="auction price")
    return query.to(query.of("bid", "bid.auction % 123 = 0"))


def q3() -> Topology:
    """Sellers of three states with their auctions in category 10."""
    query = _Query("q3", person="id name city state", auction="id seller category")
    people = query.of("person", "person.state IN ('OR', 'ID', 'CA')").select_key("id").to_table(name="people")
    auctions = query.of("auction", "auction.category = 10").select_key("id").to_table(name="auctions")
    found = auctions.join(people, on="cast(seller as string)", prefix="of_", name="sellers")
    return query.to(found.map_values(name="of_name", city="of_city", state="of_state", id="id").to_stream())


def _raised(auction: InputRecord, category: ProcessorContext) -> Iterator[dict[str, int]]:
    """Yields by how much the highest bid of the auction has grown, and one for the first."""
    assert auction.value is not None
    before = category.state
    final = auction.value["final"]
    if before is None or final > before["final"]:
        category.state = {"final": final}
        more = final - (before["final"] if before else 0)
        yield {"category": auction.value["category"], "more": more, "auctions": int(before is None)}


def q4() -> Topology:
    """Average of the highest bids on the auctions of a category, among bids while the auction was open."""
    query = _Query("q4", auction="id category dateTime expires", bid="auction price dateTime")
    open_auctions = query.of("auction").select_key("id")
    bids = query.of("bid").select_key("auction").map_values(price="price", bidTime="dateTime")
    joined = bids.join(open_auctions, within=_WITHIN, grace=_GRACE, name="joined")
    valid = joined.filter("bidTime BETWEEN dateTime AND expires")
    highest = valid.group_by_key().aggregate("highest", final="max(price)", category="first(category)").suppress()
    raises = highest.to_stream().process(
        _raised, fields="category bigint, more bigint, auctions bigint", state="final bigint", name="raised"
    )
    sums = raises.group_by("category").aggregate("sums", total="sum(more)", number="sum(auctions)").suppress()
    return query.to(sums.to_stream().map_values(category="cast(key as bigint)", final="total div number"))


def q5() -> Topology:
    """Auctions with the most bids in the last ten seconds, every two seconds."""
    query = _Query("q5", bid="auction")
    windows = TimeWindows.of("10 s", advance="2 s", grace=_GRACE)
    counts = query.of("bid").group_by("auction").windowed_by(windows).count(name="counts").suppress().to_stream()
    counted = counts.map_values(starttime="unix_millis(window_start)", auction="cast(key as bigint)", num="count")
    most = counted.group_by("starttime").aggregate("most", most="top(struct(num, auction), 100)").suppress()
    results = most.to_stream().map_values(
        starttime="cast(key as bigint)",
        num="most[0].num",
        auctions="transform(filter(most, each -> each.num = most[0].num), each -> each.auction)",
    )
    return query.to(results)


def q7() -> Topology:
    """Highest bid of each ten seconds."""
    query = _Query("q7", bid="auction bidder price dateTime extra")
    highest = "max_by(struct(auction, price, bidder, dateTime, extra), price)"
    windows = TimeWindows.of("10 s", grace=_GRACE)
    best = query.of("bid").group_by("'all'").windowed_by(windows).aggregate("best", best=highest).suppress()
    results = best.to_stream().select_key("unix_millis(window_start)")
    fields = ("auction", "price", "bidder", "dateTime", "extra")
    return query.to(results.map_values(**{name: f"best.{name}" for name in fields}))


def q8() -> Topology:
    """Persons who have offered an auction in the ten seconds in which they came."""
    query = _Query("q8", person="id name dateTime", auction="seller dateTime")
    start = "dateTime div 10000 * 10000"
    people = query.of("person").select_key(f"concat(id, ' ', {start})")
    sellers = query.of("auction").select_key(f"concat(seller, ' ', {start})")
    once = sellers.deduplicate(within=_WITHIN, name="once").map_values(seller="seller")
    found = people.join(once, within=_WITHIN, grace=_GRACE, name="found")
    return query.to(found.map_values(id="id", name="name", starttime=start))


def q11() -> Topology:
    """Bids of each bidder in each session."""
    query = _Query("q11", bid="bidder")
    sessions = query.of("bid").group_by("bidder").windowed_by(SessionWindows.of("10 s", grace=_GRACE))
    counts = sessions.count(name="sessions").suppress().to_stream()
    results = counts.map_values(
        bidder="cast(key as bigint)",
        bid_count="count",
        starttime="unix_millis(window_start)",
        endtime="unix_millis(window_end) + 10000",
    )
    # A later session of the bidder takes not the place of this one.
    return query.to(results.select_key("concat(bidder, ' ', starttime)"))


def _clock(batch: Any) -> list[int]:
    return [time.time_ns() // 1_000_000] * int(batch.num_rows)


def q12() -> Topology:
    """Bids of each bidder in each ten seconds of processing."""
    query = _Query("q12", bid="bidder")
    timed = query.of("bid").map_values(bidder="bidder", now=python(_clock, "bigint"))
    counts = timed.group_by("concat(bidder, ' ', now div 10000)").count(name="counts").suppress().to_stream()
    return query.to(counts.map_values(bidder="cast(split(key, ' ')[0] as bigint)", bid_count="count"))


def _new(bids: Stream, of: str, by: str, ranks: Mapping[str, str]) -> list[Stream]:
    """A stream for each of `FIGURES` that counts different bidders or auctions: their first bids, as ones there."""
    firsts = {f"total_{of}": bids, **{f"{rank}_{of}": bids.filter(which) for rank, which in ranks.items()}}
    return [
        _figures(stream.deduplicate(within="2 days", by=by, name=f"{name}-once"), **{name: "1L"})
        for name, stream in firsts.items()
    ]


FIGURES = [f"{which}_{of}" for of in ("bids", "bidders", "auctions") for which in ("total", *_RANKS)]
"""Fields of q15 and q16 that are sums."""
_SUMS = {name: f"sum({name})" for name in FIGURES}
_COUNTS = {"total_bids": "1L", **{f"{rank}_bids": f"if({which}, 1L, 0L)" for rank, which in _RANKS.items()}}


def _figures(stream: Stream, **given: str) -> Stream:
    """The records with the figures, of which those that are not given are 0, and the time of the bid."""
    return stream.map_values(**(dict.fromkeys(FIGURES, "0L") | given), dateTime="dateTime")


def q15() -> Topology:
    """Numbers of bids, bidders and auctions of each day, by ranks of prices."""
    query = _Query("q15", bid="auction bidder price dateTime")
    bids = query.of("bid")
    parts = [_figures(bids, **_COUNTS)]
    ranks = {rank: f"bool_or({which})" for rank, which in _RANKS.items()}
    for of, field in (("bidders", "bidder"), ("auctions", "auction")):
        ids = bids.group_by(f"concat({field}, ' ', {_DAY})")
        seen = ids.aggregate(of, **ranks, dateTime="max(dateTime)").suppress().to_stream()
        parts += _new(seen, of, "key", ranks={rank: rank for rank in _RANKS})
    totals = parts[0].merge(*parts[1:]).group_by(_DAY).aggregate("days", **_SUMS).suppress()
    return query.to(totals.to_stream().map_values(day="key", **{name: name for name in FIGURES}))


def q16() -> Topology:
    """Numbers of bids, bidders and auctions of each channel and day, by ranks of prices."""
    query = _Query("q16", bid="auction bidder price channel dateTime")
    bids = query.of("bid").select_key(f"concat(channel, ' ', {_DAY})").repartition(name="by-channel")
    parts = [_figures(bids, **_COUNTS)]
    for of, field in (("bidders", "bidder"), ("auctions", "auction")):
        parts += _new(bids, of, f"concat(key, ' ', {field})", _RANKS)
    merged = parts[0].merge(*parts[1:]).group_by_key()
    totals = merged.aggregate("totals", **_SUMS, latest="max(dateTime)").suppress()
    results = totals.to_stream().map_values(
        channel="split(key, ' ')[0]",
        day="split(key, ' ')[1]",
        minute="date_format(timestamp_millis(latest), 'HH:mm')",
        **{name: name for name in FIGURES},
    )
    return query.to(results)


def q17() -> Topology:
    """Numbers and prices of the bids on each auction and day."""
    query = _Query("q17", bid="auction price dateTime")
    counts = {f"{rank}_bids": f"count(1) FILTER (WHERE {which})" for rank, which in _RANKS.items()}
    prices = {"min_price": "min(price)", "max_price": "max(price)", "sum_price": "sum(price)"}
    days = query.of("bid").group_by(f"concat(auction, ' ', {_DAY})")
    totals = days.aggregate("totals", total_bids="count(1)", **counts, **prices).suppress()
    results = totals.to_stream().map_values(
        auction="cast(split(key, ' ')[0] as bigint)",
        day="split(key, ' ')[1]",
        **{name: name for name in ("total_bids", *counts, *prices)},
        avg_price="sum_price div total_bids",
    )
    return query.to(results)


def q18() -> Topology:
    """Last bid of each bidder on each auction."""
    query = _Query("q18", bid="auction bidder price channel url dateTime extra")
    fields = ("auction", "bidder", "price", "channel", "url", "dateTime", "extra")
    last = query.of("bid").group_by("concat(bidder, ' ', auction)")
    lasts = last.aggregate("lasts", bid=f"max_by(struct({', '.join(fields)}), dateTime)").suppress()
    return query.to(lasts.to_stream().map_values(**{name: f"bid.{name}" for name in fields}))


def q19() -> Topology:
    """Ten highest bids on each auction."""
    query = _Query("q19", bid="auction bidder price channel url dateTime extra")
    top = "top(struct(price, bidder, channel, url, dateTime, extra), 10)"
    tops = query.of("bid").group_by("auction").aggregate("tops", bids=top).suppress()
    return query.to(tops.to_stream().map_values(auction="cast(key as bigint)", bids="bids"))


def q20() -> Topology:
    """Bids on auctions of category 10 with these auctions."""
    own = "auction bidder price channel url dateTime extra"
    of_auction = "id itemName description initialBid reserve dateTime expires seller category extra"
    query = _Query("q20", bid=own, auction=of_auction)
    auctions = query.of("auction", "auction.category = 10").select_key("id")
    bids = query.of("bid").select_key("auction")
    joined = bids.join(auctions, within=_WITHIN, grace=_GRACE, prefix="a_", name="joined")
    renamed = {"dateTime": "bid_dateTime", "extra": "bid_extra"}
    theirs = {"dateTime": "auction_dateTime", "extra": "auction_extra"}
    fields = {renamed.get(name, name): name for name in own.split()}
    fields |= {theirs.get(name, name): f"a_{name}" for name in of_auction.split() if name != "id"}
    return query.to(joined.map_values(**fields))
