"""Look into the state of a topology, as its last committed batch left it, whether the topology runs or not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from engine.errors import SetupError, UsageError
from engine.spark import session
from engine.streams.program import JVM_ERRORS, reason_of
from engine.streams.state import NodeState
from engine.topologies.definition import find, read
from engine.topologies.registry import planned
from engine.topologies.run import FINGERPRINTS, state_folder

if TYPE_CHECKING:
    from pathlib import Path

    from routes.model import Config

__all__ = ["state_rows"]


def state_rows(config: Config, build: str, node: str, key: str | None, limit: int) -> list[dict[str, Any]]:
    """Rows of a node's state, of one key or of all.

    Args:
        config: the configuration, for the data folder and Spark's settings.
        build: the function that builds the topology, as `module:function`.
        node: name of a node with state.
        key: text of the key; None: all keys.
        limit: most rows.

    Raises:
        UsageError: there is no such function, or the node keeps no state that can be shown.
        SetupError: the topology has no state yet.
    """
    find(build)
    spark = session.start(config, 1)
    try:
        topology = read(build)
        folder = state_folder(config, topology.name)
        version = _committed(folder)
        counts = json.loads((folder / FINGERPRINTS).read_text(encoding="utf-8"))["partitions"]
        program = planned(config.schema, topology, spark)
        jvm = spark._jvm
        assert jvm is not None
        where: Any = ((folder / "state").absolute().as_uri(), max(counts.values()), version)

        def look(wanted: bytes | None, most: int) -> bytes:
            query: Any = jvm.jmsbridge.streams.StateQuery
            return bytes(query.state(program.java, *where, node, wanted, most))

        try:
            return NodeState(look).rows(key, limit=limit)
        except JVM_ERRORS as error:
            raise UsageError(reason_of(error)) from error
    finally:
        session.close(spark)


def _committed(folder: Path) -> int:
    """Number of committed batches of the topology with this folder."""
    numbers = [int(path.name) for path in (folder / "spark" / "commits").glob("*") if path.name.isdecimal()]
    if not numbers:
        msg = f"no state in {folder}: the topology has not run yet, or committed nothing"
        raise SetupError(msg)
    return max(numbers) + 1
