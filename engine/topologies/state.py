"""State of a topology as its last committed batch left it, whether the topology runs or not."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.errors import SetupError
from engine.schemas.section import SchemaConfig
from engine.spark import session
from engine.topologies.runtime.definition import find, read
from engine.topologies.runtime.kept import KeptState, state_folder
from engine.topologies.runtime.registry import planned
from engine.topologies.runtime.state_reader import StateReader
from engine.topologies.section import TopologiesConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.topologies.library.state import NodeState
    from routes.model import Config

__all__ = ["open_state"]


@contextmanager
def open_state(config: Config, build: str, node: str) -> Iterator[NodeState]:
    """Opens the state of a node, as the last commit leaves it now; later commits are not in it.

    Args:
        config: the configuration, for the data folder and Spark's settings.
        build: the function that builds the topology, as `module:function`.
        node: name of a node with state.

    Raises:
        UsageError: there is no such function.
        StateError: the node keeps no state that can be shown.
        SetupError: the topology has no state yet, or that of another version of it.
    """
    find(build)
    with session.opened(config, 1) as spark:
        topology = read(build)
        folder = state_folder(config.section(TopologiesConfig).state, spark, topology.name)
        before = KeptState.existing(folder)
        program = planned(config.section(SchemaConfig), topology, spark, pinned=before.versions)
        kept = KeptState.of(program, before.partitions, before)
        if misfits := before.misfits(kept):
            msg = f"the state in {folder} is that of another version of the topology ({'; '.join(misfits)})"
            raise SetupError(msg)
        kept.place(program)
        with StateReader(spark, program, kept, folder).open(node) as found:
            yield found
