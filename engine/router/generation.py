"""Generations: the files that a run of the router leaves in its checkpoint folder for the next run.

    <checkpoint>/lock             held by the JVM that routes (`engine.spark.checkpoint_lock`)
    <checkpoint>/begun            exists once there has been a generation
    <checkpoint>/secret           the secret of its seals, without `bridge.secret` (`engine.router.secret`)
    <checkpoint>/7/start.json     positions at which generation 7 began, and its routes
    <checkpoint>/7/spark/         Spark's own checkpoint, used by generation 7 only
    <checkpoint>/7/stop.json      its last positions after a clean stop; missing after a crash

Each start of the query makes a new generation from the last one (`engine.router.recovery`). Spark therefore never
resumes a checkpoint, and changed routes or another mode need no special case. A damaged or missing file is an error:
a guess would lose or repeat messages. The same facts are noted in Kafka (`engine.router.position_store`).

The folder is on a local disk, or on a file system of Hadoop, where a claim takes the place of the lock.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.private import make_folder
from engine.spark.stored_files import make_with, numbered, remove, write

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.kafka.offsets import Offsets, Topics
    from engine.spark.stored_files import Folder

__all__ = [
    "Committed",
    "DamagedError",
    "Generation",
    "Generations",
    "NewerFormatError",
    "RouterProgress",
    "Start",
    "offsets",
]

_VERSION = 1


class DamagedError(Exception):
    """A file of a generation cannot be read or is missing; the text names the file."""


class NewerFormatError(DamagedError):
    """A file of a generation is in a form that only newer versions of the bridge read; the text names the file."""


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
    """The routing part of the properties file, as the operator wrote it; see `past_routes.routes_text`."""
    run: str = ""
    """Random id of this generation, unique across machines; empty in files of older versions."""
    after: str = ""
    """`run` of the generation that this one continues; empty for the first."""
    seal: str = ""
    """Public name of the secret whose keys seal the records of this generation (`engine.seals.SealKeys.id`); empty in
    files of older versions, whose records have no seal."""
    sequence: int = 0
    """Greater than that of the generation that this one continues; 0 in files of older versions."""

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
            seal=fields.get("seal", ""),
            sequence=int(fields.get("sequence", 0)),
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

    folder: Folder
    start: Start

    @property
    def number(self) -> int:
        """Number of the generation; the first is 1."""
        return int(self.folder.name)

    @property
    def checkpoint(self) -> Folder:
        """Folder of Spark's own checkpoint."""
        return self.folder / "spark"

    def progress(self) -> RouterProgress:
        """The recorded progress of the generation; DamagedError if its files are damaged or missing."""
        return RouterProgress(self.start, self.committed(), self.stopped())

    def commits(self) -> int:
        """Number of the last interval that Spark has committed; -1 if there was none yet."""
        return max(numbered(self.checkpoint / "commits"), default=-1)

    def committed(self) -> Committed | None:
        """The last interval that Spark has committed; None if there is none.

        Raises:
            DamagedError: files of Spark's checkpoint are damaged or missing.
        """
        commits, written = (numbered(self.checkpoint / name) for name in ("commits", "offsets"))
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
        write(self.folder / "stop.json", _text({"version": _VERSION, "decided": decided}))

    def stopped(self) -> Offsets | None:
        """The offsets that `stop` recorded; None after a crash; DamagedError if the file cannot be read."""
        path = self.folder / "stop.json"
        try:
            return offsets(_read(path)["decided"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedError(f"{path} is damaged: {error!r}") from error


class Generations:
    """The generations in a checkpoint folder."""

    def __init__(self, root: Folder) -> None:
        self.root = root

    def newest(self) -> Generation | None:
        """The last generation; None before the first start; DamagedError if its files are damaged or missing."""
        found = numbered(self.root)
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
        """Makes a new generation; on return its files are stored."""
        if isinstance(self.root, Path):
            make_folder(self.root)
        number = max(numbered(self.root), default=0)
        while True:
            number += 1
            folder = self.root / str(number)
            try:
                make_with(folder, "start.json", _text({"version": _VERSION, **asdict(start)}))
            except FileExistsError:
                # Of a router that this one has shut out, and that was still recovering: see ADR 31.
                continue
            write(self.root / "begun", _text({"version": _VERSION}))
            return Generation(folder, start)

    def remove_before(self, generation: Generation) -> None:
        """Removes earlier and unfinished generations; to be called when Kafka has the note of this one."""
        drafts = [path for path in self.root.iterdir() if path.name.endswith(".tmp")]
        for path in (*drafts, *(path for number, path in numbered(self.root).items() if number < generation.number)):
            remove(path)


def _check_commit(path: Folder) -> None:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if not lines or not lines[0].startswith("v"):
        raise DamagedError(f"{path} is damaged")


def _committed(path: Folder, journal: str) -> Committed:
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


def _read(path: Folder) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    version = fields["version"]
    if isinstance(version, int) and version > _VERSION:
        msg = f"a newer version of the bridge wrote {path}, in form {version}, and this version reads form {_VERSION}"
        raise NewerFormatError(msg)
    if version != _VERSION:
        msg = f"version {version!r}"
        raise ValueError(msg)
    return fields


def _text(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, indent=1)
