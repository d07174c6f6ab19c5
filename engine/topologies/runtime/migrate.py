"""Migration of the state of a topology that has changed: all nodes keep their state but those that are dropped."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.schemas.section import SchemaConfig
from engine.spark import session
from engine.spark.checkpoint_lock import CheckpointLock
from engine.topologies.library.nodes import GroupTable, JoinForeign
from engine.topologies.runtime.definition import find, read
from engine.topologies.runtime.kept import KeptState, state_folder
from engine.topologies.runtime.registry import planned
from engine.topologies.section import TopologiesConfig

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from engine.spark.stored_files import Folder
    from engine.topologies.library.program import Program
    from routes.model import Config

__all__ = ["Migration", "open_migration"]


@dataclass(frozen=True, slots=True)
class Migration:
    """A migration that fits the topology and has not been carried out yet."""

    steps: tuple[str, ...]
    """Treatment of each node, as `keep totals`."""
    _folder: Folder
    _after: KeptState

    @classmethod
    def of(
        cls, folder: Folder, before: KeptState, program: Program, renames: Mapping[str, str], drops: Collection[str]
    ) -> Migration:
        """The migration of a state to a program; UsageError if the state would not fit it."""
        _check(before, program, renames, drops)
        names = {name: renames.get(name, name) for name in before.nodes if name not in drops}
        inner = {name: name for name in before.stores if name not in before.nodes}
        stores = {new: before.stores[name] for name, new in ({**inner, **names}).items() if _owner(name) not in drops}
        after = replace(
            before,
            nodes={new: before.nodes[name] for name, new in names.items()},
            inputs={new: before.inputs[name] for name, new in names.items()},
            stores=stores,
            dropped=sorted({*before.dropped, *before.stores.values()} - set(stores.values())),
        )
        now = KeptState.of(program, before.partitions, after)
        if misfits := after.misfits(now):
            msg = (
                f"the state would still not fit the topology ({'; '.join(misfits)}): use --drop NODE or "
                "--rename OLD=NEW for a node; for internal topics, give repartition() its former name, or a new one if "
                "its fields have changed"
            )
            raise UsageError(msg)
        steps = [f"keep {name}" if name == new else f"rename {name} to {new}" for name, new in names.items()]
        steps += [f"drop the state of {name}" for name in drops]
        steps += [f"begin {name} with empty state" for name in now.nodes if name not in after.nodes]
        return cls(tuple(steps), folder, after)

    def run(self) -> None:
        """Carries it out; the next run of the topology removes dropped state."""
        self._after.write(self._folder)


@contextmanager
def open_migration(
    config: Config, build: str, renames: Mapping[str, str], drops: Collection[str]
) -> Iterator[Migration]:
    """Plans a migration of the state of a topology to its present form, and locks the state meanwhile.

    Args:
        config: the configuration, for the data folder and Spark's settings.
        build: the function that builds the topology, as `module:function`.
        renames: new names of nodes, under their former ones.
        drops: former names of nodes whose state is thrown away.

    Raises:
        UsageError: there is no such function or node, or the state would still not fit.
        SetupError: the topology runs, or has no state.
    """
    find(build)
    with session.opened(config, 1) as spark:
        topology = read(build)
        folder = state_folder(config.section(TopologiesConfig).state, spark, topology.name)
        KeptState.existing(folder)
        lock = CheckpointLock(spark, config.embedded.data, folder, 0.0)
        try:
            # Read again: a run may have ended since.
            before = KeptState.existing(folder)
            program = planned(config.section(SchemaConfig), topology, spark, pinned=before.versions)
            yield Migration.of(folder, before, program, renames, drops)
        finally:
            lock.release()


def _check(before: KeptState, program: Program, renames: Mapping[str, str], drops: Collection[str]) -> None:
    present = {node.name: node for node in program.topology.nodes}
    if unknown := [name for name in (*renames, *drops) if name not in before.nodes]:
        msg = f"no state of {', '.join(unknown)}; there is state of: {', '.join(before.nodes)}"
        raise UsageError(msg)
    if both := [name for name in renames if name in drops]:
        msg = f"{', '.join(both)}: to be renamed and dropped; choose one"
        raise UsageError(msg)
    kept = [renames.get(name, name) for name in before.nodes if name not in drops]
    for old, new in renames.items():
        if new not in present:
            msg = f"--rename {old}={new}: the topology has no node '{new}'"
            raise UsageError(msg)
        if isinstance(present[new], GroupTable | JoinForeign):
            msg = (
                f"--rename {old}={new}: the internal topics of the node bear its name, and may have records that were "
                f"not read yet; keep the name '{old}', or use --drop {old}"
            )
            raise UsageError(msg)
        if kept.count(new) > 1:
            msg = f"--rename {old}={new}: another node keeps its state under this name; rename or drop that too"
            raise UsageError(msg)


def _owner(name: str) -> str:
    """The node to which a node of the program belongs: `joined` for `joined (partner)`."""
    return name.partition(" (")[0]
