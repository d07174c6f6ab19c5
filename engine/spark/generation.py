"""Generations: the files that a run of the router leaves in its checkpoint folder for the next run, and its lock.

    <checkpoint>/lock             held by the JVM that routes (`CheckpointLock`)
    <checkpoint>/begun            exists once there has been a generation
    <checkpoint>/7/start.json     positions at which generation 7 began, and its routes
    <checkpoint>/7/spark/         Spark's own checkpoint, used by generation 7 only
    <checkpoint>/7/stop.json      its last positions after a clean stop; missing after a crash

Each start of the query makes a new generation from the last one (`engine.spark.recovery`). Spark therefore never
resumes a checkpoint, and changed routes or another mode need no special case. A damaged or missing file is an error:
a guess would lose or repeat messages. The same facts are noted in Kafka (`engine.spark.position_store`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JNetworkError

from engine.errors import SetupError
from engine.private import make_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from engine.kafka.offsets import Offsets, Topics

__all__ = [
    "CheckpointLock",
    "Committed",
    "DamagedError",
    "Generation",
    "Generations",
    "RouterProgress",
    "Start",
    "offsets",
]

_VERSION = 1
_WAIT_SECONDS = 0.1
_NUMBER = re.compile(r"[1-9]\d*")


class DamagedError(Exception):
    """A file of a generation cannot be read or is missing; the text names the file."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start of a generation: its positions, its routes, and the generation before it."""

    journal: str
    """Name of the journal topic."""
    journal_id: str
    """Kafka's id of the journal topic; empty if the broker has none."""
    positions: Offsets
    """First offset to route, by journal partition."""
    outputs: Topics
    """Ends of all output topics, by topic and partition, before the generation published its first record."""
    bridge_id: str
    routes: str
    """The routing part of the properties file, as the operator wrote it; see `engine.spark.recovery.routes_text`."""
    run: str = ""
    """Random id of this generation, unique across machines; empty in files of older versions."""
    after: str = ""
    """`run` of the generation that this one continues; empty for the first."""

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Start:
        """Makes a start from its JSON fields; KeyError, TypeError, ValueError or AttributeError if they are invalid."""
        return cls(
            journal=fields["journal"],
            journal_id=fields["journal_id"],
            positions=offsets(fields["positions"]),
            outputs={topic: offsets(each) for topic, each in fields["outputs"].items()},
            bridge_id=fields["bridge_id"],
            routes=fields["routes"],
            run=fields.get("run", ""),
            after=fields.get("after", ""),
        )


@dataclass(frozen=True, slots=True)
class Committed:
    """The last interval that Spark has committed."""

    positions: Offsets
    """The offset after the last routed one, by journal partition."""
    time_ms: int
    """Time at which the interval began, in milliseconds since 1970. Records of later intervals are published later."""


@dataclass(frozen=True, slots=True)
class RouterProgress:
    """Progress of a generation, as far as it was recorded in the checkpoint or in Kafka."""

    start: Start
    committed: Committed | None
    """The last committed interval; None if there was none yet."""
    stopped: Offsets | None
    """The last decided offset by journal partition, written by a clean stop; None after a crash."""

    @property
    def positions(self) -> Offsets:
        """First offset that the next generation may route, for each journal partition known to this generation."""
        written = {**self.start.positions, **(self.committed.positions if self.committed else {})}
        decided = {partition: last + 1 for partition, last in (self.stopped or {}).items()}
        return {each: max(written.get(each, 0), decided.get(each, 0)) for each in written.keys() | decided.keys()}


@dataclass(frozen=True, slots=True)
class Generation:
    """Generation: one run of the query, with its folder in the checkpoint."""

    folder: Path
    start: Start

    @property
    def number(self) -> int:
        """Number of the generation; the first is 1."""
        return int(self.folder.name)

    @property
    def checkpoint(self) -> Path:
        """Folder of Spark's own checkpoint."""
        return self.folder / "spark"

    def progress(self) -> RouterProgress:
        """The recorded progress of the generation; DamagedError if its files are damaged or missing."""
        return RouterProgress(self.start, self.committed(), self.stopped())

    def commits(self) -> int:
        """Number of the last interval that Spark has committed; -1 if there was none yet."""
        return max(_numbered(self.checkpoint / "commits"), default=-1)

    def committed(self) -> Committed | None:
        """The last interval that Spark has committed; None if there is none.

        Raises:
            DamagedError: files of Spark's checkpoint are damaged or missing.
        """
        commits, written = (_numbered(self.checkpoint / name) for name in ("commits", "offsets"))
        # Spark writes the offsets of an interval before its commit: an interrupted one has offsets alone.
        if not commits and len(written) > 1:
            raise DamagedError(f"{self.checkpoint / 'commits'} has no commits any more")
        if not commits:
            return None
        last = max(commits)
        if last not in written:
            raise DamagedError(f"{self.checkpoint / 'offsets' / str(last)} is missing")
        _check_commit(commits[last])
        return _committed(written[last], self.start.journal)

    def stop(self, decided: Offsets) -> None:
        """Records a clean stop: all offsets up to and including `decided`, by journal partition, are decided.

        A decided record is in Kafka, or the router dropped it on purpose.
        """
        _write(self.folder / "stop.json", {"version": _VERSION, "decided": decided})

    def stopped(self) -> Offsets | None:
        """The offsets that `stop` recorded; None after a crash; DamagedError if the file cannot be read."""
        path = self.folder / "stop.json"
        if not path.exists():
            return None
        try:
            return offsets(_read(path)["decided"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedError(f"{path} is damaged: {error!r}") from error


class Generations:
    """The generations in a checkpoint folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def newest(self) -> Generation | None:
        """The last generation; None before the first start; DamagedError if its files are damaged or missing."""
        found = _numbered(self.root)
        if not found:
            if (self.root / "begun").exists():
                raise DamagedError(f"{self.root} has no generation any more")
            return None
        folder = found[max(found)]
        try:
            return Generation(folder, Start.of(_read(folder / "start.json")))
        except FileNotFoundError as error:
            raise DamagedError(f"{folder / 'start.json'} is missing") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedError(f"{folder / 'start.json'} is damaged: {error!r}") from error

    def create(self, start: Start) -> Generation:
        """Makes a new generation; on return its files are on disk and older generations are deleted."""
        make_folder(self.root)
        for stale in self.root.glob("*.tmp"):
            shutil.rmtree(stale)
        older = _numbered(self.root)
        folder = self.root / str(max(older, default=0) + 1)
        draft = folder.with_name(folder.name + ".tmp")
        make_folder(draft)
        _write(draft / "start.json", {"version": _VERSION, **asdict(start)})
        draft.rename(folder)
        _write(self.root / "begun", {"version": _VERSION})
        for old in older.values():
            shutil.rmtree(old)
        return Generation(folder, start)


def _numbered(folder: Path) -> dict[int, Path]:
    """Entries of a folder whose names are numbers, by number; empty if the folder is missing."""
    if not folder.is_dir():
        return {}
    return {int(path.name): path for path in folder.iterdir() if path.name == "0" or _NUMBER.fullmatch(path.name)}


def _check_commit(path: Path) -> None:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if not lines or not lines[0].startswith("v"):
        raise DamagedError(f"{path} is damaged")


def _committed(path: Path, journal: str) -> Committed:
    """Reads a file of Spark's offset log, whose lines are version, settings, and offsets of each source."""
    try:
        version, settings, source, *_ = path.read_text(encoding="utf-8").splitlines()
        if version != "v1":
            raise DamagedError(f"{path} has format {version!r}, not 'v1'")
        return Committed(offsets(json.loads(source)[journal]), int(json.loads(settings)["batchTimestampMs"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedError(f"{path} is damaged: {error!r}") from error


def offsets(fields: Mapping[str, Any]) -> Offsets:
    """Offsets by partition, read from a JSON object, whose keys are partition numbers as text."""
    return {int(partition): int(offset) for partition, offset in fields.items()}


def _read(path: Path) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if fields["version"] != _VERSION:
        msg = f"version {fields['version']!r}"
        raise ValueError(msg)
    return fields


def _write(path: Path, fields: Mapping[str, Any]) -> None:
    """Writes a file atomically; on return the file is on disk and survives a power cut."""
    draft = path.with_name(path.name + ".tmp")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(fields, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    draft.chmod(0o600)
    draft.replace(path)
    for folder in (path.parent, path.parent.parent):
        handle = os.open(folder, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


class CheckpointLock:
    """Lock of a checkpoint folder, so that only one router uses it; held from construction until `release`.

    The JVM holds the lock and not the Python process, because a JVM can outlive the Python process that started it for
    a moment, and still publish. The operating system frees the lock when the JVM ends.
    """

    def __init__(self, spark: SparkSession, root: Path, wait_seconds: float) -> None:
        """Locks the checkpoint folder `root`.

        Waits up to `wait_seconds`, since the JVM of a killed router may still be ending.

        Raises:
            SetupError: another router holds the lock; the text names its process id.
        """
        make_folder(root)
        path = root / "lock"
        jvm: Any = spark._jvm
        # This reference keeps Java's file object alive: Java frees the lock when it collects the object.
        self._file = jvm.java.io.RandomAccessFile(str(path.absolute()), "rw")
        deadline = time.monotonic() + wait_seconds
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
        """Frees the lock; a JVM that has ended has freed it already."""
        with suppress(Py4JNetworkError, ConnectionError):
            self._lock.release()
            self._file.close()
