"""Dropboxes beside shell scripts and other processes: kills at any moment, contention, many files."""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.telemetry.status import State
from tests.dropboxes import files, headers
from tests.integration.connectors.running import numbers, read
from tests.integration.connectors.sinks import RouterStandIn, committed, configure, in_order, is_waited_for, numbered
from tests.integration.connectors.worker import start_worker
from tests.waiting import until

if TYPE_CHECKING:
    from engine.embedded import EmbeddedKafka
    from tests.dropboxes import Dropboxes
    from tests.integration.connectors.conftest import Configure, Start, StartSink
    from tests.integration.connectors.dropbox_harness import DropboxHarness, DropboxSinkHarness

PRODUCER = """
for n in $(seq {begin} {end}); do
    printf '%s' "$n" > {box}/working/msg-$n.txt && mv {box}/working/msg-$n.txt {box}/target/
done
"""
CONSUMER = """
while [ ! -e {box}/stop ]; do
    for file in {box}/target/*; do
        name=$(basename "$file")
        mv -n "$file" {box}/processing/ 2>/dev/null && [ -e {box}/processing/"$name" ] || continue
        cat {box}/processing/"$name" >> {out}; echo >> {out}
        mv {box}/processing/"$name" {box}/processed/
    done
done
"""


def shell(script: str, **values: object) -> subprocess.Popen[bytes]:
    text = script.format(**{name: shlex.quote(str(value)) for name, value in values.items()})
    return subprocess.Popen(["/bin/sh", "-c", text])


def kill(process: subprocess.Popen[bytes]) -> None:
    assert process.poll() is None, "it should have been running"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture
def box(dropbox: DropboxHarness, queue: str) -> Path:
    return dropbox.boxes.queue(queue)


@pytest.fixture
def dice() -> random.Random:
    """Another one each time; what it was is shown where a test fails."""
    seed = time.time_ns()
    print(f"seed {seed}")
    return random.Random(seed)  # noqa: S311 # no secret depends on it


def test_what_a_shell_script_moves_in_arrives(
    dropbox: DropboxHarness, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka, box: Path
) -> None:
    config = configured(dropbox.settings(queue))
    source = start(config)
    with shell(PRODUCER, box=box, begin=1, end=300) as producer:
        assert producer.wait(60) == 0
    source.acknowledges(300)
    source.stop()
    messages = [located.message for located in read(kafka.bootstrap, config.journal.topic)]
    assert sorted(int(message.body) for message in messages) == list(range(1, 301))
    assert {message.headers["JMSMessageID"] for message in messages} == {f"ID:msg-{n}.txt" for n in range(1, 301)}
    assert len(files(box / "processed")) == 300


def test_a_shell_script_beside_the_bridge_takes_its_share_and_none_goes_twice(
    dropbox: DropboxHarness,
    configured: Configure,
    start: Start,
    queue: str,
    kafka: EmbeddedKafka,
    box: Path,
    tmp_path: Path,
) -> None:
    config = configured(dropbox.settings(queue) | {".workers": "2"})
    out = tmp_path / "consumed"
    out.touch()
    dropbox.boxes.put(box, {f"first-{n}": str(n).encode() for n in range(1001, 1201)})
    with shell(CONSUMER, box=box, out=out) as consumer:
        until(lambda: out.read_text().count("\n") > 5, 60, "the script consumes")
        sources = [start(config), start(config, 2)]
        with shell(PRODUCER, box=box, begin=1, end=500) as producer:
            assert producer.wait(60) == 0
        until(lambda: len(files(box / "processed")) == 700, 60, "all processed")
        (box / "stop").touch()
        assert consumer.wait(30) == 0
    for source in sources:
        source.stop()
        assert source.error is None
    by_script = [int(line) for line in out.read_text().split()]
    by_bridge = numbers(kafka.bootstrap, config.journal.topic)
    assert sorted(by_script + by_bridge) == [*range(1, 501), *range(1001, 1201)]
    assert by_script
    assert by_bridge


@pytest.mark.kills
def test_three_processes_that_are_killed_again_and_again_lose_nothing(
    dropbox: DropboxHarness, configured: Configure, queue: str, kafka: EmbeddedKafka, box: Path, dice: random.Random
) -> None:
    config = configured(dropbox.settings(queue))
    names = [f"4.{1_140_429_201_295_000 + n}-1.T" for n in range(10_000)]
    dropbox.boxes.put(box, {name: str(n).encode() for n, name in enumerate(names)})

    running = [start_worker("source", "src", config.path) for _ in range(3)]
    kills = 0
    for part in range(1, 6):
        until(lambda part=part: len(files(box / "processed")) >= 1200 * part, 120, "progress")
        time.sleep(dice.uniform(0, 0.05))
        kill(running.pop(0))
        kills += 1
        running.append(start_worker("source", "src", config.path))
    until(lambda: len(files(box / "processed")) == 10_000, 120, "all processed")
    for process in running:
        kill(process)

    counted = Counter(numbers(kafka.bootstrap, config.journal.topic))
    assert set(counted) == set(range(10_000))
    # Only what the journal had already and the file system did not know yet: what was on its way.
    assert counted.total() - 10_000 <= kills * 2000
    assert files(box / "target") == files(box / "processing") == []


@pytest.mark.kills
def test_a_sink_that_is_killed_at_any_moment_loses_and_doubles_nothing(
    dropbox_sink: DropboxSinkHarness, kafka: EmbeddedKafka, tmp_path: Path, queue: str, dice: random.Random
) -> None:
    config = configure(tmp_path, kafka.bootstrap, queue, dropbox_sink.settings())
    address = dropbox_sink.address(queue)
    RouterStandIn(config).give(address, numbered(10_000, size=300))
    box = dropbox_sink.boxes.queue(queue)
    for part in range(5):
        process = start_worker("sink", "out", config.path)
        until(lambda part=part: len(files(box / "target")) > 1500 * part, 120, "progress")
        time.sleep(dice.uniform(0, 0.2))
        # Consumers go on meanwhile.
        for name in files(box / "target")[::3]:
            (box / "target" / name).rename(box / "processed" / name)
        kill(process)
        for name in files(box / "processed"):
            (box / "processed" / name).rename(box / "target" / name)
    last = start_worker("sink", "out", config.path)
    until(lambda: committed(config) == 10_000, 120, "all delivered")
    kill(last)
    found = [int(arrived.body.rstrip(b".")) for arrived in dropbox_sink.arrived(queue, 10_000)]
    assert sorted(found) == list(range(10_000))
    assert in_order(found)


@pytest.mark.kills
def test_a_sink_to_a_topic_that_is_killed_gives_each_subscription_everything_once(
    dropbox_sink: DropboxSinkHarness, kafka: EmbeddedKafka, tmp_path: Path, queue: str, dice: random.Random
) -> None:
    config = configure(tmp_path, kafka.bootstrap, queue, dropbox_sink.settings())
    boxes = dropbox_sink.boxes
    subscribed = [boxes.subscription("prices", f"sub{n}.c") for n in (1, 2)]
    RouterStandIn(config).give("topic/prices", numbered(5000))
    for part in range(3):
        process = start_worker("sink", "out", config.path)
        until(lambda part=part: len(files(subscribed[1] / "target")) > 1200 * part, 120, "progress")
        time.sleep(dice.uniform(0, 0.2))
        kill(process)
    last = start_worker("sink", "out", config.path)
    until(lambda: committed(config) == 5000, 120, "all delivered")
    kill(last)
    for each in subscribed:
        found = [int((each / "target" / name).read_bytes()) for name in files(each / "target")]
        assert sorted(found) == list(range(5000))
        assert in_order(found)
        assert files(each / "working") == []


def test_many_arrive_once_and_in_order_through_stops_and_starts(
    dropbox_sink: DropboxSinkHarness, kafka: EmbeddedKafka, tmp_path: Path, queue: str, start_sink: StartSink
) -> None:
    config = configure(tmp_path, kafka.bootstrap, queue, dropbox_sink.settings())
    RouterStandIn(config).give(dropbox_sink.address(queue), numbered(4_000, size=200))
    delivered = 0
    for _ in range(3):
        sink = start_sink(config)
        sink.delivers(1)
        sink.stop()
        assert sink.error is None
        delivered += sink.count("delivered_messages")
    start_sink(config).delivers(4_000 - delivered)
    found = [int(arrived.body.rstrip(b".")) for arrived in dropbox_sink.arrived(queue, 4_000)]
    assert sorted(found) == list(range(4_000))
    assert in_order(found)


def test_from_folders_to_folders_every_type_of_property_is_kept(
    boxes: Dropboxes, configured: Configure, start: Start, queue: str, kafka: EmbeddedKafka, dropbox: DropboxHarness
) -> None:
    pairs = "aB=true&bY=-1&cH=2&dI=3&eL=4&fF=1.5&gD=NaN&hS=x%26y"
    config = configured(dropbox.settings(queue))
    boxes.put(boxes.queue(queue), {f"4.1140429201295000-1.T.....{pairs}": b"hello"})
    start(config).acknowledges(1)
    (located,) = read(kafka.bootstrap, config.journal.topic)
    assert located.record.header("jmsbridge.types") == (
        "a=boolean,b=byte,c=short,d=int,e=long,f=float,g=double,h=string"
    )
    assert {name: value.text for name, value in located.message.properties.items()} == {
        "a": "true",
        "b": "-1",
        "c": "2",
        "d": "3",
        "e": "4",
        "f": "1.5",
        "g": "NaN",
        "h": "x&y",
    }


def test_a_root_that_stays_away_is_looked_for_as_long_as_it_takes(
    dropbox: DropboxHarness, configured: Configure, start: Start, queue: str
) -> None:
    config = configured(dropbox.settings(queue) | {"router.outage-timeout": "1s"})
    dropbox.boxes.unmount()
    source = start(config)
    until(lambda: source.error or "there is no folder" in source.status.current.detail)
    time.sleep(4)
    assert source.error is None
    assert source.alive
    assert source.status.current.state is State.DEGRADED


def test_a_root_that_is_not_there_at_start_is_waited_for(
    dropbox_sink: DropboxSinkHarness, kafka: EmbeddedKafka, tmp_path: Path, queue: str, start_sink: StartSink
) -> None:
    dropbox_sink.create(queue)
    config = configure(tmp_path, kafka.bootstrap, queue, dropbox_sink.settings())
    RouterStandIn(config).give(dropbox_sink.address(queue), numbered(10))
    dropbox_sink.kill()
    sink = start_sink(config)
    is_waited_for(sink)
    dropbox_sink.start()
    sink.delivers(10)
    found = [int(arrived.body) for arrived in dropbox_sink.arrived(queue, 10)]
    assert sorted(found) == list(range(10))


def test_what_is_sent_says_how_it_came(
    dropbox_sink: DropboxSinkHarness, kafka: EmbeddedKafka, tmp_path: Path, queue: str, start_sink: StartSink
) -> None:
    config = configure(tmp_path, kafka.bootstrap, queue, dropbox_sink.settings())
    RouterStandIn(config).give(dropbox_sink.address(queue), numbered(1))
    start_sink(config).delivers(1)
    (name,) = files(dropbox_sink.boxes.queue(queue) / "target")
    found = headers(name)
    assert found["correlation-id"] == "key-0"
    assert found["jmsbridge.origin"] == config.bridge_id
    assert abs(int(found["id"][:13]) - time.time() * 1000) < 60_000
