"""Nodes of which the state of a topology was made, noted in a file of its folder and compared at each start."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from engine.errors import SetupError
from engine.spark.stored_files import write
from engine.topologies.runtime.layout import fingerprints, internal_formats, internal_inputs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from engine.spark.stored_files import Folder
    from engine.topologies.library.program import Program

__all__ = ["KeptState"]

_FILE = "topology.json"
_SKIPPED = "skipped.json"


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
    ids: Mapping[str, str] = field(default_factory=dict)
    """Kafka's id of each topic that is read; those of global tables, which are read anew, are not among them."""
    first_batches: Mapping[str, int] = field(default_factory=dict)
    """Number of the first batch of each share that came later than others, when partitions were added."""
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
        later = ({}, {}) if before is None else (before.ids, before.first_batches)
        nodes, topics = fingerprints(program), internal_formats(program)
        return cls(
            nodes,
            dict(partitions),
            topics,
            internal_inputs(program.topology),
            stores,
            sorted(used - set(stores.values())),
            *later,
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

    @staticmethod
    def is_in(folder: Folder) -> bool:
        """True if a state is noted in a folder."""
        return (folder / _FILE).exists()

    @classmethod
    def existing(cls, folder: Folder) -> KeptState:
        """The state that is noted in a folder; SetupError if there is none, or as `read`."""
        found = cls.read(folder)
        if found is None:
            msg = f"no state in {folder}: the topology has not run yet"
            raise SetupError(msg)
        return found

    @staticmethod
    def skipped(folder: Folder) -> list[str]:
        """Positions of the records that the topology sets aside, as `topic:partition:offset`.

        Raises:
            SetupError: the file is damaged.
        """
        path = folder / _SKIPPED
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        except ValueError as error:
            msg = f"{path} is damaged: remove it, and set the records aside again with: jms-bridge topology skip"
            raise SetupError(msg) from error
        return [str(each) for each in found]

    @classmethod
    def skip(cls, folder: Folder, position: str) -> None:
        """Notes that the topology sets a record aside, in one step."""
        write(folder / _SKIPPED, json.dumps(sorted({*cls.skipped(folder), position}), indent=1))

    def write(self, folder: Folder) -> None:
        """Notes it in the folder, in one step."""
        write(folder / _FILE, json.dumps(asdict(self), indent=1))

    def place(self, program: Program) -> None:
        """Has the nodes of the program keep their entries where this state has them."""
        for name, number in self.stores.items():
            program.java.keepUnder(name, number)

    def begun(self, ids: Mapping[str, str], before: KeptState | None, batch: int) -> KeptState:
        """State with the ids of its topics, and `batch` as the first one of shares new to `before`."""
        former = 0 if before is None else max(before.partitions.values())
        later = {str(share): batch for share in range(former, max(self.partitions.values()))} if former else {}
        return replace(self, ids=dict(ids), first_batches={**later, **self.first_batches})

    @property
    def shares_later(self) -> dict[int, int]:
        """`first_batches` with numbers of shares."""
        return {int(share): batch for share, batch in self.first_batches.items()}

    def misfits(self, now: KeptState, fixed: Collection[str] | None = None) -> list[str]:
        """Differences that keep another state from going on from this one, in words.

        Topics that are not among `fixed` may have more partitions; None: all are among them.
        """
        nodes = self.nodes.items()
        found = {
            "changed": [name for name, each in nodes if now.nodes.get(name, each) != each],
            "gone or renamed": [name for name in self.nodes if name not in now.nodes],
            "other numbers of partitions": [
                topic
                for topic in _differ(self.partitions, now.partitions)
                if fixed is None or topic in fixed or now.partitions[topic] < self.partitions[topic]
            ],
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
