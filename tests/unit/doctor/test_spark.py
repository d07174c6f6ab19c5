"""What the doctor says of the workers of a Spark cluster, whose master is an HTTP server of the test."""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from engine.doctor.checks import Finding, Severity
from engine.doctor.spark import check_spark
from routes import config as configuration

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROUTES = "bridge.id=b\nroutes.r.in.include=TRUE\nroutes.r.out.topic=x\nkafka.bootstrap.servers=127.0.0.1:1\n"


def worker(cores: int, memory: int, state: str = "ALIVE") -> dict[str, Any]:
    """A worker as the master describes it; memory in MiB."""
    return {"state": state, "cores": cores, "coresfree": cores, "memory": memory, "memoryfree": memory}


@contextmanager
def master(workers: list[dict[str, Any]], spark: str = version("pyspark")) -> Iterator[int]:
    """Port of a server that answers as a master with these workers does."""
    state = json.dumps({"status": "ALIVE", "workers": workers})
    page = f'<span class="version">{spark}</span>'

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = (state if self.path == "/json/" else page).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keeps the output of tests free of requests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def findings(folder: Path, port: int, *lines: str) -> dict[str, Finding]:
    url = f"spark://127.0.0.1:{port}"
    file = folder / "b.properties"
    file.write_text("\n".join([f"{ROUTES}spark.master={url}", f"spark.master.ui.port={port}", *lines]))
    return {found.name: found for found in check_spark(configuration.load(file), url, 5)}


@pytest.mark.parametrize(
    ("workers", "lines", "slots"),
    [
        ([worker(1, 8_000), worker(2, 8_000)], (), 3),
        ([worker(2, 1_000), worker(2, 8_000)], (), 2),
        ([worker(4, 1_500)], ("spark.executor.memory=2g",), 0),
        ([worker(3, 8_000), worker(3, 8_000)], ("spark.executor.cores=4",), 0),
        ([worker(8, 2_048)], ("spark.executor.cores=1", "spark.executor.memory=1g"), 2),
        ([worker(8, 8_000, "DEAD")], (), 0),
    ],
)
def test_workers_without_cores_or_memory_for_the_executors_fail(
    tmp_path: Path, workers: list[dict[str, Any]], lines: tuple[str, ...], slots: int
) -> None:
    with master(workers) as port:
        found = findings(tmp_path, port, *lines)["spark workers"]
    assert found.state is Severity.FAILED
    assert f"which have {slots} task slots in executors of " in found.found
    assert "real-time mode needs 4" in found.found


@pytest.mark.parametrize(
    ("workers", "lines"),
    [
        ([worker(2, 1_024), worker(2, 1_024)], ()),
        ([worker(8, 4_096)], ("spark.executor.cores=2", "spark.executor.memory=2g")),
        ([worker(1, 1_024)], ("router.mode=batch",)),
    ],
)
def test_workers_with_enough_are_in_order(
    tmp_path: Path, workers: list[dict[str, Any]], lines: tuple[str, ...]
) -> None:
    with master(workers) as port:
        found = findings(tmp_path, port, *lines)["spark workers"]
    assert found.state is Severity.OK
    cores = sum(each["cores"] for each in workers)
    assert found.found == f"{len(workers)} alive, with {cores} cores, {cores} of them free"


def test_another_version_of_spark_fails(tmp_path: Path) -> None:
    with master([worker(4, 4_096)], "3.5.1") as port:
        found = findings(tmp_path, port)["spark version"]
    assert found.state is Severity.FAILED
    assert found.found == f"the cluster has Spark 3.5.1, and the bridge {version('pyspark')}"
