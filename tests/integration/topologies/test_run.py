"""Topologies on a real Kafka: through stops and kills, with state that fits or does not."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from engine.embedded import EmbeddedKafka, free_ports
from engine.jars import jars
from engine.telemetry.metrics import METRICS
from tests.integration.prometheus import (
    CHOICES,
    PANELS,
    TOPOLOGY_METRICS,
    Prometheus,
    check_choice,
    check_metric,
    check_panel,
)
from tests.integration.topologies.conftest import BEGIN_MS, PAGES, TopologyBench, children
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

KILLS = 20


def test_a_topology_in_real_time_goes_on_after_a_kill_and_refuses_state_of_another(bench: TopologyBench) -> None:
    options = ("--mode", "realtime", "--interval")
    bench.send_pages()
    killed = bench.start_alone("counts", *options, "60m")
    bench.send_clicks(1_000)
    bench.comes_to("counts-out", 300)
    # The first intervals are short whatever is set.
    bench.commits("counts")
    bench.send_clicks(1_000)
    bench.kill(killed)
    stopped = bench.start_alone("counts", *options, "60m")
    bench.comes_to("counts-out", 2_000)
    bench.send_clicks(500)
    bench.comes_to("counts-out", 2_500)
    bench.stop(stopped)
    bench.check_finished("counts")
    bench.check("counts-out")
    assert {value["title"] for key, value in bench.published("counts-out") if key == "p3"} == {"T3"}

    asked = bench.command("state", bench.function("counts"), "counts", "--key", "p3").splitlines()
    times = [json.loads(line)["times"] for line in asked if line.startswith("{")]
    assert sum(times) == 2_500 / PAGES, asked
    minute = 60_000
    since = BEGIN_MS - BEGIN_MS % minute + 10 * minute
    two_minutes = ("--since", str(since), "--until", "2001-09-09T01:57")
    asked = bench.command("state", bench.function("counts"), "counts", "--prefix", "p1", *two_minutes).splitlines()
    rows = [json.loads(line) for line in asked if line.startswith("{")]
    assert {row["window_start"] for row in rows} == {"2001-09-09T01:56:00.000Z", "2001-09-09T01:57:00.000Z"}
    assert {row["key"] for row in rows} == {"p1", *(f"p{page}" for page in range(10, 20))}
    assert [row["times"] for row in rows] == [3] * 22

    code, told = bench.fails("changed")
    assert code == 3
    assert "does not fit the topology any more (changed: counts)" in told
    assert f"jms-bridge topology reset {bench.prefix}-counts" in told
    gone = bench.command("reset", f"{bench.prefix}-counts", "--yes")
    assert gone.startswith(f"internal topic {bench.prefix}-counts-repartition-1-repartition\npositions of the group")
    assert not (bench.folder / "var" / "topologies" / f"{bench.prefix}-counts").exists()


def test_a_join_runs_in_batches_and_goes_on_after_a_kill(bench: TopologyBench) -> None:
    code, told = bench.fails("joined", "--mode", "realtime")
    assert code == 64
    assert "'titled'" in told
    assert "use --mode batch, or --guarantee at_least_once" in told
    bench.send_pages()
    bench.send_clicks(1_000)
    killed = bench.start("joined")
    bench.comes_to("joined-out", 1_000)
    bench.send_clicks(3_000)
    time.sleep(0.5)
    bench.kill(killed)
    stopped = bench.start("joined")
    bench.comes_to("joined-out", 4_000)
    bench.stop(stopped)
    bench.check_finished("joined")
    bench.check("joined-out")


def test_python_functions_run_in_batches(bench: TopologyBench) -> None:
    code, told = bench.fails("processed", "--mode", "realtime")
    assert code == 64
    assert "'totals': Python functions get many records at once" in told
    process = bench.start("processed")
    bench.send_clicks(4_000)
    bench.comes_to("processed-out", 4_000)
    bench.stop(process)
    bench.check("processed-out")


def test_a_changed_topology_goes_on_with_the_state_that_is_migrated(bench: TopologyBench) -> None:
    former = bench.start("paged", "--mode", "batch")
    bench.send_clicks(500)
    bench.comes_to("processed-out", 500)
    bench.stop(former)
    # A batch that is cut short would be repeated, and would go into the new aggregate as well.
    bench.check_finished("paged")
    code, told = bench.fails("paged_anew", "--mode", "batch")
    assert code == 3
    assert "(changed: extreme; gone or renamed: totals)" in told
    assert "`jms-bridge topology migrate`" in told

    steps = "rename totals to sums\ndrop the state of extreme\nbegin extreme with empty state\n"
    arguments = ("migrate", bench.function("paged_anew"), "--rename", "totals=sums")
    note = bench.folder / "var" / "topologies" / f"{bench.prefix}-paged" / "topology.json"
    before = note.read_bytes()
    assert bench.command(*arguments, "--drop", "extreme", "--dry-run").endswith(steps)
    assert bench.command(*arguments, "--drop", "extreme").endswith("Throw away the state of extreme? [y/N]: ")
    assert note.read_bytes() == before
    assert bench.command(*arguments, "--drop", "extreme", "--yes").endswith(steps)

    anew = bench.start("paged_anew", "--mode", "batch")
    bench.send_clicks(500)
    bench.comes_to("processed-out", 1_000)
    assert "works with the checkpoint" in bench.command(*arguments, "--drop", "extreme", "--yes")
    bench.stop(anew)
    bench.check("counts-out")
    last = {key: value["n"] for key, value in bench.published("processed-out")}
    assert last == {f"p{page}": 501 + page for page in range(PAGES)}
    asked = ("state", bench.function("paged_anew"), "extreme")
    assert bench.command(*asked).count('"key"') == PAGES
    # What was kept under the dropped number is removed.
    kept = json.loads(note.read_text())
    (kept["stores"]["extreme"],) = kept["dropped"]
    note.write_text(json.dumps(kept))
    assert bench.command(*asked).count('"key"') == 0


def test_changelogs_have_the_tables_in_compacted_topics(bench: TopologyBench) -> None:
    def comes_to(clicks: int) -> None:
        # Not counted, since the topics are compacted.
        total = sum(range(clicks + 1))
        until(lambda: _totals(bench, "totals-log") == _totals(bench, "days-log") == total, 120, f"{clicks} clicks")

    bench.send_pages()
    killed = bench.start("tables")
    until(lambda: bench.has("days-log"))
    bench.send_clicks(500)
    comes_to(500)
    bench.send_clicks(500)
    bench.kill(killed)
    assert [bench.policy(log) for log in ("pages-log", "totals-log", "days-log")] == ["compact"] * 3
    assert bench.policy("days-log", "delete") == "delete"
    code, told = bench.fails("tables")
    assert code == 4
    assert f"'{bench.prefix}-days-log', whose cleanup.policy is delete: set it to compact, or name another" in told
    assert bench.policy("days-log", "compact,delete") == "compact,delete"
    bench.remove_page("p3")
    stopped = bench.start("tables")
    bench.send_clicks(500)
    comes_to(1_500)
    pages = {f"p{page}": {"title": f"T{page}"} for page in range(PAGES) if page != 3}
    until(lambda: bench.latest("pages-log") == pages, 60, "the removal")
    bench.stop(stopped)
    assert {key: value["total"] for key, value in bench.latest("days-log").items()} == {
        f'{{"key":"{page}","window_start":"2001-09-09T00:00:00.000Z"}}': value["total"]
        for page, value in bench.latest("totals-log").items()
    }


def _totals(bench: TopologyBench, topic: str) -> int:
    return sum(value["total"] for value in bench.latest(topic).values())


@pytest.mark.parametrize("mode", ["realtime", "batch"])
def test_a_record_without_a_time_is_published_with_the_present_and_is_in_no_window(
    bench: TopologyBench, mode: str
) -> None:
    begun = time.time() * 1_000
    producer = bench._producer()
    for number, timestamp in enumerate((BEGIN_MS, -1, BEGIN_MS)):
        value = json.dumps({"page": "p", "n": number})
        producer.produce(f"{bench.prefix}-clicks", value, "k", timestamp=timestamp)
    assert producer.flush(30) == 0
    running = bench.start("timed", "--mode", mode)
    bench.comes_to("processed-out", 3)
    bench.comes_to("joined-out", 2)
    until(lambda: bench.times("timed-dead-letters") != [], 60, "the dead letter")
    bench.stop(running)
    assert [value["count"] for _, value in bench.published("processed-out")] == [1, 2, 3]
    assert [value["count"] for _, value in bench.published("joined-out")] == [1, 2]
    assert bench.times("joined-out") == [BEGIN_MS, BEGIN_MS]
    first, other, third = bench.times("counts-out")
    assert first == third == BEGIN_MS
    assert begun - 1_000 < other <= time.time() * 1_000
    (letter,) = bench.times("timed-dead-letters")
    assert begun - 1_000 < letter <= time.time() * 1_000


def test_a_missing_topic_is_named(bench: TopologyBench) -> None:
    bench.prefix = "missing"
    code, told = bench.fails("joined")
    assert code == 4
    assert "reads 'missing-clicks', 'missing-pages', which Kafka does not have" in told


def test_a_topology_is_a_part_of_the_bridge_and_is_started_again_when_it_dies(
    bench: TopologyBench, tmp_path: Path
) -> None:
    with bench.file.open("a") as file:
        file.write(f"topologies.clicks.build={bench.function('counts')}\ntopologies.clicks.mode=batch\n")
    bridge = bench.run_part("topology:clicks")
    bench.send_clicks(500)
    bench.comes_to("counts-out", 500)
    # 500 records, and as many of the topic between the keys of the stream and those of the groups.
    until(lambda: bench.metric("jmsbridge_topology_records_total", topology="clicks") == 1_000)
    until(lambda: bench.metric("jmsbridge_topology_lag_records", topology="clicks") == 0)
    assert (bench.metric("jmsbridge_topology_state_bytes", topology="clicks") or 0) > 1_000
    bench.send_unreadable()
    rejected = {"topology": "clicks", "reason": "rejected_records"}
    until(lambda: bench.metric("jmsbridge_topology_unprocessed_records_total", **rejected) == 1)
    prometheus = Prometheus(tmp_path, bench.http_address)
    try:
        until(prometheus.answers)
        until(lambda: bool(prometheus.query("rate(jmsbridge_topology_unprocessed_records_total[10s])")))
        for name in (name for name in PANELS if name.startswith("topologies: ")):
            check_panel(prometheus, PANELS[name])
        for choice in (choice for choice in CHOICES.values() if choice["name"] == "topology"):
            check_choice(prometheus, choice)
        for metric in (metric for metric in METRICS if metric.name in TOPOLOGY_METRICS):
            check_metric(prometheus, metric)
    finally:
        prometheus.end()
    shown = bench.page("/topologies")
    assert f"application id <code>{bench.prefix}-counts</code>" in shown
    assert "</tspan> aggregate" in shown
    # As of the last commit, while the topology runs.
    question = "/topologies/state?topology=clicks&node=counts&key=p3"
    until(lambda: "2001-09-09T01:50:00.000Z" in bench.page(question))
    assert " in all." in bench.page(question)
    assert "No row." in bench.page(question + "4567")
    (part,) = children(bridge.pid)
    os.kill(part, signal.SIGKILL)
    bench.send_clicks(500)
    bench.comes_to("counts-out", 1_000)
    bench.stop(bridge)
    bench.check("counts-out")


def _kill_again_and_again(bench: TopologyBench, name: str, mode: str, clicks: int) -> tuple[str, ...]:
    """Kills a topology twenty times while so many clicks come ten times a second; returns the options of its runs."""
    source = random.Random(7)  # noqa: S311 # test data
    options = ("--mode", mode, "--interval", "5s" if mode == "realtime" else "1s")
    for kill in range(KILLS):
        runs = bench.runs()
        process = bench.start(name, *options)
        if kill % 4:
            # The others are killed while they start, or soon after that.
            until(lambda: bench.runs() > runs, 120, "a run")  # noqa: B023
        until_killed = time.monotonic() + source.uniform(1, 12)
        while time.monotonic() < until_killed:
            bench.send_clicks(clicks)
            time.sleep(0.1)
        bench.kill(process)
    return options


@pytest.mark.kills
@pytest.mark.parametrize(
    ("name", "mode"), [("counts", "realtime"), ("counts", "batch"), ("joined", "batch"), ("processed", "auto")]
)
def test_topologies_that_are_killed_again_and_again_lose_and_double_nothing(
    bench: TopologyBench, name: str, mode: str
) -> None:
    bench.send_pages()
    options = _kill_again_and_again(bench, name, mode, 20)
    process = bench.start(name, *options)
    bench.comes_to(f"{name}-out", bench.sent)
    bench.stop(process)
    bench.check(f"{name}-out")


@pytest.mark.kills
@pytest.mark.parametrize("mode", ["realtime", "batch"])
@pytest.mark.parametrize("name", ["hops", "slides"])
def test_windows_that_overlap_close_once_through_kills(bench: TopologyBench, name: str, mode: str) -> None:
    # In batches, clicks are aggregated before they go through the internal topic of the hopping windows.
    options = _kill_again_and_again(bench, name, mode, 2)
    clicks = bench.sent
    # A click of each page an hour later closes the windows, in all partitions.
    bench.sent += 3_600
    expected = _hops(clicks) if name == "hops" else _slides(clicks)
    bench.send_clicks(PAGES)
    process = bench.start(name, *options)
    bench.comes_to("counts-out", len(expected))
    bench.stop(process)
    published = bench.published("counts-out")
    found = {(page, _ms(value["window_start"])): value["all"] for page, value in published}
    assert found == expected
    assert len(published) == len(expected)
    for _, value in published:
        numbers = value["all"]
        assert (value["total"], value["times"], value["most"]) == (sum(numbers), len(numbers), numbers[-1])


def _clicks_of(page: int, clicks: int) -> list[tuple[int, int]]:
    """Times and numbers of the clicks of a page."""
    return [(BEGIN_MS + at * 1_000, at + 1) for at in range(page, clicks, PAGES)]


def _hops(clicks: int) -> dict[tuple[str, int], list[int]]:
    """Numbers of the clicks in each window of a minute that begins at a multiple of three seconds."""
    windows: dict[tuple[str, int], list[int]] = {}
    for page in range(PAGES):
        for at, number in _clicks_of(page, clicks):
            for start in range((at - 60_000) // 3_000 * 3_000 + 3_000, at + 1, 3_000):
                windows.setdefault((f"p{page}", start), []).append(number)
    return windows


def _slides(clicks: int) -> dict[tuple[str, int], list[int]]:
    """Numbers of the clicks in each window that ends with a click, or begins right behind one that is followed."""
    windows: dict[tuple[str, int], list[int]] = {}
    for page in range(PAGES):
        of = _clicks_of(page, clicks)
        for start in {start for at, _ in of for start in (at - 60_000, at + 1)}:
            if inside := [number for at, number in of if start <= at <= start + 60_000]:
                windows[f"p{page}", start] = inside
    return windows


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1_000)


@pytest.mark.kills
@pytest.mark.parametrize(("name", "mode"), [("counts", "realtime"), ("counts", "batch"), ("joined", "batch")])
def test_a_topology_waits_for_kafka_and_goes_on(tmp_path: Path, name: str, mode: str) -> None:
    kafka = EmbeddedKafka(tmp_path / "kafka", *free_ports(1), jars())
    kafka.start()
    bench = TopologyBench(tmp_path, kafka.bootstrap)
    with bench.file.open("a") as file:
        # Kafka's client notices the outage after 5 s in place of a minute.
        file.write("kafka.consumer.default.api.timeout.ms=5000\nkafka.consumer.request.timeout.ms=5000\n")
        file.write(f"topologies.part.build={bench.function(name)}\ntopologies.part.mode={mode}\n")
    try:
        bench.send_pages()
        bridge = bench.run_part("topology:part")
        bench.send_clicks(200)
        bench.comes_to(f"{name}-out", 200)
        kafka.stop()
        until(lambda: "degraded: trying again" in bench.log.read_text(), 120, "the topology notices")
        assert bridge.poll() is None
        kafka.start()
        bench.send_clicks(200)
        bench.comes_to(f"{name}-out", 400)
        bench.stop(bridge)
        bench.check(f"{name}-out")
        assert "Traceback" not in bench.log.read_text()
    finally:
        bench.close()
        kafka.stop()
