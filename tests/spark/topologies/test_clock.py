"""Windows and timers that follow the clock, compared with a model in plain Python."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from engine.streams import (
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
    Topology,
    TopologyTestDriver,
    json,
)

SIZE, ADVANCE, GRACE, GAP = 100, 40, 30, 50


@dataclass
class HoppingModel:
    """Windows of time that close by stream time, and by a clock that moves stream time on to the end of a window."""

    size: int
    advance: int
    grace: int
    time: int = -1
    late: int = 0
    rejected: int = 0
    nulls: int = 0
    open: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)
    """Number and latest time of records by end of the window and key."""
    closed: list[tuple[int, str, int, int]] = field(default_factory=list)

    def record(self, key: str | None, time: int) -> None:
        if key is None:
            self.nulls += 1
            return
        if time < 0:
            self.rejected += 1
            return
        now = max(self.time, time)
        ends = [
            start + self.size
            for start in range(time // self.advance * self.advance, time - self.size, -self.advance)
            if start >= 0 and start + self.size + self.grace > now
        ]
        self.late += not ends
        for end in ends:
            number, latest = self.open.get((end, key), (0, 0))
            self.open[end, key] = number + 1, max(latest, time)
        self.time = now
        self.close()

    def clock(self, to: int) -> None:
        """Moves the clock on."""
        while due := sorted(end + self.grace for end, _ in self.open if end + self.grace <= to):
            self.time = max(self.time, due[0])
            self.close()

    def close(self) -> None:
        for end, key in sorted(each for each in self.open if each[0] + self.grace <= self.time):
            self.closed.append((end, key, *self.open.pop((end, key))))


@dataclass
class SessionModel:
    """The same for sessions."""

    gap: int
    grace: int
    time: int = -1
    late: int = 0
    open: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)
    """First time, last time and number of records of the sessions of each key."""
    closed: list[tuple[int, str, int, int]] = field(default_factory=list)

    def record(self, key: str | None, time: int) -> None:
        if key is None or time < 0:
            return
        own = self.open.setdefault(key, [])
        near = [each for each in own if each[0] - self.gap <= time <= each[1] + self.gap]
        now = max(self.time, time)
        first, last = min([time, *(each[0] for each in near)]), max([time, *(each[1] for each in near)])
        if last + self.gap + self.grace < now:
            self.late += 1
        else:
            self.open[key] = [each for each in own if each not in near]
            self.open[key].append((first, last, 1 + sum(each[2] for each in near)))
            self.time = now
        self.close()

    def clock(self, to: int) -> None:
        while due := sorted(
            each[1] + self.gap + self.grace + 1
            for own in self.open.values()
            for each in own
            if each[1] + self.gap + self.grace < to
        ):
            self.time = max(self.time, due[0])
            self.close()

    def close(self) -> None:
        for last, key, first, number in sorted(
            (last, key, first, number) for key, own in self.open.items() for first, last, number in own
        ):
            if last + self.gap + self.grace < self.time:
                self.open[key].remove((first, last, number))
                self.closed.append((last, key, number, last))


def windowed() -> Topology:
    """Hopping windows and sessions that the clock closes, and windows that it does not close."""
    builder = StreamsBuilder("clock")
    keyed = builder.stream("in", value=json("n int")).group_by_key()
    hopping = keyed.windowed_by(TimeWindows.of(f"{SIZE} ms", advance=f"{ADVANCE} ms", grace=f"{GRACE} ms"))
    sessions = keyed.windowed_by(SessionWindows.of(f"{GAP} ms", grace=f"{GRACE} ms"))
    for name, table in (
        ("hopping", hopping.count("hopping").suppress(close="clock")),
        ("sessions", sessions.count("sessions").suppress(close="clock")),
        ("others", hopping.count("others").suppress()),
    ):
        rows = table.to_stream().map_values(f"{name}-fields", end="unix_millis(window_end)", count="count")
        rows.to(f"{name}-out", name=f"{name}-to")
    return builder.build()


def results(driver: TopologyTestDriver, topic: str) -> list[tuple[int, str, int, int]]:
    return [(each.value["end"], each.key, each.value["count"], each.timestamp) for each in driver.read_output(topic)]


def test_windows_close_as_in_a_model(spark: SparkSession) -> None:
    topology = windowed()
    late = 0
    for seed in range(25):
        chance = random.Random(seed)  # noqa: S311
        hopping, sessions, others = (
            HoppingModel(SIZE, ADVANCE, GRACE),
            SessionModel(GAP, GRACE),
            HoppingModel(SIZE, ADVANCE, GRACE),
        )
        clock, time = 1_000, 1_000
        with TopologyTestDriver(topology, spark, wall_clock=clock) as driver:
            for _ in range(60):
                if chance.random() < 0.3:
                    step = chance.choice((0, 1, 10, SIZE, 300))
                    clock += step
                    driver.advance_wall_clock(f"{step} ms")
                    hopping.clock(clock)
                    sessions.clock(clock)
                time = chance.choice((time, time + chance.randrange(60), clock, clock - chance.randrange(400), -1))
                key = chance.choice(("a", "b", "c", None))
                driver.pipe_input("in", key, {"n": 1}, timestamp=time)
                for model in (hopping, sessions, others):
                    model.record(key, time)
                time = max(time, 0)
            # Expiry is in the order of the times, then of the keys of the state: windows by key and start.
            assert sorted(results(driver, "hopping-out")) == sorted(hopping.closed), seed
            assert sorted(results(driver, "sessions-out")) == sorted(sessions.closed), seed
            assert sorted(results(driver, "others-out")) == sorted(others.closed), seed
            counts = driver.counts()
            assert counts.get(("hopping", "late_records"), 0) == hopping.late, seed
            assert counts.get(("sessions", "late_records"), 0) == sessions.late, seed
            late += hopping.late - others.late
    assert late > 0
