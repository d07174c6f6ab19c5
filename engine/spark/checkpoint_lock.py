"""Lock of a checkpoint or of the state of a topology, so that only one process works with it.

A folder on a local disk is locked by the operating system. On a file system of Hadoop there is no such lock. There, the
process locks a file on its own machine, which shuts out a JVM that is still ending, and makes a claim, which other
machines see:

    <checkpoint>/claims/12/claim.json     who works with the checkpoint; the highest number counts

An earlier claim is not waited for, since its machine may be gone. The process that made it looks for later ones, and
ends. Which bridge may work at all is decided before, in Kafka (docs/adr/0013-standby.md, 0031-checkpoint-places.md).
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JNetworkError

from engine.errors import ClientEndedError, SetupError
from engine.private import make_folder
from engine.spark.stored_files import make_with, numbered, remove

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from engine.spark.stored_files import Folder

__all__ = ["CheckpointLock", "lock_file"]

_WAIT_SECONDS = 0.1
_LOOK_SECONDS = 1.0
"""Time between two looks for later claims."""


class CheckpointLock:
    """Lock of a checkpoint, held from construction until `release`.

    The JVM holds the lock and not the Python process, because a JVM can outlive the Python process that started it for
    a moment, and still publish. The operating system frees the lock when the JVM ends.
    """

    def __init__(self, spark: SparkSession, data: Path, root: Folder, wait_seconds: float) -> None:
        """Locks the folder `root`; `data` is the folder of the bridge's own files (`embedded.data`).

        Waits up to `wait_seconds`, since the JVM of a killed router may still be ending.

        Raises:
            SetupError: another process of this machine holds the lock; the text names its id.
        """
        self.root = root
        path = lock_file(data, root)
        make_folder(path.parent)
        jvm: Any = spark._jvm
        # This reference keeps Java's file object alive: Java frees the lock when it collects the object.
        self._file = jvm.java.io.RandomAccessFile(str(path.absolute()), "rw")
        deadline = time.monotonic() + wait_seconds
        while (lock := self._file.getChannel().tryLock()) is None:
            if time.monotonic() > deadline:
                self._file.close()
                owner = path.read_text(encoding="utf-8").strip() or "unknown"
                msg = f"another router or topology (process {owner}) works with the checkpoint {root}: stop it first"
                raise SetupError(msg)
            time.sleep(_WAIT_SECONDS)
        self._lock = lock
        self._file.setLength(0)
        self._file.writeBytes(f"{jvm.java.lang.ProcessHandle.current().pid()}\n")
        self._looked_at = time.monotonic()
        self._claim = 0 if isinstance(root, Path) else _claim(root / "claims")

    def check(self) -> None:
        """Checks now and then that the checkpoint has not been claimed since.

        Raises:
            ClientEndedError: it has been, by the process that the text names.
        """
        if isinstance(self.root, Path) or time.monotonic() - self._looked_at < _LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        claims = numbered(self.root / "claims")
        if (last := max(claims, default=0)) != self._claim:
            who = (
                (claims[last] / "claim.json").read_text(encoding="utf-8")
                if claims
                else "a process that removed the claims"
            )
            msg = f"the checkpoint {self.root} has been claimed since, by {who}: only one may work with it"
            raise ClientEndedError(msg)

    def release(self) -> None:
        """Frees the lock; a JVM that has ended has freed it already."""
        with suppress(Py4JNetworkError, ConnectionError):
            self._lock.release()
            self._file.close()


def lock_file(data: Path, root: Folder) -> Path:
    """The file on this machine that is locked for a folder."""
    if isinstance(root, Path):
        return root / "lock"
    return data / "locks" / "checkpoints" / hashlib.sha256(str(root).encode()).hexdigest()[:16]


def _claim(claims: Folder) -> int:
    """Makes a claim above all others, and removes these; returns its number."""
    text = json.dumps({"host": socket.gethostname(), "process": os.getpid()})
    while True:
        former = numbered(claims)
        number = max(former, default=0) + 1
        with suppress(FileExistsError):
            make_with(claims / str(number), "claim.json", text)
            for each in former.values():
                remove(each)
            return number
