"""A schema registry as a child process: Apicurio, which speaks like Confluent's, with its schemas in memory."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from confluent_kafka.schema_registry import SchemaRegistryClient

from engine.embedded import free_ports
from tests.brokers.packages import distribution
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ApicurioRegistry"]

_PACKAGE = "io.apicurio:apicurio-registry-app:2.6.13.Final:tar.gz:all"
_JAR = "apicurio-registry-app-2.6.13.Final-runner.jar"


class ApicurioRegistry:
    """A running registry, whose `client` is Confluent's."""

    def __init__(self, folder: Path) -> None:
        java = shutil.which("java")
        assert java is not None
        port = free_ports(1)[0]
        self.url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
        options = ["-Xmx384m", "-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={port}"]
        self._log = folder / "registry.log"
        with self._log.open("wb") as log:
            command = [java, *options, "-jar", str(distribution(_PACKAGE) / _JAR)]
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        self.client: Any = SchemaRegistryClient({"url": self.url})
        until(self._answers, 120, "an answer of the registry")

    def suspend(self) -> None:
        """Makes the registry answer no more."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Makes it answer again."""
        os.kill(self._process.pid, signal.SIGCONT)

    def close(self) -> None:
        """Ends the process, and closes the client."""
        self.client.close()
        self._process.kill()
        self._process.wait(30)

    def _answers(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()[-2_000:]
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=5) as answer:  # noqa: S310 - always HTTP
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False
