"""What a run of the router leaves on disk for the next one: a generation.

    <checkpoint>/lock             held by the JVM that routes (see `lock`)
    <checkpoint>/begun            there has been a generation
    <checkpoint>/7/start.json     where generation 7 began, and what its routes were
    <checkpoint>/7/spark/         Spark's own checkpoint, used by generation 7 only
    <checkpoint>/7/stop.json      how far it was when it stopped in good order; missing after a crash

Each start of the query makes a new generation from the one before (`engine.spark.recovery`), so Spark never resumes a
checkpoint, and changed routes or another mode are nothing special. What is damaged or missing is an error: to guess
here is to lose or to repeat messages. The same is noted in Kafka (`engine.spark.notebook`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.private import make_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.spark.positions import Offsets, Topics

__all__ = ["Committed", "DamagedError", "Generation", "Generations", "Place", "Start", "offsets"]

_VERSION = 1
_NUMBER = re.compile(r"[1-9]\d*")


class DamagedError(Exception):
    """What a generation has left cannot be read, or some of it is gone; the text says what."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where a generation begins."""

    journal: str
    journal_id: str
    """Kafka's id of the journal topic; empty if the broker has none."""
    positions: Offsets
    """First offset to route, by journal partition."""
    outputs: Topics
    """Ends of every output topic before anything was published: the generation's own records follow."""
    bridge_id: str
    routes: str
    """The part of the properties file that decides what is routed where, as it was written."""
    run: str = ""
    """Name of this generation among all of all machines: a random text."""
    after: str = ""
    """The one that it continues; empty for the first."""

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Start:
        """From its fields as JSON has them. KeyError, TypeError, ValueError or AttributeError if they make no sense."""
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
    """The offset after the last one routed, by journal partition."""
    time_ms: int
    """When the interval began. Later ones began, and so published, after it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a generation was, as far as it was written down."""

    start: Start
    committed: Committed | None
    """None if there was no interval yet."""
    stopped: Offsets | None
    """The last offset that it decided on, by journal partition; None after a crash."""

    @property
    def positions(self) -> Offsets:
        """Where the next generation may begin, by journal partition, of those that this one has seen."""
        written = {**self.start.positions, **(self.committed.positions if self.committed else {})}
        decided = {partition: last + 1 for partition, last in (self.stopped or {}).items()}
        return {each: max(written.get(each, 0), decided.get(each, 0)) for each in written.keys() | decided.keys()}


@dataclass(frozen=True, slots=True)
class Generation:
    """One run of the query."""

    folder: Path
    start: Start

    @property
    def number(self) -> int:
        """Counts from 1."""
        return int(self.folder.name)

    @property
    def checkpoint(self) -> Path:
        """Spark's own."""
        return self.folder / "spark"

    def place(self) -> Place:
        """Where it was; DamagedError if that cannot be told."""
        return Place(self.start, self.committed(), self.stopped())

    def commits(self) -> int:
        """Number of the last interval that Spark has committed; -1 if there was none yet."""
        return max(_numbered(self.checkpoint / "commits"), default=-1)

    def committed(self) -> Committed | None:
        """That interval; DamagedError if Spark's files are damaged, or some are gone."""
        commits, written = (_numbered(self.checkpoint / name) for name in ("commits", "offsets"))
        # The offsets of one interval more are there when it was cut short.
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
        """Everything up to and including `decided`, by journal partition, is published or was dropped on purpose."""
        _write(self.folder / "stop.json", {"version": _VERSION, "decided": decided})

    def stopped(self) -> Offsets | None:
        """What `stop` was told; None after a crash; DamagedError if it cannot be read."""
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
        """The last one; None on the first start ever; DamagedError if it is damaged, or gone."""
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
        """A new generation; when this returns it is on disk, and older ones are gone."""
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
    """What a folder holds under a number; nothing if there is no folder."""
    if not folder.is_dir():
        return {}
    return {int(path.name): path for path in folder.iterdir() if path.name == "0" or _NUMBER.fullmatch(path.name)}


def _check_commit(path: Path) -> None:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if not lines or not lines[0].startswith("v"):
        raise DamagedError(f"{path} is damaged")


def _committed(path: Path, journal: str) -> Committed:
    """Reads a file of Spark's offset log: its version, settings, then a line for each source."""
    try:
        version, settings, source, *_ = path.read_text(encoding="utf-8").splitlines()
        if version != "v1":
            raise DamagedError(f"{path} has format {version!r}, not 'v1'")
        return Committed(offsets(json.loads(source)[journal]), int(json.loads(settings)["batchTimestampMs"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedError(f"{path} is damaged: {error!r}") from error


def offsets(fields: Mapping[str, Any]) -> Offsets:
    """Offsets by partition, from fields of JSON, whose names are texts."""
    return {int(partition): int(offset) for partition, offset in fields.items()}


def _read(path: Path) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if fields["version"] != _VERSION:
        msg = f"version {fields['version']!r}"
        raise ValueError(msg)
    return fields


def _write(path: Path, fields: Mapping[str, Any]) -> None:
    """Writes a file at once or not at all; when this returns, a power cut cannot take it back."""
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
