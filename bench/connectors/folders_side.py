"""The other side of dropboxes: folders that are filled, emptied and counted."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ["Folders"]

_LOOK_SECONDS = 0.5
"""Between two counts of a folder, each of which takes some hundredths of a second."""
_BEGUN = 1_795_240_301_012_000


class Folders:
    """Folders of one queue."""

    def __init__(self, root: Path, queue: str) -> None:
        self.root = root
        self.box = root / queue / "incoming"
        self._counted, self._look_at = 0, 0.0

    def make(self) -> None:
        """Empty, with the folders that a bare loop needs; the bridge makes the others."""
        shutil.rmtree(self.box, ignore_errors=True)
        for name in ("working", "target", "processing", "processed"):
            (self.box / name).mkdir(parents=True)
        self._counted, self._look_at = 0, 0.0

    def remove(self) -> None:
        """The queue goes with all its files."""
        shutil.rmtree(self.box.parent)

    def fill(self, headers: Callable[[int], Mapping[str, str]], body: bytes, count: int) -> None:
        """Puts `count` files into the queue."""
        for number in range(count):
            (self.box / "target" / _filename(number, headers(number))).write_bytes(body)

    def refill(self) -> None:
        """Moves processed files back, so that they wait again."""
        for file in list((self.box / "processed").iterdir()):
            file.rename(self.box / "target" / file.name)

    def count(self, folder: str) -> int:
        """Files in a folder; what was counted a moment ago may be told again."""
        if time.monotonic() > self._look_at:
            self._counted = sum(1 for _ in (self.box / folder).iterdir())
            self._look_at = time.monotonic() + _LOOK_SECONDS
        return self._counted


def _filename(number: int, headers: Mapping[str, str]) -> str:
    own = {name: value for name, value in headers.items() if not name.startswith("JMS")}
    pairs = "&".join(f"{name}S={quote_plus(value).replace('.', '%2E')}" for name, value in own.items())
    return f"4.{_BEGUN + number}-{number}.T..{headers['JMSCorrelationID']}..{headers['JMSType']}.{pairs}"
