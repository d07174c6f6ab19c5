"""Windows of a calendar: each has the beginning and end that Python's own time zones give it."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter
from datetime import datetime, timedelta
from itertools import count, pairwise
from zoneinfo import ZoneInfo

from pyspark.sql import SparkSession

from engine.streams import StreamsBuilder, TimeWindows, TopologyTestDriver, json

ORIGIN, MONDAY = datetime(1970, 1, 1), datetime(1969, 12, 29)
HOUR, DAY = 3_600_000, 86_400_000
LAST = 2_200_000_000_000
"""Sometime in 2039, which is beyond the tables of many zones' own changes."""
CASES = [
    # 23 and 25 hours, in both hemispheres.
    ("1 day", "Europe/Berlin", "0 s"),
    ("1 day", "Australia/Lord_Howe", "0 s"),
    # Clocks were changed at midnight: days without one, and with two.
    ("1 day", "America/Sao_Paulo", "0 s"),
    ("1 day", "Asia/Beirut", "0 s"),
    ("1 day", "America/Havana", "0 s"),
    # A whole day was left out at the end of 2011.
    ("1 day", "Pacific/Apia", "0 s"),
    # The beginning itself is skipped in spring, and occurs twice in autumn.
    ("1 day", "Europe/Berlin", "150 min"),
    ("1 day", "America/New_York", "90 min"),
    ("10 days", "Asia/Kathmandu", "6 h"),
    ("1 week", "Europe/London", "0 s"),
    ("2 weeks", "America/St_Johns", "6 days"),
    ("1 month", "Europe/Berlin", "0 s"),
    ("3 months", "Africa/Casablanca", "36 h"),
    ("1 year", "Asia/Tokyo", "0 s"),
]


def starts(size: str, zone: str, offset: str) -> list[int]:
    """Beginnings of all windows until some time after the last record, in milliseconds since 1970."""
    number, unit = int(size.split()[0]), size.split()[1].rstrip("s")
    value, _, of = offset.partition(" ")
    later = timedelta(milliseconds=int(value) * {"s": 1000, "min": 60_000, "h": HOUR, "days": DAY}[of])
    found: list[int] = []
    for index in count(-1):
        units = index * number
        match unit:
            case "day":
                first = ORIGIN + timedelta(days=units)
            case "week":
                first = MONDAY + timedelta(weeks=units)
            case "month":
                first = datetime(1970 + units // 12, units % 12 + 1, 1)
            case _:
                first = datetime(1970 + units, 1, 1)
        found.append(round((first + later).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000))
        if found[-1] > LAST + 400 * DAY:
            return found
    raise AssertionError


def near_bounds(bounds: list[int]) -> set[int]:
    """Times about beginnings of windows, most of them of windows with an unusual length, and times between."""
    chance = random.Random(len(bounds))  # noqa: S311
    lengths = Counter(end - begin for begin, end in pairwise(bounds))
    unusual = [end for begin, end in pairwise(bounds) if lengths[end - begin] < len(bounds) // 3 and 0 < end < LAST]
    usual = [each for each in bounds if 0 < each < LAST]
    chosen = [*chance.sample(unusual, min(len(unusual), 10)), *chance.sample(usual, 5)]
    return {0, *(bound + near for bound in chosen for near in (-HOUR, -1, 0, HOUR)), chance.randrange(LAST)}


def test_windows_have_the_beginnings_and_ends_of_the_calendar(spark: SparkSession) -> None:
    builder = StreamsBuilder("calendar")
    records = builder.stream("in", value=json("n int")).group_by_key()
    for number, (size, zone, offset) in enumerate(CASES):
        counts = records.windowed_by(TimeWindows.of(size, zone=zone, offset=offset)).count().to_stream()
        counts.map_values(since="unix_millis(window_start)", until="unix_millis(window_end)").to(f"out-{number}")
    driver = TopologyTestDriver(builder.build(), spark)
    bounds = [starts(*case) for case in CASES]
    times = sorted(set().union(*map(near_bounds, bounds)))
    for time in times:
        driver.pipe_input("in", "k", {"n": 1}, timestamp=time)
    for number, (case, found) in enumerate(zip(CASES, bounds, strict=True)):
        places = [bisect_right(found, time) for time in times]
        rows = [(row.value["since"], row.value["until"]) for row in driver.read_output(f"out-{number}")]
        assert rows == [(found[place - 1], found[place]) for place in places], case


def test_a_day_of_23_hours_closes_after_23_hours(spark: SparkSession) -> None:
    builder = StreamsBuilder("calendar")
    windows = TimeWindows.of("1 day", zone="Europe/Berlin")
    builder.stream("in", value=json("n int")).group_by_key().windowed_by(windows).count().suppress().to_stream().to(
        "out"
    )
    driver = TopologyTestDriver(builder.build(), spark)
    begin = round(datetime(2026, 3, 29, tzinfo=ZoneInfo("Europe/Berlin")).timestamp() * 1000)
    for at in (begin, begin + 23 * HOUR - 1):
        driver.pipe_input("in", "k", {"n": 1}, timestamp=at)
    assert driver.read_output("out") == []
    driver.pipe_input("in", "k", {"n": 1}, timestamp=begin + 23 * HOUR)
    (row,) = driver.read_output("out")
    assert row.value["count"] == 2
