"""Sessions that are closed are those of a model, in the order of their ends, whatever the order of the records."""

from __future__ import annotations

from random import Random

import pytest
from pyspark.sql import SparkSession

from engine.streams import SessionWindows, StreamsBuilder, TopologyTestDriver, json

GAP, GRACE = 500, 800
Session = tuple[str, int, int, int]
"""Key, first and last time, and number of records."""


def expected(records: list[tuple[str, int]]) -> tuple[list[Session], int]:
    """Sessions in the order in which they are closed, and the number of late records."""
    open_sessions: list[Session] = []
    closed: list[Session] = []
    late, now = 0, 0
    for key, time in records:
        now = max(now, time)
        near = [each for each in open_sessions if each[0] == key and each[1] - GAP <= time <= each[2] + GAP]
        first, last = min([time, *(each[1] for each in near)]), max([time, *(each[2] for each in near)])
        if last + GAP + GRACE < now:
            late += 1
        else:
            open_sessions = [each for each in open_sessions if each not in near]
            open_sessions.append((key, first, last, 1 + sum(each[3] for each in near)))
        ended = [each for each in open_sessions if each[2] + GAP + GRACE < now]
        closed += sorted(ended, key=lambda each: (each[2], each[0], each[1]))
        open_sessions = [each for each in open_sessions if each not in ended]
    return closed, late


@pytest.mark.parametrize("seed", range(4))
def test_closed_sessions_are_those_of_the_model(spark: SparkSession, seed: int) -> None:
    random = Random(seed)  # noqa: S311 # test data
    records, time = [], 10_000
    for _ in range(150):
        time += random.choice((20, 100, 300, 900, 3_000))
        records.append((random.choice("abc"), time - random.choice((0, 0, 200, 700, 2_000))))
    records.append(("z", time + 100_000))
    builder = StreamsBuilder("sessions")
    sessions = builder.stream("in", value=json("n int")).group_by_key()
    counts = sessions.windowed_by(SessionWindows.of(f"{GAP} ms", grace=f"{GRACE} ms")).count("counts").suppress()
    counts.to_stream().map_values(start="unix_millis(window_start)", end="unix_millis(window_end)", n="count").to("out")
    with TopologyTestDriver(builder.build(), spark) as driver:
        for key, at in records:
            driver.pipe_input("in", key, '{"n": 1}', at)
        found = [
            (each.key, each.value["start"], each.value["end"], each.value["n"])
            for each in driver.read_output("out")
            if isinstance(each.value, dict)
        ]
        late = driver.counts().get(("counts", "late_records"), 0)
    assert (found, late) == expected(records)
    assert len(found) > 20
