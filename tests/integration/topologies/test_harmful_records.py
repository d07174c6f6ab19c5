"""Records that would read the JVM's memory or end the JVM: dead letters, or set aside by hand."""

from __future__ import annotations

import json
import struct
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.integration.topologies.conftest import BEGIN_MS, TopologyBench
from tests.topic_records import committed_records
from tests.waiting import until

KILLER = 2_000_000_000


def letters(bench: TopologyBench, name: str) -> list[tuple[bytes | None, dict[str, str]]]:
    """Values and headers of the dead letters of a topology."""
    topic = f"{bench.prefix}-{name}-dead-letters"
    found = []
    for record in committed_records(bench.bootstrap, topic):
        about = {header: str(value, "utf-8") for header, value in record.headers() or [] if isinstance(value, bytes)}
        found.append((record.value(), about))
    return found


def row(page: bytes, number: int, offset: int, size: int) -> bytes:
    return struct.pack("<QQQ", 0, offset << 32 | size, number) + page.ljust(8, b"\0")


def test_rows_of_others_in_an_internal_topic_neither_read_memory_nor_end_the_jvm(bench: TopologyBench) -> None:
    process = bench.start("paged", "--mode", "batch")
    bench.send_clicks(200)
    bench.comes_to("processed-out", 200)
    topic = f"{bench.prefix}-paged-by-page-repartition"
    producer = bench._producer()
    # Of the JVM's memory: 4,000 bytes behind a row, 150,000 further on, and some that no process may read.
    hostile = [row(b"p1", 1, 24, 4_000), row(b"p1", 1, 150_000, 8), row(b"p1", 1, 0x7FFFFFF8, 0x40000000), b"12345"]
    for value in hostile:
        producer.produce(topic, value, "p1", timestamp=BEGIN_MS)
    assert producer.flush(30) == 0
    until(lambda: len(letters(bench, "paged")) == len(hostile), 60)
    bench.send_clicks(200)
    bench.comes_to("processed-out", 400)
    bench.stop(process)
    bench.check("counts-out")
    found = letters(bench, "paged")
    assert [value for value, _ in found] == hostile
    assert all(about["jmsbridge.reason"] == "value" for _, about in found)
    assert all(about["jmsbridge.position"].startswith(f"{topic}:") for _, about in found)


def workers(bench: TopologyBench) -> list[int]:
    """Process ids of the Python functions of the bench's topologies."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            is_worker = folder.name.isdecimal() and b"library.python_worker" in (folder / "cmdline").read_bytes()
            if is_worker and bench.prefix.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def test_records_that_harm_the_process_of_a_function_are_dead_letters(bench: TopologyBench) -> None:
    with bench.file.open("a") as file:
        file.write("topologies.function-timeout=3s\n")
    process = bench.start_alone("harmful")
    bench.send_clicks(10)
    bench.comes_to("processed-out", 6)
    until(lambda: len(letters(bench, "harmful")) == 4, 120)
    bench.send_clicks(10)
    bench.comes_to("processed-out", 16)
    assert workers(bench)
    bench.stop(process)
    until(lambda: not workers(bench), 20)
    assert sorted(each["n"] for _, each in bench.published("processed-out")) == [1, 2, *range(7, 21)]
    found = letters(bench, "harmful")
    assert sorted(json.loads(value)["n"] for value, _ in found if value is not None) == [3, 4, 5, 6]
    errors = {json.loads(value or b"")["n"]: about["jmsbridge.error"] for value, about in found}
    assert errors[3].startswith("SystemExit: 3 (")
    assert "300,0" in errors[4]
    assert "has ended with 3" in errors[5]
    assert "it took longer than 3 seconds (topologies.function-timeout)" in errors[6]
    assert all(about["jmsbridge.position"].startswith(f"{bench.prefix}-clicks:") for _, about in found)


def send_killer(bench: TopologyBench) -> tuple[str, str]:
    """Sends a record that ends the JVM, and one behind it; returns the first one's partition and value."""
    producer, clicks = bench._producer(), f"{bench.prefix}-clicks"
    value = json.dumps({"page": "p1", "n": KILLER})
    producer.produce(clicks, value, "k", partition=0, timestamp=BEGIN_MS + 20_000)
    producer.produce(clicks, json.dumps({"page": "p1", "n": 11}), "k", partition=0, timestamp=BEGIN_MS + 30_000)
    assert producer.flush(30) == 0
    return f"{clicks}:0", value


@pytest.mark.kills
def test_a_record_that_ends_the_jvm_is_told_and_can_be_set_aside(bench: TopologyBench) -> None:
    bench.send_clicks(10)
    partition, _ = send_killer(bench)
    _, told = bench.fails("repeated")
    position = told.rpartition("it was processing ")[2].partition(";")[0]
    assert position.startswith(f"{partition}:"), bench.log.read_text()[-3_000:]
    _, told = bench.fails("repeated")
    name = f"{bench.prefix}-repeated"
    assert f"it has ended 2 times while it was processing {position}" in told
    assert f"`jms-bridge topology skip {name} {position}`" in told
    assert "sends it to" in bench.command("skip", name, position, "--yes")
    process = bench.start("repeated")
    bench.comes_to("processed-out", 11)
    bench.stop(process)


def test_a_record_is_set_aside(bench: TopologyBench) -> None:
    begun = time.time() * 1_000 - 1_000
    bench.send_clicks(10)
    process = bench.start("repeated")
    bench.comes_to("processed-out", 10)
    bench.stop(process)
    partition, value = send_killer(bench)
    (offset,) = (record.offset() for record in bench.records("clicks") if record.value() == value.encode())
    name, position = f"{bench.prefix}-repeated", f"{partition}:{offset}"

    assert "no such record" in bench.command("skip", name, f"{partition}:9999")
    assert "does not read others" in bench.command("skip", name, "others:0:0")
    assert "unprocessed" in bench.command("skip", name, position, "--dry-run")
    asked = bench.command("skip", name, position, "--yes")
    assert asked == (
        f"{position}: key 'k', a value of {len(value)} bytes\n"
        f"The next run of '{name}' sends it to {name}-dead-letters unprocessed.\n"
    )
    assert "set aside already" in bench.command("skip", name, position)
    process = bench.start("repeated")
    bench.comes_to("processed-out", 11)
    assert "stop it first" in bench.command("skip", name, position, "--yes")
    bench.stop(process)
    assert sorted(each["n"] for _, each in bench.published("processed-out")) == list(range(1, 12))
    # Kafka tells of a commit before each partition has its marker.
    until(lambda: letters(bench, "repeated"), 30)
    ((letter, about),) = letters(bench, "repeated")
    assert letter == value.encode()
    assert (about["jmsbridge.reason"], about["jmsbridge.position"]) == ("skipped", position)
    # Kafka removes records by their times, and this one is from 2001.
    assert about["jmsbridge.timestamp"] == str(BEGIN_MS + 20_000)
    (published,) = bench.times("repeated-dead-letters")
    assert begun <= published <= time.time() * 1_000
    assert f"has processed {position}" in bench.command("skip", name, position)
