"""Records that a topology was processing when its JVM ended, noted so that one that ends it again and again is told.

The JVM notes the record under way of each share in a file, which outlives it (`jmsbridge.streams.RecordMark`). After a
death these are counted: a record that was under way each time is most likely what the JVM ends by. On a Spark cluster
the records are processed in executors on other machines, and there are no such notes.
"""

from __future__ import annotations

import json
import shutil
import struct
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from engine.errors import ServerEndedError
from engine.kafka.reader import Position
from engine.private import make_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


__all__ = ["Deaths", "told_deaths"]

_HEAD = struct.Struct(">qi")
_COUNTS = "deaths.json"


class Deaths:
    """Deaths of the JVM of a topology since its last orderly end, by the records that were under way."""

    def __init__(self, data: Path, name: str) -> None:
        """Looks after the topology `name`; `data` is the folder of the bridge's own files (`embedded.data`)."""
        self._name = name
        self._folder = data / "under-way" / name

    @property
    def marks(self) -> Path:
        """Folder in which the JVM notes the records under way."""
        return self._folder / "marks"

    def note(self) -> str:
        """Counts a death, if records were under way at it, and says which; empty if there were none."""
        positions = self._under_way()
        if not positions:
            return ""
        before = self._counts()
        counts = {position: before.get(position, 0) + 1 for position in positions}
        make_folder(self._folder)
        (self._folder / _COUNTS).write_text(json.dumps(counts), encoding="utf-8")
        shutil.rmtree(self.marks, ignore_errors=True)
        most_deaths = max(counts.values())
        suspects = [position for position, count in counts.items() if count == most_deaths]
        if most_deaths == 1:
            return f"it was processing {', '.join(suspects)}"
        commands = ", ".join(f"`jms-bridge topology skip {self._name} {position}`" for position in suspects)
        return (
            f"it has ended {most_deaths} times while it was processing {', '.join(suspects)}. "
            f"If the reason cannot be removed, set the record aside: {commands}"
        )

    def forget(self) -> None:
        """Forgets all deaths, after an orderly end."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _under_way(self) -> list[str]:
        positions = []
        with suppress(FileNotFoundError):
            for path in sorted(self.marks.iterdir()):
                data = path.read_bytes()
                if len(data) < _HEAD.size:
                    continue
                offset, length = _HEAD.unpack_from(data)
                if offset >= 0:
                    topic = data[_HEAD.size : _HEAD.size + length].decode("utf-8", "replace")
                    positions.append(str(Position(topic, int(path.name), offset)))
        return positions

    def _counts(self) -> dict[str, int]:
        with suppress(FileNotFoundError, ValueError):
            counts = json.loads((self._folder / _COUNTS).read_text(encoding="utf-8"))
            if isinstance(counts, dict):
                return counts
        return {}


@contextmanager
def told_deaths(data: Path) -> Iterator[list[str]]:
    """Adds the records under way to the error of a JVM that has ended or is about to.

    Gives a list that takes the names of the topologies; `data` is as for `Deaths`.

    Raises:
        ServerEndedError: the JVM has ended while records were under way.
    """
    names: list[str] = []
    try:
        yield names
    except (ServerEndedError, RuntimeError, Py4JError) as error:
        notes = "".join(Deaths(data, name).note() for name in names)
        if not notes:
            raise
        # A call that a JVM cuts off while it ends fails with nothing but its own name.
        what = "Spark's Java process has ended" if isinstance(error, Py4JError) else error
        msg = f"{what}; {notes}"
        raise ServerEndedError(msg) from error
