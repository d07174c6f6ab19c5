"""One router for each checkpoint: the JVM that publishes holds a lock, which the system frees when it is gone.

It is the JVM's lock and not this process's, because a JVM can outlive the Python process that started it by a moment,
and go on publishing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from engine.errors import SetupError
from engine.private import make_folder

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["Lease"]

_WAIT_SECONDS = 0.1


class Lease:
    """The right to route with a checkpoint, from construction until `release`."""

    def __init__(self, spark: SparkSession, root: Path, patience_seconds: float) -> None:
        """Waits that long for the JVM of a router that was killed; then SetupError names the one that lives."""
        make_folder(root)
        path = root / "lock"
        jvm: Any = spark._jvm
        # Java drops the lock when it collects the file, which this reference prevents.
        self._file = jvm.java.io.RandomAccessFile(str(path.absolute()), "rw")
        deadline = time.monotonic() + patience_seconds
        while (lock := self._file.getChannel().tryLock()) is None:
            if time.monotonic() > deadline:
                self._file.close()
                owner = path.read_text(encoding="utf-8").strip() or "unknown"
                msg = f"another router (process {owner}) works with the checkpoint {root}: stop it first"
                raise SetupError(msg)
            time.sleep(_WAIT_SECONDS)
        self._lock = lock
        self._file.setLength(0)
        self._file.writeBytes(f"{jvm.java.lang.ProcessHandle.current().pid()}\n")

    def release(self) -> None:
        """Lets the next one in."""
        self._lock.release()
        self._file.close()
