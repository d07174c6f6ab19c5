"""HDFS on loopback, of the version that is in Spark: a name node and a data node in one JVM, fetched by Maven."""

from __future__ import annotations

import re
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from engine.embedded.ports import LOOPBACK, free_ports
from engine.spark.jvm import MODULE_OPTIONS, spark_jars
from tests.brokers.packages import jar
from tests.java import java_program

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CLIENT_SETTINGS", "Hdfs"]

_STOP_SECONDS = 30
_PROGRAM = Path(__file__).with_name("MiniHdfs.java")

CLIENT_SETTINGS: Mapping[str, str] = {
    # An outage is noticed at once, not after ten attempts.
    "spark.hadoop.ipc.client.connect.max.retries": "1",
    "spark.hadoop.ipc.client.connect.retry.interval": "100",
    "spark.hadoop.dfs.client.retry.policy.enabled": "false",
    # There is one data node.
    "spark.hadoop.dfs.replication": "1",
}
"""Settings of bridges that use it."""


class Hdfs:
    """A name node and a data node, which can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (self._port,) = free_ports(1)
        self._process: subprocess.Popen[str] | None = None

    @property
    def uri(self) -> str:
        return f"hdfs://{LOOPBACK}:{self._port}"

    def start(self) -> None:
        (client,) = spark_jars().glob("hadoop-client-api-*.jar")
        version = re.sub(r".*-api-|\.jar", "", client.name)
        servers = jar(f"org.apache.hadoop:hadoop-client-minicluster:{version}")
        java, *rest = java_program(_PROGRAM, f"{servers}:{spark_jars()}/*")
        options = [*MODULE_OPTIONS, "-Xmx512m", f"-Djava.io.tmpdir={self._folder.parent}"]
        with (self._folder.parent / "hdfs.log").open("ab") as log:
            self._process = subprocess.Popen(
                [java, *options, *rest, str(self._folder), str(self._port)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n", (self._folder.parent / "hdfs.log").read_text()[-3000:]

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._close()

    def stop(self) -> None:
        if self._process is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close() if self._process.stdin else None
            self._close()

    def _close(self) -> None:
        assert self._process is not None
        self._process.wait(_STOP_SECONDS)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process = None
