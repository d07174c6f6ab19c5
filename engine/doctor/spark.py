"""Checks of a standalone Spark cluster: its master, the cores and memory of its workers, and its version."""

from __future__ import annotations

import json
import re
from http.client import HTTPConnection, HTTPException
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from engine.doctor.checks import Finding, failed, listens, ok, warning
from engine.errors import SetupError, UnreachableError
from engine.spark.section import SparkConfig
from engine.spark.settings import EXECUTOR_CORES, EXECUTOR_MEMORY, kibibytes, master_hosts
from routes.model import RouterMode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from routes.model import Config

__all__ = ["check_spark"]

_UI_PORT = "spark.master.ui.port"
_DEFAULT_UI_PORT = 8080
_VERSION = re.compile(r'class="version"[^>]*>\s*([0-9][^<\s]*)')
_NAME = "spark master"


def check_spark(config: Config, master: str, timeout_seconds: float) -> Iterator[Finding]:
    """Checks the cluster that `spark.master` names, as far as its page shows it; other masters are left alone."""
    hosts = master_hosts(master)
    seconds = timeout_seconds / max(len(hosts), 1)
    reached = [host for host, port in hosts if listens(host, port, seconds)]
    if hosts and not reached:
        remedy = "start it, or correct spark.master"
        yield failed(_NAME, f"nothing listens at {master}", remedy, UnreachableError)
        return
    for host in reached:
        yield ok(_NAME, f"{host} listens")
        yield from _page(config.section(SparkConfig), config.router.mode, config.journal.partitions, host, seconds)


def _page(spark: SparkConfig, mode: RouterMode, partitions: int, host: str, seconds: float) -> Iterator[Finding]:
    """Checks the cluster by the page of its master; `mode` and `partitions` are those of the router."""
    port = int(spark.get(_UI_PORT, _DEFAULT_UI_PORT))
    try:
        state: dict[str, Any] = json.loads(_get(host, port, "/json/", seconds))
        spark_version = _VERSION.search(_get(host, port, "/", seconds))
    except (OSError, HTTPException, ValueError):
        remedy = f"{_UI_PORT} names another address of its page"
        yield warning("spark workers", f"not looked at: the master has no page at {host}:{port}", remedy)
        return
    if state.get("status") != "ALIVE":
        yield ok("spark workers", f"{host} is a standby: {state.get('status')}")
        return
    if spark_version and spark_version[1] != version("pyspark"):
        what = f"the cluster has Spark {spark_version[1]}, and the bridge {version('pyspark')}"
        yield failed("spark version", what, "install the same version on all workers", SetupError)
    workers = [worker for worker in state.get("workers", ()) if worker["state"] == "ALIVE"]
    cores, free = (sum(worker[name] for worker in workers) for name in ("cores", "coresfree"))
    what = f"{len(workers)} alive, with {cores} cores, {free} of them free"
    needed = partitions if mode is RouterMode.REALTIME else 1
    if (slots := sum(_slots(worker, spark) for worker in workers)) < needed:
        memory = spark.get(*EXECUTOR_MEMORY)
        need = f"{'real-time' if mode is RouterMode.REALTIME else 'batch'} mode needs {needed}"
        more = f"{what}, which have {slots} task slots in executors of {memory}; {need}"
        remedy = "start more workers, give them more cores or memory, or lower spark.executor.memory"
        yield failed("spark workers", more, remedy, SetupError)
    else:
        yield ok("spark workers", what)


def _slots(worker: Mapping[str, Any], spark: Mapping[str, str]) -> int:
    """Task slots of the executors for which a worker has cores and memory, while no application uses it.

    Args:
        worker: the master's description of the worker; its memory is in MiB.
        spark: the configured Spark settings.
    """
    memory = (kibibytes(spark.get(*EXECUTOR_MEMORY)) or 0) >> 10
    cores = int(each) if (each := spark.get(EXECUTOR_CORES, "")).isdecimal() else 0
    if not cores:
        # Without the setting one executor takes all cores of a worker.
        return int(worker["cores"]) if worker["memory"] >= memory else 0
    fitting = worker["memory"] // memory if memory else worker["cores"]
    return int(min(worker["cores"] // cores, fitting)) * cores


def _get(host: str, port: int, path: str, seconds: float) -> str:
    connection = HTTPConnection(host, port, timeout=seconds)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode("utf-8", "replace")
    finally:
        connection.close()
