"""A real Prometheus reads figures over TLS with the settings of docs/security.md, and gets none without the token."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily

from engine.telemetry.http import HttpServer, application
from engine.telemetry.http_section import HttpConfig
from engine.telemetry.status import StatusBoard
from tests.certificates import certify
from tests.integration.bridge_process import ROOT, wait
from tests.integration.prometheus import Prometheus


class Figures:
    """One figure."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield GaugeMetricFamily("answer", "To everything.", 42)


@pytest.mark.parametrize("token", ["t0ken", "wrong"])
def test_prometheus_reads_over_tls_with_the_token(tmp_path: Path, token: str) -> None:
    page = (ROOT / "docs" / "security.md").read_text()
    documented = re.search(r"job_name: jms-bridge\n(.*?)    static_configs", page, re.DOTALL)
    assert documented is not None
    certificates = certify(tmp_path / "tls")
    (tmp_path / "metrics.token").write_text(token)
    registry = CollectorRegistry()
    registry.register(Figures())
    config = HttpConfig(
        "127.0.0.1", 0, certificate=certificates / "broker.pem", key=certificates / "broker.key", token="t0ken"
    )
    with ExitStack() as running:
        server = running.enter_context(HttpServer(config, application(StatusBoard([]), registry)))
        prometheus = Prometheus(tmp_path, server.url.removeprefix("https://"), documented[1])
        running.callback(prometheus.end)
        if token == "t0ken":
            wait(prometheus.answers)
            assert prometheus.query("answer")[0]["value"][1] == "42"
        else:

            def refused() -> bool:
                try:
                    targets = prometheus.get("targets")["activeTargets"]
                except OSError:
                    return False
                return any("401" in target["lastError"] for target in targets)

            wait(refused)
            assert prometheus.query("answer") == []
