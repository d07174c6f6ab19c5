"""Reset of a topology: its state, its internal topics and its positions are thrown away."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from engine.errors import SetupError
from engine.file_lock import is_locked
from engine.kafka.topology_topics import delete_topology_topics
from engine.topologies.run import state_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from routes.model import Config

__all__ = ["refuse_while_running", "reset_topology"]


def refuse_while_running(folder: Path) -> None:
    """Does nothing; SetupError if the topology with this folder runs."""
    lock = folder / "lock"
    if is_locked(lock):
        msg = f"topology '{folder.name}' runs (process {lock.read_text(encoding='utf-8').strip()}): stop it first"
        raise SetupError(msg)


def reset_topology(config: Config, name: str) -> Iterator[str]:
    """Throws away what a topology keeps; gives a line for each thing that is gone.

    Raises:
        SetupError: the topology runs.
        HardFailureError: Kafka refuses to delete something.
        UnreachableError: no broker answers.
    """
    folder = state_folder(config, name)
    refuse_while_running(folder)
    yield from delete_topology_topics(config, name)
    if folder.exists():
        shutil.rmtree(folder)
        yield f"state in {folder}"
