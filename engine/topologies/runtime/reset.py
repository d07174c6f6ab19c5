"""Reset of a topology: its state, its internal topics and its positions are thrown away.

The topics are those that the state notes, or those of the definition where the state is gone. A note in the state's
folder lists the things to delete until all are gone, so that the next reset finishes one that was cut short.
"""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import SetupError, UsageError
from engine.file_lock import held
from engine.kafka.clients import KafkaClients
from engine.kafka.topology_topics import delete_topology_topics
from engine.spark.checkpoint_lock import CheckpointLock, lock_file
from engine.spark.stored_files import remove, write
from engine.topologies.runtime.kept import RESET_NOTE, KeptState, tables_folder
from engine.topologies.section import TopologiesConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from engine.spark.stored_files import Folder
    from routes.model import Config

__all__ = ["reset_topology"]


def reset_topology(config: Config, name: str) -> Iterator[str]:
    """Throws away the state of a topology; gives a line for each thing removed.

    Args:
        config: the configuration, for Kafka and the folder of the state.
        name: the name of the topology, or its function as `module:function`, which is needed where the state is gone.

    Raises:
        UsageError: there is no state of a topology of that name, or no such function.
        SetupError: the topology runs.
        HardFailureError: Kafka, or the file system of the state, refuses to delete something.
        UnreachableError: no broker answers, or the file system does not.
    """
    with ExitStack() as stack:
        spark: SparkSession | None = None
        place: Folder
        states = config.section(TopologiesConfig).state
        if ":" in name or not isinstance(states, Path):
            from engine.spark import session
            from engine.spark.hadoop_path import opened

            spark = stack.enter_context(session.opened(config, 1))
            place = opened(spark, states)
        else:
            place = states
        name, defined = _defined(name) if ":" in name else (name, None)
        folder = place / name
        had_state = folder.exists()
        if defined is None and not had_state:
            raise UsageError(_unknown(name, place))
        _lock(stack, config.embedded.data, spark, folder)
        topics = _topics(folder, defined)
        write(folder / RESET_NOTE, json.dumps(topics))
        yield from delete_topology_topics(KafkaClients(config.kafka_access), name, topics)
        _remove(folder)
        shutil.rmtree(tables_folder(config.embedded.data, name), ignore_errors=True)
        if had_state:
            yield f"state in {folder}"


def _defined(build: str) -> tuple[str, list[str]]:
    """Name and internal topics of the topology that a function builds; a Spark session is running."""
    from engine.topologies.runtime.definition import read

    topology = read(build)
    return topology.name, [topic for node in topology.nodes for topic in topology.internal_topics(node)]


def _unknown(name: str, place: Folder) -> str:
    try:
        known = sorted(each.name for each in place.iterdir() if (each / "lock").exists() or KeptState.is_in(each))
    except FileNotFoundError:
        known = []
    return (
        f"{place} has no state of a topology '{name}', only of: {', '.join(known) or 'none'}. Where the state is gone, "
        "give the function of the topology in place of its name: jms-bridge topology reset module:function"
    )


def _lock(stack: ExitStack, data: Path, spark: SparkSession | None, folder: Folder) -> None:
    """Keeps the topology from running, until the stack ends; SetupError if it runs."""
    if spark is not None:
        stack.callback(CheckpointLock(spark, data, folder, 0.0).release)
        return
    file = lock_file(data, folder)
    if not stack.enter_context(held(file)):
        msg = f"topology '{folder.name}' runs (process {file.read_text(encoding='utf-8').strip()}): stop it first"
        raise SetupError(msg)


def _topics(folder: Folder, defined: list[str] | None) -> list[str]:
    """The internal topics of a topology: of its state, or of a reset that was cut short, and of its definition.

    Raises:
        SetupError: the state does not tell them, and there is no definition.
    """
    names = set(defined or ())
    if (folder / RESET_NOTE).exists():
        names |= set(json.loads((folder / RESET_NOTE).read_text(encoding="utf-8")))
    elif defined is None or KeptState.is_in(folder):
        try:
            kept = KeptState.read(folder)
        except SetupError as error:
            if defined is None:
                msg = f"{error}; its function tells the topics to delete: jms-bridge topology reset module:function"
                raise SetupError(msg) from error
            kept = None
        names |= set(kept.topics if kept is not None else ())
    return sorted(names)


def _remove(folder: Folder) -> None:
    """Removes the state, and last the note."""
    entries: list[Folder] = list(folder.iterdir())
    for each in entries:
        if each.name not in (RESET_NOTE, "lock"):
            remove(each)
    remove(folder)
