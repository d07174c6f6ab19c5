"""The parts and routes that an operator has paused: `jms-bridge pause | resume`. They stay so through a restart."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from threading import Lock
from typing import TYPE_CHECKING

import structlog

from engine.errors import SetupError
from engine.printable import shortened
from engine.private import create_file, make_folder
from engine.times import iso

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["ROUTE", "Pause", "Pauses"]

ROUTE = "route:"
"""Beginning of the name under which a route is paused."""
_LONGEST_NAME = 200
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Pause:
    """The user who has paused a part, and the time."""

    by: str
    """User and host; chosen by the client."""
    since: str
    """ISO 8601 in UTC."""

    def __str__(self) -> str:
        return f"paused by {self.by} at {self.since}" if self.by else f"paused at {self.since}"


class Pauses:
    """The paused parts of a bridge, in a file of its data folder. Safe from any thread."""

    def __init__(self, file: Path | None = None) -> None:
        """Reads the file, if it exists; without a file the pauses end with the process.

        Raises:
            SetupError: the file is damaged or cannot be read.
        """
        self._file = file
        self._lock = Lock()
        self._parts = {} if file is None else _read(file)

    @property
    def routes(self) -> Mapping[str, Pause]:
        """The paused routes by their names."""
        parts = self._parts
        return {part.removeprefix(ROUTE): pause for part, pause in parts.items() if part.startswith(ROUTE)}

    def find(self, part: str) -> Pause | None:
        """The pause of a part; None if it is not paused."""
        return self._parts.get(part)

    def add(self, parts: Iterable[str], by: str) -> None:
        """Pauses parts; SetupError if the file cannot be written."""
        pause = Pause(shortened(by, _LONGEST_NAME), iso(int(time.time() * 1000)))
        with self._lock:
            self._keep({**dict.fromkeys(parts, pause), **self._parts})
        _log.info("parts are paused on request", components=sorted(parts), by=pause.by)

    def remove(self, parts: Iterable[str], by: str) -> None:
        """Ends the pauses of parts; SetupError if the file cannot be written."""
        gone = frozenset(parts)
        with self._lock:
            self._keep({part: pause for part, pause in self._parts.items() if part not in gone})
        _log.info("parts are resumed on request", components=sorted(gone), by=shortened(by, _LONGEST_NAME))

    def _keep(self, parts: dict[str, Pause]) -> None:
        if self._file is not None:
            try:
                _write(self._file, parts)
            except OSError as error:
                msg = f"{self._file} cannot be written, so nothing is paused or resumed: {error.strerror or error}"
                raise SetupError(msg) from error
        self._parts = parts


def _write(file: Path, parts: Mapping[str, Pause]) -> None:
    make_folder(file.parent)
    fresh = file.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with create_file(fresh) as opened:
        json.dump({part: asdict(pause) for part, pause in parts.items()}, opened, indent=2)
        opened.flush()
        os.fsync(opened.fileno())
    fresh.replace(file)


def _read(file: Path) -> dict[str, Pause]:
    try:
        return {str(part): Pause(**pause) for part, pause in json.loads(file.read_text(encoding="utf-8")).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        msg = f"{file}, which names the paused parts, cannot be read ({error}): delete it to start all parts"
        raise SetupError(msg) from error
