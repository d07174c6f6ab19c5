"""The figures of a running bridge, as a real Prometheus sees them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import pytest

from engine.telemetry.metrics import METRICS, MetricType
from tests.integration.bridge_process import ROOT, Bridge, wait
from tests.integration.prometheus import Prometheus, seconds_old

DASHBOARDS = {file.stem: json.loads(file.read_text()) for file in (ROOT / "grafana/dashboards").glob("*.json")}
PANELS = {
    f"{name}: {panel['title']}": panel
    for name, dashboard in sorted(DASHBOARDS.items())
    for panel in dashboard["panels"]
    if panel["type"] != "row"
}
CHOICES = {
    choice["query"]: choice
    for _, dashboard in sorted(DASHBOARDS.items())
    for choice in dashboard["templating"]["list"]
    if choice["type"] == "query"
}


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


@pytest.mark.parametrize("panel", PANELS.values(), ids=PANELS)
def test_no_panel_is_empty(prometheus: Prometheus, panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        expression = re.sub(r"\$__(rate_interval|range)", "10s", target["expr"])
        expression = re.sub(r"\$(bridge|instance|route|source|sink)", ".*", expression)
        assert "$" not in expression
        result = prometheus.query(expression)
        assert result, expression
        assert all(series["value"][1] != "NaN" for series in result), (expression, result)
        for name in re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", "")):
            assert all(series["metric"].get(name) for series in result), (name, result)


@pytest.mark.parametrize("choice", CHOICES.values(), ids=lambda choice: choice["name"])
def test_every_choice_of_the_dashboard_has_values(prometheus: Prometheus, choice: dict[str, Any]) -> None:
    match = re.fullmatch(r"label_values\((.*), (\w+)\)", choice["query"])
    assert match
    series = re.sub(r"\$(bridge|instance)", ".*", match[1])
    assert prometheus.get(f"label/{match[2]}/values", **{"match[]": series})


def test_every_metric_of_the_table_is_scraped_with_its_type_and_help(prometheus: Prometheus) -> None:
    known = prometheus.get("metadata")
    for metric in METRICS:
        name = metric.name
        # Asked by Prometheus the bridge answers in OpenMetrics, where a counter's family has no suffix.
        (told,) = known[name.removesuffix("_total")]
        assert (told["type"], told["help"]) == (metric.kind, metric.help)
        assert prometheus.query(name + ("_count" if metric.kind is MetricType.HISTOGRAM else "")), name


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
    place = exemplars[-1]["labels"]["journal"]
    command = [sys.executable, "-m", "engine", "explain", "--journal", place, "-c", str(bridge.file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done
    assert re.match(r"message  \S+, .* bytes of \w+\n", done.stdout)
    assert "\nroute    " in done.stdout


def test_batches_and_processes_have_figures_that_make_sense(prometheus: Prometheus, bridge: Bridge) -> None:
    wait(lambda: bridge.metric("jmsbridge_spark_batches_total") > 1)
    wait(lambda: bridge.metric("jmsbridge_spark_processed_rows_total") > 100)
    text = bridge.get("/metrics")[1]
    assert re.search(r'jmsbridge_spark_batch_duration_seconds\{phase="addBatch"\} [1-9]', text)
    assert 0 <= bridge.metric("jmsbridge_spark_checkpoint_age_seconds") < 60
    used, most = (bridge.metric(f"jmsbridge_spark_heap_{name}_bytes") for name in ("used", "max"))
    assert 10_000_000 < used < most
    (router,) = prometheus.query('jmsbridge_process_resident_memory_bytes{component="router"}')
    assert float(router["value"][1]) > used
    # The broker's own process, not only the one that looks after it.
    (kafka,) = prometheus.query('jmsbridge_process_resident_memory_bytes{component="kafka"}')
    assert float(kafka["value"][1]) > 150_000_000
    assert prometheus.query('rate(jmsbridge_process_cpu_seconds_total{component="router"}[10s]) > 0')


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
