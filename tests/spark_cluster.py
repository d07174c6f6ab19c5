"""Standalone cluster of Spark on loopback, from the jars inside the pyspark package: a master and workers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import psutil

from engine.embedded.ports import LOOPBACK, free_ports
from engine.java import find_java
from engine.spark.jvm import MODULE_OPTIONS, spark_jars
from tests.waiting import patience

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["SparkCluster", "spark_cluster"]

_MASTER, _WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
_START_SECONDS, _STOP_SECONDS = 60.0, 20.0
_EXECUTOR = re.compile(r"--executor-id (\d+)")


@dataclass
class SparkCluster:
    """A master and its workers, each a process of its own."""

    folder: Path
    cores: int
    """Cores that each worker offers."""
    memory: str
    """Memory that each worker offers, in Spark's notation."""
    secret: str = ""
    """What the processes identify each other by; empty: nothing."""
    ports: list[int] = field(default_factory=lambda: [*free_ports(2)])
    master: subprocess.Popen[bytes] | None = None
    workers: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The value of `spark.master`."""
        return f"spark://{LOOPBACK}:{self.ports[0]}"

    def start_master(self) -> None:
        self.master = self._start("master", _MASTER, "--port", str(self.ports[0]), "--webui-port", str(self.ports[1]))
        self._await(lambda: self.state() is not None)

    def start_worker(self, number: int) -> None:
        """Starts a worker, and waits until the master knows it."""
        folder = self.folder / f"worker-{number}"
        offer = ["--cores", str(self.cores), "--memory", self.memory, "--webui-port", "0", "--work-dir", str(folder)]
        before = self.living_workers()
        self.workers[number] = self._start(f"worker-{number}", _WORKER, *offer, self.url)
        self._await(lambda: self.living_workers() > before)

    def living_workers(self) -> int:
        """Number of workers that the master takes for living."""
        state = self.state() or {}
        return sum(worker["state"] == "ALIVE" for worker in state.get("workers", ()))

    def executors(self) -> dict[int, psutil.Process]:
        """Processes of the executors by Spark's id."""
        found = {}
        for worker in self.workers.values():
            for child in _children(worker.pid):
                if match := _EXECUTOR.search(" ".join(_command(child))):
                    found[int(match[1])] = child
        return found

    def state(self) -> dict[str, Any] | None:
        """What the master says of itself; None if it does not answer."""
        try:
            with urlopen(f"http://{LOOPBACK}:{self.ports[1]}/json/", timeout=5) as answer:
                found: dict[str, Any] = json.loads(answer.read())
                return found
        except OSError:
            return None

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        executors = list(self.executors().values())
        for process in [*self.workers.values(), *([self.master] if self.master else [])]:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill(process)
        for executor in executors:
            if executor.is_running():
                executor.kill()

    def _start(self, name: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        java = str(find_java())
        login = {"spark.authenticate": "true", "spark.authenticate.secret": self.secret} if self.secret else {}
        properties = self.folder / "spark.properties"
        properties.write_text("".join(f"{name} {value}\n" for name, value in login.items()))
        properties.chmod(0o600)
        own = {
            "SPARK_HOME": str(spark_jars().parent),
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_LOCAL_DIRS": str(self.folder / "tmp"),
            "JAVA_HOME": str(Path(java).resolve().parents[1]),
        }
        options = [*MODULE_OPTIONS, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{spark_jars()}/*"]
        given = ["--host", LOOPBACK, "--properties-file", str(properties), *arguments]
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [java, *options, main, *given],
                stdout=log,
                stderr=log,
                env={**os.environ, **own},
                start_new_session=True,
            )

    def _await(self, condition: Any) -> None:
        deadline = time.monotonic() + patience(_START_SECONDS)
        while not condition():
            assert time.monotonic() < deadline, f"Spark's cluster does not start: see {self.folder}"
            time.sleep(0.1)


@contextmanager
def spark_cluster(
    folder: Path, workers: int, cores: int, secret: str = "", memory: str = "1g"
) -> Iterator[SparkCluster]:
    """A running cluster, ended afterwards with its executors."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster = SparkCluster(folder, cores, memory, secret)
    try:
        cluster.start_master()
        for number in range(workers):
            cluster.start_worker(number)
        yield cluster
    finally:
        cluster.stop()


def _children(pid: int) -> list[psutil.Process]:
    try:
        # Not their children: until a new process runs its program, it shows the command of the executor that makes it.
        return psutil.Process(pid).children()
    except psutil.NoSuchProcess:
        return []


def _command(process: psutil.Process) -> Sequence[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return ()
