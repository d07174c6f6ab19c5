"""A real Prometheus that scrapes a bridge, and what has to hold of the dashboards that ask it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from confluent_kafka import Consumer, TopicPartition

from engine.embedded import free_ports
from engine.telemetry import metrics
from engine.telemetry.metrics import METRICS, Metric, MetricType
from tests.integration.bridge_process import ROOT, wait
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.bridge_process import Bridge

__all__ = [
    "CERTIFICATE_METRICS",
    "CHOICES",
    "EXECUTOR_METRICS",
    "EXECUTOR_PANELS",
    "PANELS",
    "TOPOLOGY_METRICS",
    "Prometheus",
    "check_choice",
    "check_metric",
    "check_panel",
    "seconds_old",
]

_DASHBOARDS = {file.stem: json.loads(file.read_text()) for file in (ROOT / "grafana/dashboards").glob("*.json")}
PANELS = {
    f"{name}: {panel['title']}": panel
    for name, dashboard in sorted(_DASHBOARDS.items())
    for panel in dashboard["panels"]
    if panel["type"] != "row"
}
CHOICES = {
    choice["query"]: choice
    for _, dashboard in sorted(_DASHBOARDS.items())
    for choice in dashboard["templating"]["list"]
    if choice["type"] == "query"
}
CERTIFICATE_METRICS = {metrics.CERTIFICATE_END.name}
"""Metrics that only a bridge with certificates has."""
TOPOLOGY_METRICS = {metric.name for metric in METRICS if metric.name.startswith("jmsbridge_topology_")}
"""Metrics that only topologies have; their dashboard is named `topologies`."""
_EXECUTOR = "jmsbridge_spark_executor_"
EXECUTOR_METRICS = {metric.name for metric in METRICS if metric.name.startswith(_EXECUTOR)}
"""Metrics that only a bridge on a Spark cluster has."""
EXECUTOR_PANELS = {name for name, panel in PANELS.items() if _EXECUTOR in panel["targets"][0].get("expr", "")}
"""Panels that show them."""

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

    def await_result(self, expression: str) -> list[Any]:
        """The first result that is not empty; without one in time, AssertionError.

        After a scrape that took longer than a second, as on a busy machine, no series has a value until the next.
        """
        result: list[Any] = []

        def has_result() -> bool:
            nonlocal result
            result = self.query(expression)
            return bool(result)

        until(has_result, what=expression)
        return result

    def answers(self) -> bool:
        try:
            return bool(self.query('up{job="jms-bridge"} == 1'))
        except OSError:
            return False

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        self._output.close()


def check_panel(prometheus: Prometheus, panel: dict[str, Any]) -> None:
    """Each query of a panel has a result, and the labels that its legend names."""
    for target in panel["targets"]:
        expression = re.sub(r"\$__(rate_interval|range)", "10s", target["expr"])
        expression = re.sub(r"\$(bridge|instance|route|source|sink|topology)", ".*", expression)
        assert "$" not in expression
        result = prometheus.await_result(expression)
        assert all(series["value"][1] != "NaN" for series in result), (expression, result)
        for name in re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", "")):
            assert all(series["metric"].get(name) for series in result), (name, result)


def check_choice(prometheus: Prometheus, choice: dict[str, Any]) -> None:
    """A choice at the top of a dashboard offers values."""
    match = re.fullmatch(r"label_values\((.*), (\w+)\)", choice["query"])
    assert match
    series = re.sub(r"\$(bridge|instance)", ".*", match[1])
    assert prometheus.get(f"label/{match[2]}/values", **{"match[]": series})


def check_metric(prometheus: Prometheus, metric: Metric) -> None:
    """A metric is scraped, with its type and help."""
    # Asked by Prometheus the bridge answers in OpenMetrics, where a counter's family has no suffix.
    (told,) = prometheus.get("metadata")[metric.name.removesuffix("_total")]
    assert (told["type"], told["help"]) == (metric.kind, metric.help)
    prometheus.await_result(metric.name + ("_count" if metric.kind is MetricType.HISTOGRAM else ""))


def seconds_old(bridge: Bridge) -> float:
    """How long after they are in the topic the router's messages are in the figures, at most."""
    topic = bridge.settings["routes.orders.out.topic"]
    consumer = Consumer({"bootstrap.servers": bridge.bootstrap, "group.id": "test"})
    partitions = consumer.list_topics(topic).topics[topic].partitions
    there = sum(consumer.get_watermark_offsets(TopicPartition(topic, number))[1] for number in partitions)
    began = time.monotonic()
    consumer.close()
    assert there > 0
    wait(lambda: bridge.metric("jmsbridge_routed_messages_total", topic=topic) >= there)
    return time.monotonic() - began
