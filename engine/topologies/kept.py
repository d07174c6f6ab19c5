"""Nodes of which the state of a topology was made, noted in a file of its folder and compared at each start."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from engine.errors import SetupError
from engine.spark.stored_files import write
from engine.topologies.layout import fingerprints, internal_formats, internal_inputs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from engine.spark.stored_files import Folder
    from engine.streams.program import Program

__all__ = ["KeptState"]

_FILE = "topology.json"


@dataclass(frozen=True, slots=True)
class KeptState:
    """Nodes with state of a topology, and where their state is."""

    nodes: Mapping[str, str]
    """Fingerprint of each node with state."""
    partitions: Mapping[str, int]
    """Number of partitions of each topic that is read."""
    topics: Mapping[str, str]
    """Digest of the fields of each internal topic."""
    inputs: Mapping[str, Sequence[str]]
    """Internal topics that each node with state reads."""
    stores: Mapping[str, int]
    """Number under which each node of the program keeps its entries in the store of a task."""
    dropped: Sequence[int]
    """Numbers under which former nodes kept entries. They are removed, and never used again."""
    versions: Mapping[str, int] = field(default_factory=dict)
    """Version of each subject of the registry that gives the fields of a source; empty where there is no state."""

    @classmethod
    def of(cls, program: Program, partitions: Mapping[str, int], before: KeptState | None) -> KeptState:
        """The state of a program that goes on from another state. A new node gets a number that no other had."""
        known = {} if before is None else before.stores
        used = set() if before is None else {*known.values(), *before.dropped}
        stores = {}
        for name in program.java.statefulNames():
            stores[name] = known[name] if name in known else _unused(name, used)
            used.add(stores[name])
        nodes, topics = fingerprints(program), internal_formats(program)
        return cls(
            nodes,
            dict(partitions),
            topics,
            internal_inputs(program.topology),
            stores,
            sorted(used - set(stores.values())),
            dict(program.versions) if nodes or topics else {},
        )

    @classmethod
    def read(cls, folder: Folder) -> KeptState | None:
        """The state that is noted in a folder; None if nothing has run there.

        Raises:
            SetupError: the file is damaged, or it is missing beside a checkpoint.
        """
        path = folder / _FILE
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            if not (folder / "spark").exists():
                return None
            msg = f"{path} is missing, beside a checkpoint: restore it, or: jms-bridge topology reset {folder.name}"
            raise SetupError(msg) from None
        except (ValueError, TypeError) as error:
            msg = f"{path} is damaged: restore it, or start anew with: jms-bridge topology reset {folder.name}"
            raise SetupError(msg) from error

    @classmethod
    def existing(cls, folder: Folder) -> KeptState:
        """The state that is noted in a folder; SetupError if there is none, or as `read`."""
        found = cls.read(folder)
        if found is None:
            msg = f"no state in {folder}: the topology has not run yet"
            raise SetupError(msg)
        return found

    def write(self, folder: Folder) -> None:
        """Notes it in the folder, in one step."""
        write(folder / _FILE, json.dumps(asdict(self), indent=1))

    def place(self, program: Program) -> None:
        """Has the nodes of the program keep their entries where this state has them."""
        for name, number in self.stores.items():
            program.java.keepUnder(name, number)

    def misfits(self, now: KeptState) -> list[str]:
        """Differences that keep another state from going on from this one, in words."""
        nodes = self.nodes.items()
        found = {
            "changed": [name for name, each in nodes if now.nodes.get(name, each) != each],
            "gone or renamed": [name for name in self.nodes if name not in now.nodes],
            "other numbers of partitions": _differ(self.partitions, now.partitions),
            "other fields in internal topics": _differ(self.topics, now.topics),
            "other internal topics are read by": _differ(self.inputs, now.inputs),
        }
        return [f"{what}: {', '.join(names)}" for what, names in found.items() if names]


def _differ(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    return [name for name, each in before.items() if name in now and now[name] != each]


def _unused(name: str, used: Collection[int]) -> int:
    """The number of a name in Java's `StatefulNode`, or that of a longer one."""
    number = int.from_bytes(zlib.crc32(name.encode()).to_bytes(4), signed=True)
    return _unused(f"{name} again", used) if number in used else number
