"""State of a topology: as its last commit left it, whether the topology runs or not, or as it is now."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.errors import SetupError
from engine.schemas.section import SchemaConfig
from engine.spark import session
from engine.telemetry.http_section import HttpConfig
from engine.topologies.live import LiveNodeState, name_of_part
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
def open_state(config: Config, build: str, node: str, *, live: bool = False) -> Iterator[NodeState]:
    """Opens the state of a node: as the last commit leaves it now, or as it is at each question.

    Args:
        config: the configuration, for the data folder and Spark's settings.
        build: the function that builds the topology, as `module:function`.
        node: name of a node with state.
        live: True for all that is processed, which the bridge of this configuration is asked for; False for the last
            commit, without the later ones.

    Raises:
        UsageError: there is no such function, or, with `live`, not one topology of the configuration that it builds.
        StateError: the node keeps no state that can be shown.
        SetupError: the topology has no state yet, or that of another version of it.
        UnreachableError: with `live`, no bridge answers, or it does not run the topology.
    """
    if live:
        yield LiveNodeState(config.section(HttpConfig), name_of_part(config.section(TopologiesConfig), build), node)
        return
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
