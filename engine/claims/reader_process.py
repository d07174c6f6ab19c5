"""Reader of bodies on a file system of Hadoop, for parts without Spark: a child process, `jmsbridge.ClaimReader`."""

from __future__ import annotations

import os
import struct
import subprocess
from typing import TYPE_CHECKING

from engine.java import find_java
from engine.private import UMASK
from engine.spark.jvm import (
    argument_file,
    class_options,
    close_pipes,
    descriptor_path,
    ignore_signals,
    properties_file,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["BodyReader"]

_MAIN = "jmsbridge.ClaimReader"
_GONE, _FAILED = -1, -2
_END_SECONDS = 5.0


class BodyReader:
    """Child process that reads files of a folder; it is started by the first `read`, and again after it has ended."""

    def __init__(self, place: str, spark: Mapping[str, str], extra_jars: Path) -> None:
        """Starts nothing yet; `place` is the URI of the folder, `extra_jars` has the bridge's jar."""
        self._place = place
        self._settings = {name: value for name, value in spark.items() if name.startswith("spark.hadoop.")}
        self._class_path = [path for path in [spark.get("spark.driver.extraClassPath")] if path]
        self._jars = extra_jars
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, file: str) -> bytes:
        """The content of a file of the folder.

        Raises:
            FileNotFoundError: the folder does not have it.
            OSError: the file system fails, or does not have the folder.
            SetupError: Java is missing or too old.
        """
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = self._start()
        process = self._process
        assert process.stdin is not None, "it is a pipe"
        process.stdin.write(f"{file}\n".encode())
        process.stdin.flush()
        size = self._number()
        if size == _GONE:
            raise FileNotFoundError(file)
        if size == _FAILED:
            raise OSError(self._bytes(self._number()).decode("utf-8", "replace"))
        return self._bytes(size)

    def close(self) -> None:
        """Ends the process."""
        if self._process is None:
            return
        process, self._process = self._process, None
        close_pipes(process.stdin, process.stdout)
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        java = ["-Xmx1g", "-XX:TieredStopAtLevel=1", *class_options(self._jars, self._class_path)]
        with properties_file(self._settings) as settings:
            program = [_MAIN, descriptor_path(settings), self._place]
            with argument_file([*java, *program]) as arguments:
                return subprocess.Popen(
                    [find_java(), f"@{descriptor_path(arguments)}"],
                    pass_fds=(settings.fileno(), arguments.fileno()),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    # Without the variables that `engine.kafka.kerberos` sets for this process alone.
                    env=os.environ,
                    umask=UMASK,
                    # As for Spark's JVM: Python ends it, and its input ends with Python.
                    preexec_fn=ignore_signals,
                )

    def _number(self) -> int:
        return int(struct.unpack("!i", self._bytes(4))[0])

    def _bytes(self, number: int) -> bytes:
        assert self._process is not None, "it was started"
        assert self._process.stdout is not None, "it is a pipe"
        data = self._process.stdout.read(number)
        if len(data) < number:
            msg = "the process that reads the file system has ended; its messages are in the log"
            raise OSError(msg)
        return data
