"""Rows that are removed after a time, and former values of rows, as plain Python computes them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.streams import InputRecord, ProcessorContext, StreamsBuilder, Topology, TopologyTestDriver, json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

TTL = 10_000
HISTORY = 10_000
TIMES = st.one_of(st.integers(0, 40), st.sampled_from([-1, 0, 10, 11, 20, 21])).map(lambda time: time * 1_000)
RECORDS = st.lists(st.tuples(st.sampled_from("ab"), TIMES, st.one_of(st.none(), st.integers(0, 9))), max_size=25)
Row = tuple[int, int]
"""Time and value."""


REMOVES, FAILS, WAITS, ENDS = 7, 5, 3, 99
"""Numbers at which the function of these tests removes its state, raises, sets a timer, and ends its process."""


def counted(record: InputRecord, context: ProcessorContext) -> Iterator[dict[str, Any]]:
    assert record.value is not None
    number, count = record.value["n"], (context.state or {"count": 0})["count"]
    if number == FAILS:
        raise ArithmeticError("five")
    if number == ENDS:
        os._exit(1)
    if number is not None:
        context.state = None if number == REMOVES else {"count": count + 1}
    if number == WAITS:
        context.schedule(record.timestamp + TTL // 2)
    yield {"count": count}


def reminded(context: ProcessorContext, time: int) -> dict[str, Any]:
    count = (context.state or {"count": 0})["count"]
    context.state = {"count": count + 100}
    return {"count": -count}


class Counts:
    """What `counted` and `reminded` see where the state goes `TTL` after the latest record of its key."""

    def __init__(self) -> None:
        self.states: dict[str, tuple[int, int]] = {}
        """Time and count of each key."""
        self.timers: set[tuple[int, str]] = set()
        self.results: dict[str, list[int]] = {"a": [], "b": []}
        self.stream_time = -1

    def count(self, key: str, now: int) -> int:
        if key in self.states and self.states[key][0] + TTL < now:
            del self.states[key]
        return self.states.get(key, (0, 0))[1]

    def put(self, key: str, time: int, count: int) -> None:
        self.states[key] = max(time, self.states.get(key, (time, 0))[0]), count

    def advance(self, to: int) -> None:
        self.stream_time = max(self.stream_time, to)
        while due := sorted(each for each in self.timers if each[0] <= self.stream_time):
            time, key = due[0]
            self.timers.remove(due[0])
            count = self.count(key, time)
            self.results[key].append(-count)
            self.put(key, time, count + 100)

    def take(self, key: str, time: int, number: int | None) -> None:
        if time < 0:
            return
        self.advance(time)
        count = self.count(key, self.stream_time)
        if number == FAILS:
            return
        self.results[key].append(count)
        if number == REMOVES:
            self.states.pop(key, None)
        elif number is not None:
            self.put(key, time, count + 1)
        elif key in self.states:
            self.put(key, time, count)
        if number == WAITS:
            self.timers.add((time + TTL // 2, key))
        self.advance(time)


def counting() -> Topology:
    builder = StreamsBuilder("states")
    numbers = builder.stream("in", value=json("n int"))
    about = {"fields": "count int", "state": "count int", "expire_after": "10 s", "name": "counts"}
    numbers.process(counted, on_timer=reminded, **about).to("out")
    return builder.build()


@pytest.mark.parametrize("is_held", [False, True])
@settings(max_examples=6, deadline=None)
@given(records=RECORDS, end=st.integers(0, 60_000))
def test_state_of_a_process_is_removed_after_a_time(
    spark: SparkSession, is_held: bool, records: list[tuple[str, int, int | None]], end: int
) -> None:
    model, driver = Counts(), TopologyTestDriver(counting(), spark)
    driver._running()
    for key, time, number in records:
        model.take(key, time, number)
        if is_held:
            value = "{}" if number is None else f'{{"n":{number}}}'
            driver._run.hold("in", key.encode(), value.encode(), time)
        else:
            driver.pipe_input("in", key, {"n": number}, time)
    if is_held:
        driver._run.processHeld()
    shown = {row["key"]: row["count"] for row in driver.get_store("counts").all()}
    assert shown == {key: count for key in list(model.states) if (count := model.count(key, model.stream_time))}
    driver.advance_time(end)
    model.advance(end)
    results: dict[str, list[int]] = {"a": [], "b": []}
    for each in driver.read_output("out"):
        results[each.key].append(each.value["count"])
    assert results == model.results
    assert len(driver.rejected()) == sum(time < 0 or number == FAILS for _, time, number in records)
    shown = {row["key"]: row["count"] for row in driver.get_store("counts").all()}
    assert shown == {key: count for key in list(model.states) if (count := model.count(key, model.stream_time))}
    driver.close()


def test_state_expires_between_the_records_of_a_request_that_ends_its_process(spark: SparkSession) -> None:
    driver = TopologyTestDriver(counting(), spark)
    driver._running()
    for number, time in ((1, 1_000), (2, 5_000), (4, 16_000), (6, 17_000), (ENDS, 90_000), (8, 20_000)):
        driver._run.hold("in", b"a", b'{"n":%d}' % number, time)
    driver._run.processHeld()
    # The record of 90 s fails, but its time counts, as in a request that is processed as a whole.
    assert [each.value["count"] for each in driver.read_output("out")] == [0, 1, 0, 1, 0]
    assert list(driver.get_store("counts").all()) == []
    assert len(driver.rejected()) == 1


class Rows:
    """Rows that are removed when stream time is later than their time by more than `TTL`."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.changes: list[tuple[str, int | None, int]] = []
        self.stream_time = -1
        self.late = 0

    def takes(self, time: int) -> bool:
        """Moves stream time on; False for a record that is late or has no time."""
        if time < 0:
            return False
        self.stream_time = max(self.stream_time, time)
        gone = [(then, key) for key, (then, _) in self.rows.items() if then + TTL < self.stream_time]
        for then, key in sorted(gone):
            del self.rows[key]
            self.changes.append((key, None, then + TTL))
        is_late = time + TTL < self.stream_time
        self.late += is_late
        return not is_late


def changes(driver: TopologyTestDriver, field: str) -> list[tuple[str, int | None, int]]:
    outputs = driver.read_output("out")
    return [(each.key, None if each.value is None else each.value[field], each.timestamp) for each in outputs]


@pytest.mark.parametrize("is_stream", [False, True])
@settings(max_examples=12, deadline=None)
@given(records=RECORDS, end=st.integers(0, 60_000))
def test_rows_of_a_table_are_removed_after_a_time(
    spark: SparkSession, is_stream: bool, records: list[tuple[str, int, int | None]], end: int
) -> None:
    builder = StreamsBuilder("expiring")
    form = json("n int")
    table = (
        builder.stream("in", value=form).to_table(name="t") if is_stream else builder.table("in", value=form, name="t")
    )
    table.expire_after("10 s").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    model = Rows()
    for key, time, value in records:
        driver.pipe_input("in", key, None if value is None else {"n": value}, timestamp=time)
        if not model.takes(time):
            continue
        if value is not None:
            model.rows[key] = (time, value)
        elif model.rows.pop(key, None) is None:
            continue
        model.changes.append((key, value, time))
    driver.advance_time(end)
    model.takes(end)
    assert changes(driver, "n") == model.changes
    assert {each["key"]: each["n"] for each in driver.get_store("t").all()} == {
        k: v for k, (_, v) in model.rows.items()
    }
    letters = [dict(each.headers)["jmsbridge.reason"] for each in driver.rejected()]
    assert letters == [b"timestamp"] * sum(time < 0 for _, time, _ in records)
    # The end of the model can be late, and is no record.
    late = driver.counts().get(("t", "late_records"), 0)
    assert late == model.late - (end + TTL < model.stream_time)


@settings(max_examples=15, deadline=None)
@given(records=RECORDS, end=st.integers(0, 60_000))
def test_aggregates_are_removed_after_a_time_and_begin_anew(
    spark: SparkSession, records: list[tuple[str, int, int | None]], end: int
) -> None:
    builder = StreamsBuilder("expiring")
    grouped = builder.stream("in", value=json("n int")).group_by_key()
    # A zero cannot be taken: its record changes nothing, not even stream time.
    grouped.aggregate("t", total="sum(1 div n * n)").expire_after("10 s").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    model = Rows()
    for key, time, value in records:
        driver.pipe_input("in", key, None if value is None else {"n": value}, timestamp=time)
        if value is None or (value == 0 and time + TTL >= max(time, model.stream_time)) or not model.takes(time):
            continue
        then, total = model.rows.get(key, (-1, 0))
        model.rows[key] = row = (max(then, time), total + 1 // value * value)
        model.changes.append((key, row[1], row[0]))
    driver.advance_time(end)
    model.takes(end)
    assert changes(driver, "total") == model.changes


def test_a_removed_row_is_removed_from_what_is_made_of_the_table(spark: SparkSession) -> None:
    builder = StreamsBuilder("expiring")
    people = builder.table("people", value=json("region string"), name="people").expire_after("10 s")
    names = builder.table("names", value=json("name string"), name="names")
    people.group_by("region").count("regions").to("regions-out")
    people.join(names).to("joined-out")
    builder.stream("asks", value=json("n int")).left_join(people).to("asked-out")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("names", "ann", {"name": "Ann"}, timestamp=50_000)
    driver.pipe_input("people", "ann", {"region": "emea"}, timestamp=1_000)
    driver.pipe_input("people", "bob", {"region": "emea"}, timestamp=9_000)
    driver.pipe_input("people", "bob", {"region": "emea"}, timestamp=11_001)
    driver.pipe_input("asks", "ann", {"n": 1}, timestamp=11_001)
    driver.pipe_input("asks", "bob", {"n": 1}, timestamp=11_001)
    assert [each.value and each.value["count"] for each in driver.read_output("regions-out")] == [1, 2, 1, 1]
    assert [each.value is None for each in driver.read_output("joined-out")] == [False, True]
    assert [each.value for each in driver.read_output("asked-out")] == [{"n": 1}, {"n": 1, "region": "emea"}]
    # Nobody is left, and nothing of the index either: the table's own stream time and the name remain.
    driver.advance_time(100_000)
    assert list(driver.get_store("people").all()) == []
    assert driver.read_output("regions-out")[-1].value is None


class Versions:
    """Values of each key by the times from which they are valid; None: removed."""

    def __init__(self) -> None:
        self.of: dict[str, dict[int, int | None]] = {}
        self.stream_time = -1

    def put(self, key: str, time: int, value: int | None) -> bool:
        self.stream_time = max(self.stream_time, time)
        if time < self.stream_time - HISTORY:
            return False
        self.of.setdefault(key, {})[time] = value
        return True

    def get(self, key: str, time: int) -> int | None:
        known = self.of.get(key, {})
        if not known:
            return None
        latest = max(known)
        if known[latest] is not None and (time < 0 or latest <= time):
            return known[latest]
        before = [each for each in known if each <= time]
        return None if time < 0 or time < self.stream_time - HISTORY or not before else known[max(before)]


@settings(max_examples=30, deadline=None)
@given(
    records=st.lists(
        st.tuples(st.booleans(), st.sampled_from("ab"), TIMES, st.one_of(st.none(), st.integers(0, 9))), max_size=40
    )
)
def test_a_join_takes_the_row_of_its_time(
    spark: SparkSession, records: list[tuple[bool, str, int, int | None]]
) -> None:
    builder = StreamsBuilder("history")
    table = builder.table("table", value=json("t int"), name="t").keep_history("10 s")
    builder.stream("in", value=json("n int")).left_join(table, name="j").to("joined")
    table.to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    model = Versions()
    expected: list[Any] = []
    latest: list[Any] = []
    late = without = 0
    for is_change, key, time, value in records:
        if is_change:
            driver.pipe_input("table", key, None if value is None else {"t": value}, timestamp=time)
            without += time < 0
            if time < 0:
                continue
            known = model.of.get(key, {})
            newest = max(known, default=-1)
            if not model.put(key, time, value):
                late += 1
            elif time >= newest and (value is not None or (known and newest >= 0 and latest_row(latest, key))):
                latest.append((key, value))
        else:
            driver.pipe_input("in", key, {"n": 0}, timestamp=time)
            expected.append(model.get(key, time))
    assert [each.value.get("t") for each in driver.read_output("joined")] == expected
    assert [(each.key, each.value and each.value["t"]) for each in driver.read_output("out")] == latest
    assert driver.counts().get(("t", "late_records"), 0) == late
    assert [dict(each.headers)["jmsbridge.reason"] for each in driver.rejected()] == [b"timestamp"] * without
    present = {key: value for key, value in latest if value is not None and latest_row(latest, key)}
    assert {each["key"]: each["t"] for each in driver.get_store("t").all()} == present
    # Versions that nobody can ask for go.
    driver.advance_time(10_000_000)
    run: Any = driver._running()
    assert run.entries() <= len(present) + 1


def latest_row(changes: list[Any], key: str) -> bool:
    """Whether the key has a row after the changes that were forwarded."""
    return next((value is not None for each, value in reversed(changes) if each == key), False)
