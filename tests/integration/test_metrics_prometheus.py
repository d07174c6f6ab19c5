"""The figures of a running bridge, as a real Prometheus sees them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlencode

import pytest
from confluent_kafka import Consumer, TopicPartition

from engine.embedded import free_ports
from engine.telemetry.metrics import METRICS, MetricType
from tests.integration.bridge_process import ROOT, Bridge, configuration, wait

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
SINK = """\
sink.jms.type=stomp
routes.copies.in.include=region = 'copy'
routes.copies.out.topic=stomp:queue/copies
"""
LABEL = "        labels: {bridge: orders}\n"
KEEPS_EXEMPLARS = "--enable-feature=exemplar-storage"
HOW = "switch this test on with `apt-get install prometheus`"


class Prometheus:
    """A server of its own that scrapes one bridge every second; `settings` are more of its job's."""

    def __init__(self, folder: Path, target: str, settings: str = "") -> None:
        program = shutil.which("prometheus") or pytest.skip(f"no prometheus: {HOW}")
        (port,) = free_ports(1)
        shipped = (ROOT / "grafana/prometheus.yml").read_text()
        config = folder / "prometheus.yml"
        text = shipped.replace("127.0.0.1:8480", target).replace(": 5s", ": 1s") + LABEL
        config.write_text(text.replace("    static_configs:\n", f"{settings}    static_configs:\n"))
        assert target in config.read_text()
        self.address = f"127.0.0.1:{port}"
        arguments = [f"--config.file={config}", f"--storage.tsdb.path={folder}/data", KEEPS_EXEMPLARS]
        self._output = (folder / "prometheus.out").open("w")
        self.process = subprocess.Popen(
            [program, *arguments, f"--web.listen-address={self.address}"], stdout=self._output, stderr=self._output
        )

    def get(self, path: str, **parameters: str) -> Any:
        answer = json.loads(self.read(f"/api/v1/{path}?{urlencode(parameters)}"))
        assert answer["status"] == "success", answer
        return answer["data"]

    def read(self, path: str) -> bytes:
        """The body of an answer. Raises `ConnectionError` while the server is starting: it answers 503 then."""
        with closing(HTTPConnection(self.address, timeout=10)) as connection:
            connection.request("GET", path)
            response = connection.getresponse()
            if response.status == HTTPStatus.SERVICE_UNAVAILABLE:
                raise ConnectionError(response.reason)
            return response.read()

    def query(self, expression: str) -> list[Any]:
        found: list[Any] = self.get("query", query=expression)["result"]
        return found

    def answers(self) -> bool:
        try:
            return bool(self.query('up{job="jms-bridge"} == 1'))
        except OSError:
            return False

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        self._output.close()


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    """A bridge under a little load: good messages, bad keys, messages for a sink, and messages nobody wants."""
    if not shutil.which("prometheus"):
        pytest.skip(f"no prometheus: {HOW}")
    bridge = Bridge(configuration(tmp_path_factory.mktemp("bridge"), SINK))
    bridge.start()
    stop = Event()

    def load() -> None:
        while not stop.wait(0.5):
            bridge.send(range(20))
            bridge.send(range(1), number="not a key!")
            bridge.send(range(1), region="apac")
            bridge.send(range(1), region="copy")

    sender = Thread(target=load)
    try:
        bridge.wait_ready()
        sender.start()
        yield bridge
    finally:
        stop.set()
        if sender.ident:
            sender.join(60)
        bridge.end()


@pytest.fixture(scope="module")
def prometheus(bridge: Bridge, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    server = Prometheus(tmp_path_factory.mktemp("prometheus"), bridge.settings["http.address"])
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
    assert "region" in done.stdout


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


def seconds_old(bridge: Bridge) -> float:
    """How long after they are in the topic the router's messages are in the figures, at most."""
    consumer = Consumer({"bootstrap.servers": bridge.bootstrap, "group.id": "test"})
    partitions = consumer.list_topics("routed").topics["routed"].partitions
    there = sum(consumer.get_watermark_offsets(TopicPartition("routed", number))[1] for number in partitions)
    began = time.monotonic()
    consumer.close()
    assert there > 0
    wait(lambda: bridge.metric("jmsbridge_routed_messages_total", topic="routed") >= there)
    return time.monotonic() - began


def test_figures_are_at_most_five_seconds_old(prometheus: Prometheus, bridge: Bridge) -> None:
    for _ in range(5):
        assert seconds_old(bridge) < 5
        time.sleep(0.7)


def test_figures_are_at_most_five_seconds_old_in_batch_mode(tmp_path: Path) -> None:
    bridge = Bridge(configuration(tmp_path, "router.mode=batch\nrouter.interval=1s\n"))
    try:
        bridge.start()
        bridge.wait_ready()
        for number in range(5):
            bridge.send(range(20))
            wait(lambda number=number: len(bridge.records("routed")) > 20 * number)
            assert seconds_old(bridge) < 5
    finally:
        bridge.end()


def test_promtool_finds_nothing_to_improve(prometheus: Prometheus, bridge: Bridge) -> None:
    promtool = shutil.which("promtool")
    assert promtool
    text = bridge.get("/metrics")[1]
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
