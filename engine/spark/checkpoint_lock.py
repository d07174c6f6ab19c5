"""Lock of a checkpoint folder, so that only one router uses it; the operating system frees it when the JVM ends.

The JVM holds the lock and not the Python process, because a JVM can outlive the Python process that started it for a
moment, and still publish.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from engine.errors import SetupError
from engine.private import make_folder

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["CheckpointLock"]

_WAIT_SECONDS = 0.1


class CheckpointLock:
    """Lock of a checkpoint folder, held from construction until `release`."""

    def __init__(self, spark: SparkSession, root: Path, patience_seconds: float) -> None:
        """Locks the checkpoint folder `root`.

        Waits up to `patience_seconds`, since the JVM of a killed router may still be ending.

        Raises:
            SetupError: another router holds the lock; the text names its process id.
        """
        make_folder(root)
        path = root / "lock"
        jvm: Any = spark._jvm
        # This reference keeps Java's file object alive: Java frees the lock when it collects the object.
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
        """Frees the lock."""
        self._lock.release()
        self._file.close()
