"""State that is asked, against dicts of Python."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import SparkSession

from engine.streams import (
    NodeState,
    SessionWindows,
    SlidingWindows,
    StateError,
    StreamsBuilder,
    TimeWindows,
    Topology,
    TopologyTestDriver,
    json,
)

ALPHABET = "ab\u00e9\u4e16"
GAP = 50


def build() -> Topology:
    builder = StreamsBuilder("asked")
    builder.table("people", value=json("n int"), name="people").to("out")
    builder.table("numbers", value=json("n int"), key="long", name="numbers").to("out")
    clicks = builder.stream("clicks", value=json("n int")).group_by_key()
    totals = {"total": "sum(n)"}
    hopping = TimeWindows.of("100 ms", advance="50 ms", grace="1 d")
    clicks.windowed_by(hopping).aggregate("hopping", **totals).to("out")
    clicks.windowed_by(SessionWindows.of(f"{GAP} ms", grace="1 d")).aggregate("sessions", **totals).to("out")
    clicks.windowed_by(SlidingWindows.of("10 ms", grace="1 d")).aggregate("sliding", **totals).to("out")
    return builder.build()


def word(source: random.Random) -> str:
    return "".join(source.choices(ALPHABET, k=source.randrange(4)))


def number(source: random.Random) -> int:
    return source.choice((source.randrange(-20, 20), source.randrange(-(1 << 63), 1 << 63)))


def fits(key: Any, low: Any, high: Any) -> bool:
    return (low is None or low <= key) and (high is None or key <= high)


def encoded(key: str | None) -> bytes | None:
    return None if key is None else key.encode()


def ordered(keys: Iterable[str]) -> list[str]:
    return sorted(keys, key=lambda key: (len(key.encode()), key.encode()))


@pytest.mark.parametrize("seed", range(5))
def test_tables_can_be_asked_by_key_range_and_prefix(spark: SparkSession, seed: int) -> None:
    source = random.Random(seed)  # noqa: S311 # test data
    driver = TopologyTestDriver(build(), spark)
    people: dict[str, int] = {}
    numbers: dict[int, int] = {}
    for n in range(300):
        key, at = word(source), number(source)
        driver.pipe_input("people", key, None if n % 3 == 0 else {"n": n})
        driver.pipe_input("numbers", at.to_bytes(8, "big", signed=True), {"n": n})
        people.pop(key, None)
        if n % 3:
            people[key] = n
        numbers[at] = n
    asked, by_number = driver.get_store("people"), driver.get_store("numbers")

    def rows(keys: Iterable[str]) -> list[dict[str, Any]]:
        return [{"key": key, "n": people[key]} for key in ordered(keys)]

    assert list(asked.all()) == rows(people)
    for _ in range(100):
        key, low, high = word(source), *(source.choice((None, word(source))) for _ in range(2))
        assert asked.get(key) == ({"key": key, "n": people[key]} if key in people else None)
        found = rows(each for each in people if fits(each.encode(), encoded(low), encoded(high)))
        assert list(asked.range(low, high)) == found
        assert list(asked.range(low, high, limit=2)) == found[:2]
        assert list(asked.prefix(key)) == rows(each for each in people if each.startswith(key))
        both = [row for row in found if row["key"].startswith(key)]
        assert list(asked.rows(prefix=key, from_key=low, to_key=high)) == both

        at, least, most = number(source), *(source.choice((None, number(source))) for _ in range(2))
        for given in (at, str(at), at.to_bytes(8, "big", signed=True)):
            assert by_number.get(given) == ({"key": at, "n": numbers[at]} if at in numbers else None)
        between = {row["key"]: row["n"] for row in by_number.range(least, most)}
        assert between == {each: n for each, n in numbers.items() if fits(each, least, most)}


def hopping_windows(times: list[int]) -> set[int]:
    return {start for time in times for start in range(time // 50 * 50 - 50, time + 1, 50) if start >= 0}


def sessions(times: list[int]) -> set[int]:
    return {times[0], *(later for earlier, later in pairwise(times) if later - earlier > GAP)}


def sliding_windows(times: list[int]) -> set[int]:
    ending = {time - 10 for time in times}
    return ending | {one + 1 for one in times if any(one < other <= one + 11 for other in times)}


@pytest.mark.parametrize(
    ("node", "starts"), [("hopping", hopping_windows), ("sessions", sessions), ("sliding", sliding_windows)]
)
def test_windows_can_be_asked_by_their_starts(
    spark: SparkSession, node: str, starts: Callable[[list[int]], set[int]]
) -> None:
    source = random.Random(node)  # noqa: S311 # test data
    driver = TopologyTestDriver(build(), spark)
    times: dict[str, list[int]] = {}
    for _ in range(400):
        key, time = word(source)[:2], source.randrange(5_000)
        driver.pipe_input("clicks", key, {"n": 1}, timestamp=time)
        times.setdefault(key, []).append(time)
    windows = {key: sorted(starts(sorted(each))) for key, each in times.items()}
    asked = driver.get_store(node)

    def expected(keys: Iterable[str], since: int | None, until: int | None) -> list[tuple[str, int]]:
        return [(key, start) for key in ordered(keys) for start in windows[key] if fits(start, since, until)]

    assert found(asked, {}) == expected(windows, None, None)
    for _ in range(60):
        key, other = word(source)[:2], word(source)[:2]
        since, until = (source.choice((None, source.randrange(-100, 5_000))) for _ in range(2))
        bounds = {"since": since, "until": until}
        assert found(asked, {"key": key, **bounds}) == expected({key} & windows.keys(), since, until)
        assert found(asked, bounds) == expected(windows, since, until)
        assert found(asked, {**bounds, "limit": 5}) == expected(windows, since, until)[:5]
        chosen = [each for each in windows if fits(each.encode(), key.encode(), other.encode())]
        assert found(asked, {"from_key": key, "to_key": other, **bounds}) == expected(chosen, since, until)
    some, every = next(iter(windows.items()))
    (first,) = asked.fetch(some, every[0], every[0])
    assert asked.window(some, every[0]) == asked.window(some, datetime.fromtimestamp(every[0] / 1_000, UTC)) == first
    assert asked.window(some, every[-1] + 1) is None
    assert list(asked.fetch(some, since=every[1])) == list(asked.fetch(some))[1:]
    assert [row["key"] for row in asked.fetch_all(until=every[0])].count(some) == 1


def found(asked: NodeState, about: dict[str, Any]) -> list[tuple[str, int]]:
    """Keys and starts of the rows."""
    epoch = datetime.fromtimestamp(0, UTC)
    return [
        (row["key"], round((datetime.fromisoformat(row["window_start"]) - epoch).total_seconds() * 1_000))
        for row in asked.rows(**about)
    ]


def test_what_cannot_be_asked_is_refused(spark: SparkSession) -> None:
    driver = TopologyTestDriver(build(), spark)
    people, numbers, windows = (driver.get_store(name) for name in ("people", "numbers", "hopping"))
    with pytest.raises(StateError, match="'people' has no windows: ask without times"):
        people.fetch("a", since=0)
    with pytest.raises(StateError, match=r"'hopping' has a row for each window: ask window\(key, start\) or fetch"):
        windows.get("a")
    with pytest.raises(StateError, match="the keys of 'numbers' are numbers: ask for a range"):
        numbers.prefix("1")
    with pytest.raises(StateError, match="the keys of 'numbers' are whole numbers of 64 bits, not 'a'"):
        numbers.get("a")
    with pytest.raises(StateError, match="are whole numbers of 64 bits"):
        numbers.get(1 << 63)
    with pytest.raises(StateError, match="is not a time: milliseconds since 1970 are a number of 64 bits"):
        windows.fetch("a", until=2**63)
    with pytest.raises(StateError, match="one key does not go with a range or a prefix"):
        people.rows("a", prefix="a")
