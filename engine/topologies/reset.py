"""Reset of a topology: its state, its internal topics and its positions are thrown away."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import SetupError
from engine.file_lock import is_locked
from engine.kafka.topology_topics import delete_topology_topics
from engine.spark.checkpoint_lock import lock_file
from engine.spark.stored_files import remove

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.spark.stored_files import Folder
    from routes.model import Config

__all__ = ["reset_topology"]


def reset_topology(config: Config, name: str) -> Iterator[str]:
    """Throws away what a topology keeps; gives a line for each thing that is gone.

    Raises:
        SetupError: the topology runs.
        HardFailureError: Kafka, or the file system of the state, refuses to delete something.
        UnreachableError: no broker answers, or the file system does not.
    """
    with _state(config, name) as folder:
        yield from delete_topology_topics(config, name)
        if folder.exists():
            remove(folder)
            yield f"state in {folder}"


@contextmanager
def _state(config: Config, name: str) -> Iterator[Folder]:
    """The folder of the state of a topology that does not run. At a URI it takes Spark to look there."""
    place = config.topology_folder
    if isinstance(place, Path):
        folder = place / name
        lock = lock_file(config, folder)
        if is_locked(lock):
            msg = f"topology '{name}' runs (process {lock.read_text(encoding='utf-8').strip()}): stop it first"
            raise SetupError(msg)
        yield folder
        return
    from engine.spark import session
    from engine.spark.checkpoint_lock import CheckpointLock
    from engine.topologies.run import state_folder

    with session.opened(config, 1) as spark:
        lock_of_state = CheckpointLock(spark, config, state_folder(config, spark, name), 0.0)
        yield lock_of_state.root
        lock_of_state.release()
