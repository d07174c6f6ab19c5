"""Records that wait in Kafka: processed in the order of their times, so that none is late, and published in batches."""

from __future__ import annotations

import json
import random
import struct
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from engine.embedded import EmbeddedKafka
    from tests.integration.topologies.conftest import TopologyBench

BEGIN_MS = 1_700_000_000_000
REAL_TIME = ("--mode", "realtime", "--guarantee", "at_least_once")
BATCH = ("--mode", "batch")
_LENGTH = struct.Struct(">8x i")
"""Beginning of a batch in a log: its first offset, and the number of bytes behind this."""
KEYS = [f"k{number}" for number in range(12)]


@dataclass(frozen=True)
class Record:
    """A record for a topic."""

    topic: str
    key: str
    time_ms: int
    number: int
    page: str = field(default="", kw_only=True)

    @property
    def value(self) -> str:
        name = {"clicks": "n", "visits": "m", "pages": "title"}[self.topic]
        return json.dumps({name: self.number if name != "title" else str(self.number), "page": self.page})


def made(seed: int, count: int) -> list[Record]:
    """So many records of each topic, in the order of their times, which differ, over some twenty minutes."""
    chance = random.Random(seed)  # noqa: S311
    times = sorted(chance.sample(range(1_200_000), 3 * count))
    topics = ["clicks", "visits", "pages"] * count
    chance.shuffle(topics)
    return [
        Record(topic, chance.choice(KEYS), BEGIN_MS + at, number, page=chance.choice(KEYS))
        for number, (topic, at) in enumerate(zip(topics, times, strict=True))
    ]


def send(bench: TopologyBench, records: list[Record]) -> None:
    """Sends the records, one topic after the other."""
    producer = bench._producer()
    for each in sorted(records, key=lambda each: each.topic):
        producer.produce(f"{bench.prefix}-{each.topic}", each.value, each.key, timestamp=each.time_ms)
    assert producer.flush(60) == 0


def windows(records: list[Record]) -> Counter[int]:
    """Number of clicks and visits in each second that is closed, by its begin."""
    times = [each.time_ms for each in records if each.topic != "pages"]
    counts = Counter(at - at % 1_000 for at in times)
    return Counter({begin: number for begin, number in counts.items() if begin + 61_000 <= max(times)})


def pairs(records: list[Record], key: str) -> Counter[tuple[int, int]]:
    """Numbers of the clicks and visits within five seconds whose keys are equal, that of a click in a field."""
    visits = [each for each in records if each.topic == "visits"]
    return Counter(
        (click.number, visit.number)
        for click in records
        if click.topic == "clicks"
        for visit in visits
        if visit.key == getattr(click, key) and abs(visit.time_ms - click.time_ms) <= 5_000
    )


def titles(records: list[Record]) -> dict[int, str | None]:
    """Title of each click's page at its time, by the click's number."""
    latest: dict[str, str] = {}
    found: dict[int, str | None] = {}
    for each in records:
        if each.topic == "pages":
            latest[each.key] = str(each.number)
        elif each.topic == "clicks":
            found[each.number] = latest.get(each.key)
    return found


def batches(kafka: EmbeddedKafka, topic: str) -> int:
    """Number of batches of records in the log of a topic."""
    found = 0
    for log in kafka.folder.rglob(f"{topic}-*/*.log"):
        content, at = log.read_bytes(), 0
        while at < len(content):
            (length,) = _LENGTH.unpack_from(content, at)
            at += _LENGTH.size + length
            found += 1
    return found


def counted(bench: TopologyBench) -> Counter[int]:
    found: Counter[int] = Counter()
    for _, value in bench.published("counts-out"):
        found[milliseconds(value["window_start"])] += value["count"]
    return found


def milliseconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1_000)


def joined(bench: TopologyBench) -> Counter[tuple[int, int]]:
    return Counter((value["n"], value["m"]) for _, value in bench.published("joined-out"))


@pytest.mark.parametrize("options", [REAL_TIME, BATCH], ids=["realtime", "batch"])
def test_no_record_that_waited_is_late(bench: TopologyBench, options: tuple[str, ...]) -> None:
    records = made(1, 900)
    send(bench, records)
    process = bench.start("ordered", *options)
    bench.comes_to("joined-out", len(list(pairs(records, "key").elements())))
    bench.comes_to("visits-out", 900)
    bench.comes_to("counts-out", len(windows(records)))
    bench.stop(process)
    assert joined(bench) == pairs(records, "key")
    assert {value["n"]: value.get("title") for _, value in bench.published("visits-out")} == titles(records)
    assert counted(bench) == windows(records)


@pytest.mark.parametrize("options", [REAL_TIME, BATCH], ids=["realtime", "batch"])
def test_records_behind_an_internal_topic_meet_those_of_their_time(
    bench: TopologyBench, options: tuple[str, ...]
) -> None:
    records = made(2, 900)
    send(bench, records)
    process = bench.start("rekeyed", *options)
    bench.comes_to("joined-out", len(list(pairs(records, "page").elements())))
    bench.stop(process)
    assert joined(bench) == pairs(records, "page")


def test_an_outage_changes_no_result(bench: TopologyBench) -> None:
    records = made(3, 900)
    send(bench, records[:300])
    process = bench.start("merged")
    bench.comes_to("counts-out", len(windows(records[:300])))
    bench.stop(process)
    send(bench, records[300:])
    process = bench.start("merged")
    bench.comes_to("counts-out", len(windows(records)))
    bench.stop(process)
    assert counted(bench) == windows(records)


def test_results_of_records_that_waited_take_few_batches(bench: TopologyBench, kafka: EmbeddedKafka) -> None:
    bench.send_clicks(2_000)
    process = bench.start("digested", *REAL_TIME)
    bench.comes_to("counts-out", 2_000)
    bench.stop(process)
    # A producer that does not linger makes one of each record if it is handed them as they come.
    assert batches(kafka, f"{bench.prefix}-counts-out") < 400
