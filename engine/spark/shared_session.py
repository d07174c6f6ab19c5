"""Spark session that the users of one process share: opened for the first of them, closed with the last.

It is for tests of topologies. It has no ports and no files but a temporary folder, which goes with it.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from engine.spark.launch import Launch
from engine.spark.session import close, open_session

__all__ = ["SharedSession"]

_SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "1",
    # As in queries of streams.
    "spark.sql.adaptive.enabled": "false",
}


class SharedSession:
    """Share in the session of the process; a session that runs already, such as the user's own, is used and stays."""

    _lock = threading.Lock()
    _opened: SparkSession | None = None
    _folder: Path | None = None
    _shares = 0

    def __init__(self) -> None:
        """Opens the session, unless there is one; SetupError if the JVM does not start."""
        cls = SharedSession
        with cls._lock:
            if cls._opened is not None and not _is_alive():
                cls._end()
            if SparkContext._active_spark_context is None:
                cls._open()
            self.spark = cls._opened or SparkSession.builder.getOrCreate()
            self._counts = cls._opened is not None
            cls._shares += self._counts

    def close(self) -> None:
        """Gives the share back; the last one ends the session that was opened, and its JVM."""
        cls = SharedSession
        with cls._lock:
            if not self._counts or self.spark is not cls._opened:
                return
            self._counts = False
            cls._shares -= 1
            if cls._shares == 0:
                cls._end()

    @classmethod
    def _open(cls) -> None:
        # A session that was stopped leaves its JVM, which PySpark would take for the next one.
        SparkContext._gateway = SparkContext._jvm = None
        folder = Path(tempfile.mkdtemp(prefix="jms-bridge-"))
        cls._opened = open_session(Launch(folder, folder / "spark.log", _SETTINGS))
        cls._folder, cls._shares = folder, 0
        atexit.register(cls._end)

    @classmethod
    def _end(cls) -> None:
        atexit.unregister(cls._end)
        if cls._opened is not None:
            close(cls._opened)
        if cls._folder is not None:
            shutil.rmtree(cls._folder, ignore_errors=True)
        cls._opened = cls._folder = None


def _is_alive() -> bool:
    """True if the session that was opened here is neither stopped nor without its JVM."""
    gateway = SparkContext._gateway
    return SparkContext._active_spark_context is not None and gateway is not None and gateway.proc.poll() is None
