"""The figures of a running bridge, as a real Prometheus sees them."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from threading import Event, Thread

import pytest

from engine.telemetry import metrics
from tests.integration.bridge_process import Bridge, wait
from tests.integration.commands import printed
from tests.integration.prometheus import (
    CERTIFICATE_METRICS,
    CHOICES,
    EXECUTOR_METRICS,
    EXECUTOR_PANELS,
    PANELS,
    TOPOLOGY_METRICS,
    Prometheus,
    check_choice,
    check_metric,
    check_panel,
    seconds_old,
)

ELSEWHERE = TOPOLOGY_METRICS | EXECUTOR_METRICS | CERTIFICATE_METRICS
METRICS = tuple(metric for metric in metrics.METRICS if metric.name not in ELSEWHERE)


@pytest.fixture(scope="module")
def load(one_bridge: Bridge) -> Iterator[None]:
    """A little load: good messages, bad keys, messages for a sink, and messages nobody wants."""
    stop = Event()

    def send() -> None:
        while not stop.wait(0.5):
            one_bridge.send(range(20))
            one_bridge.send(range(1), number="not a key!")
            one_bridge.send(range(1), region="apac")
            one_bridge.send(range(1), region="copy")

    sender = Thread(target=send)
    one_bridge.wait_ready()
    sender.start()
    try:
        yield
    finally:
        stop.set()
        sender.join(60)


@pytest.fixture(scope="module")
def prometheus(one_bridge: Bridge, load: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    server = Prometheus(tmp_path_factory.mktemp("prometheus"), one_bridge.settings["http.address"])
    try:
        wait(server.answers)
        # Enough scrapes under load for a rate over ten seconds.
        wait(lambda: bool(server.query("rate(jmsbridge_routed_messages_total[10s]) > 0")))
        yield server
    finally:
        server.end()


@pytest.mark.parametrize(
    "name", sorted(name for name in PANELS.keys() - EXECUTOR_PANELS if not name.startswith("topologies: "))
)
def test_no_panel_is_empty(prometheus: Prometheus, name: str) -> None:
    check_panel(prometheus, PANELS[name])


@pytest.mark.parametrize("name", sorted({choice["name"] for choice in CHOICES.values()} - {"topology"}))
def test_every_choice_of_the_dashboard_has_values(prometheus: Prometheus, name: str) -> None:
    for choice in CHOICES.values():
        if choice["name"] == name:
            check_choice(prometheus, choice)


def test_every_metric_of_the_table_is_scraped_with_its_type_and_help(prometheus: Prometheus) -> None:
    for metric in METRICS:
        check_metric(prometheus, metric)


def test_nothing_is_scraped_that_the_table_does_not_have(prometheus: Prometheus) -> None:
    names = prometheus.get("label/__name__/values", **{"match[]": '{job="jms-bridge"}'})
    table = {metric.name for metric in METRICS}
    ours = {re.sub("_(bucket|sum|count)$", "", name) for name in names if name.startswith("jmsbridge_")}
    assert ours == table
    assert {name for name in names if not name.startswith("jmsbridge_")} <= {"up"} | {
        name for name in names if name.startswith("scrape_")
    }


def test_an_exemplar_leads_to_the_message_that_took_so_long(prometheus: Prometheus, bridge: Bridge) -> None:
    name = "jmsbridge_routing_latency_seconds_bucket"
    now = time.time()
    found = prometheus.get("query_exemplars", query=name, start=str(now - 600), end=str(now))
    exemplars = [exemplar for series in found for exemplar in series["exemplars"]]
    assert exemplars
    explained = ""
    # A reply may have expired since it was routed, and would not be routed any more.
    while not explained or "it has expired" in explained:
        place = exemplars.pop()["labels"]["journal"]
        explained = printed(bridge.file, "explain", "--journal", place)
    assert re.match(r"message  \S+, .* bytes of \w+\n", explained)
    assert "\nroute    " in explained


def test_batches_and_processes_have_figures_that_make_sense(prometheus: Prometheus, bridge: Bridge) -> None:
    wait(lambda: bridge.metric("jmsbridge_spark_batches_total") > 1)
    wait(lambda: bridge.metric("jmsbridge_spark_processed_rows_total") > 100)
    text = bridge.get("/metrics")[1]
    assert re.search(r'jmsbridge_spark_batch_duration_seconds\{phase="addBatch"\} [1-9]', text)
    assert 0 <= bridge.metric("jmsbridge_spark_checkpoint_age_seconds") < 60
    used, most = (bridge.metric(f"jmsbridge_spark_heap_{name}_bytes") for name in ("used", "max"))
    assert 10_000_000 < used < most
    (router,) = prometheus.await_result('jmsbridge_process_resident_memory_bytes{component="router"}')
    assert float(router["value"][1]) > used
    # The broker's own process, not only the one that looks after it.
    (kafka,) = prometheus.await_result('jmsbridge_process_resident_memory_bytes{component="kafka"}')
    assert float(kafka["value"][1]) > 150_000_000
    assert prometheus.await_result('rate(jmsbridge_process_cpu_seconds_total{component="router"}[10s]) > 0')


def test_figures_are_at_most_five_seconds_old(prometheus: Prometheus, bridge: Bridge) -> None:
    for _ in range(5):
        assert seconds_old(bridge) < 5
        time.sleep(0.7)


def test_promtool_finds_nothing_to_improve(prometheus: Prometheus, bridge: Bridge) -> None:
    promtool = shutil.which("promtool")
    assert promtool
    text = bridge.get("/metrics")[1]
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
