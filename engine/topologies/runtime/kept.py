"""Nodes of which the state of a topology was made, noted in a file of its folder and compared at each start."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from engine.errors import SetupError
from engine.spark.hadoop_path import opened
from engine.spark.stored_files import write
from engine.topologies.runtime.layout import SLICED, fingerprints, internal_formats, internal_inputs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from engine.kafka.offsets import KafkaOffsets, TopicFacts
    from engine.spark.stored_files import Folder
    from engine.topologies.library.program import Program
    from engine.topologies.runtime.layout import Layout

__all__ = [
    "RESET_NOTE",
    "KeptState",
    "check_first_start",
    "check_half_reset",
    "check_identity",
    "growth_refusal",
    "state_folder",
    "tables_folder",
]

_FILE = "topology.json"
_SKIPPED = "skipped.json"
RESET_NOTE = "reset.json"
"""File with the topics that a reset deletes; there until the reset is done."""


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

    @classmethod
    def continued(
        cls, folder: Folder, program: Program, layout: Layout, topics: Mapping[str, TopicFacts], batch: int
    ) -> KeptState:
        """The state with which a topology goes on from the one that is noted in a folder, if there is one.

        Args:
            folder: the folder of its state.
            program: its plan.
            layout: its topics.
            topics: facts about those with positions.
            batch: number of the first batch that it computes.

        Raises:
            SetupError: the noted state cannot be used; the text names the nodes or the topics, and the ways out.
        """
        before = cls.read(folder)
        now = cls.of(program, layout.partitions, before)
        if before is not None:
            before.check_fits(now, program.topology.name, folder, layout, topics)
        return now.begun({topic: facts.id for topic, facts in topics.items()}, before, batch)

    @staticmethod
    def is_in(folder: Folder) -> bool:
        """True if a state is noted in a folder."""
        return (folder / _FILE).exists()

    @classmethod
    def existing(cls, folder: Folder) -> KeptState:
        """The state that is noted in a folder; SetupError if there is none, or as `read`."""
        kept = cls.read(folder)
        if kept is None:
            msg = f"no state in {folder}: the topology has not run yet"
            raise SetupError(msg)
        return kept

    @staticmethod
    def skipped(folder: Folder) -> list[str]:
        """Positions of the records that the topology sets aside, as `topic:partition:offset`.

        Raises:
            SetupError: the file is damaged.
        """
        path = folder / _SKIPPED
        try:
            positions = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        except ValueError as error:
            msg = f"{path} is damaged: remove it, and set the records aside again with: jms-bridge topology skip"
            raise SetupError(msg) from error
        return [str(each) for each in positions]

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

    def fixed_inputs(self, layout: Layout) -> dict[str, list[str]]:
        """The nodes that need the number of partitions of a topic as it is, by each such topic.

        These are the joins, and the nodes of this state; other nodes with state begin with empty state.
        """
        readers: dict[str, list[str]] = {}
        for node, topics in layout.counted.items():
            if node in self.nodes or node in layout.joins:
                for topic in topics:
                    readers.setdefault(topic, []).append(node)
        return readers

    def check_fits(
        self, now: KeptState, name: str, folder: Folder, layout: Layout, topics: Mapping[str, TopicFacts]
    ) -> None:
        """Checks that the topology `name` can go on from this state, which is in `folder`, with the state `now`.

        Raises:
            SetupError: it cannot; the text names the nodes or the topics, and the ways out.
        """
        check_identity(name, folder, self.ids, topics)
        fixed = self.fixed_inputs(layout)
        for topic, nodes in fixed.items():
            if (count := self.partitions.get(topic, 0)) and count < now.partitions[topic]:
                raise SetupError(growth_refusal(name, topic, count, now.partitions[topic], nodes))
        if misfits := self.misfits(now, fixed):
            msg = (
                f"the state in {folder} does not fit the topology any more ({'; '.join(misfits)}). Four ways out: "
                "undo the change; keep the state of all other nodes with `jms-bridge topology migrate`; "
                "give StreamsBuilder a new name, which begins with empty state; or throw the state away with "
                f"`jms-bridge topology reset {folder.name}` and read the topics from their beginning again"
            )
            raise SetupError(msg)

    def misfits(self, now: KeptState, fixed: Collection[str] | None = None) -> list[str]:
        """Differences that keep another state from going on from this one, in words.

        Topics that are not among `fixed` may have more partitions; None: all are among them.
        """
        nodes = self.nodes.items()
        differences = {
            "changed": [name for name, each in nodes if now.nodes.get(name, each) not in (each, each + SLICED)],
            "kept in another form by an earlier release": [
                name for name, each in nodes if now.nodes.get(name) == each + SLICED
            ],
            "gone or renamed": [name for name in self.nodes if name not in now.nodes],
            "other numbers of partitions": [
                topic
                for topic in _differ(self.partitions, now.partitions)
                if fixed is None or topic in fixed or now.partitions[topic] < self.partitions[topic]
            ],
            "other fields in internal topics": _differ(self.topics, now.topics),
            "other internal topics are read by": _differ(self.inputs, now.inputs),
        }
        return [f"{what}: {', '.join(names)}" for what, names in differences.items() if names]


def state_folder(place: Path | str, spark: SparkSession, name: str) -> Folder:
    """Folder of the state and the checkpoint of a topology; `place` is that of all of them."""
    return opened(spark, place) / name


def tables_folder(data: Path, name: str) -> Path:
    """Local folder for copies of the tables of a topology's state on another file system; `data` is `embedded.data`."""
    return data / "tables" / name


def check_half_reset(folder: Folder) -> None:
    """Raises SetupError if a reset of the topology with its state in this folder was cut short."""
    if (folder / RESET_NOTE).exists():
        name = folder.name
        raise SetupError(
            f"the reset of topology '{name}' was cut short: finish it with `jms-bridge topology reset {name}`"
        )


def check_first_start(kafka: KafkaOffsets, name: str, build: str, folder: Folder, layout: Layout) -> None:
    """Checks that a topology whose folder no earlier run has begun has not run before.

    Args:
        kafka: the Kafka with its topics.
        name: the name of the topology.
        build: the function that builds it, as `module:function`.
        folder: the folder of its state.
        layout: its topics. Internal ones are not made yet if it has not run: a new topic may have no leader to ask.

    Raises:
        SetupError: Kafka has committed positions of the topology, or records in its internal topics.
        UnreachableError: Kafka does not answer.
    """
    read = [topic for topic, count in layout.partitions.items() if kafka.committed(name, topic, range(count))]
    filled = [topic for topic, ends in kafka.ends(layout.internal).items() if any(ends.values())]
    traces = [
        *([f"its group '{name}' has positions in {_named(read)}"] if read else []),
        *([f"there are records in its internal {_named(filled)}"] if filled else []),
    ]
    if traces:
        msg = (
            f"topology '{name}' has no state in {folder}, but has run before: {', and '.join(traces)}. With empty "
            "state its results would be those of a part of the records alone. Three ways out: set topologies.state to "
            "the folder where its state is, which bridges that stand by for each other have in common; restore the "
            f"folder from a copy; or begin anew with `jms-bridge topology reset {build}`, after which it reads its "
            "topics from their beginning"
        )
        raise SetupError(msg)


def check_identity(name: str, folder: Folder, kept: Mapping[str, str], now: Mapping[str, TopicFacts]) -> None:
    """Checks that topics are those that a topology has read before.

    Args:
        name: the name of the topology.
        folder: the folder of its state.
        kept: Kafka's id of each topic that was read.
        now: the topics as they are.

    Raises:
        SetupError: topics were deleted and created again.
    """
    recreated = [topic for topic, each in now.items() if each.id and kept.get(topic) and each.id != kept[topic]]
    if recreated:
        ids = ", ".join(f"'{topic}' (Kafka's id is {now[topic].id} and was {kept[topic]})" for topic in recreated)
        msg = (
            f"topology '{name}' reads topics that were deleted and created again: {ids}. Its positions and the state "
            f"in {folder} are of the former topics. Three ways out: restore these; throw the state away with `jms-"
            f"bridge topology reset {name}`, and read all topics from their beginning; or give StreamsBuilder a new "
            "name, which begins with empty state"
        )
        raise SetupError(msg)


def growth_refusal(name: str, topic: str, before: int, now: int, nodes: Sequence[str]) -> str:
    """Text about partitions that were added to a topic on whose number the state of `nodes` depends, with ways out."""
    drops = " ".join(f"--drop {node}" for node in nodes)
    return (
        f"topic '{topic}' has {now} partitions and topology '{name}' reads {before}: what is in the new ones is not "
        f"read, and producers send keys to other partitions than those for which {', '.join(nodes)} has them. Ways "
        f"out, when the topology is stopped: `jms-bridge topology reset {name}` reads all topics again from their "
        f"beginning; `jms-bridge topology migrate MODULE:FUNCTION {drops}` begins these nodes with empty state and "
        "reads on. Topics that are joined need equal numbers"
    )


def _differ(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    return [name for name, each in before.items() if name in now and now[name] != each]


def _unused(name: str, used: Collection[int]) -> int:
    """The number of a name in Java's `StatefulNode`, or that of a longer one."""
    number = int.from_bytes(zlib.crc32(name.encode()).to_bytes(4), signed=True)
    return _unused(f"{name} again", used) if number in used else number


def _named(topics: Collection[str]) -> str:
    names = ", ".join(f"'{topic}'" for topic in topics)
    return f"topics {names}" if len(topics) > 1 else f"topic {names}"
