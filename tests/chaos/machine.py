"""Faults of the machine: a small disk that can be full, and a clock that can be set. Both without rights of root."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.chaos.ledger import KAFKA

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.chaos.system import System

__all__ = ["ClockJump", "DiskFull", "SmallDisk"]

_MOUNT = 'mount -t tmpfs -o size="$1" chaos "$2" && echo mounted && exec sleep infinity'
_PIECE = b"\0" * 4096
_CLOCK = Path(__file__).with_name("clock.c")


class SmallDisk:
    """A file system in memory that only the processes behind `launcher` see, for as long as this is open.

    It is mounted by a user who is root in a namespace of his own, and nowhere else.
    """

    def __init__(self, folder: Path, size: str) -> None:
        """Mounted on `folder`; `size` as mount(8) takes it."""
        folder.mkdir(parents=True, exist_ok=True)
        namespace = ["unshare", "--map-root-user", "--mount"]
        self._holder = subprocess.Popen(
            [*namespace, "sh", "-c", _MOUNT, "sh", size, str(folder)], stdout=subprocess.PIPE, text=True
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "mounted\n"
        self._filler = Path(f"/proc/{self._holder.pid}/root{folder}/filler")

    @staticmethod
    def is_possible() -> bool:
        """Whether this system lets its users have namespaces."""
        unshare = shutil.which("unshare")
        if unshare is None or shutil.which("nsenter") is None:
            return False
        return subprocess.run([unshare, "--map-root-user", "--mount", "true"], check=False).returncode == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._holder.kill()
        self._holder.communicate()

    @property
    def launcher(self) -> Sequence[str]:
        """Becomes the command behind it, on a machine that has this disk."""
        return ("nsenter", "--user", "--mount", "--preserve-credentials", "--target", str(self._holder.pid))

    def fill(self) -> None:
        """To the last byte."""
        with self._filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(_PIECE)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise

    def free(self) -> None:
        """Takes away what `fill` has written."""
        with suppress(FileNotFoundError):
            self._filler.unlink()


@dataclass(frozen=True, slots=True)
class DiskFull:
    """A disk without room for some seconds. A bridge that has ended over it is started again when there is room."""

    disk: SmallDisk
    name: str
    seconds: float = 20.0
    witness: str = f"{KAFKA}.stomp"

    def inject(self, _: System) -> None:
        self.disk.fill()

    def mend(self, system: System) -> None:
        self.disk.free()
        if not system.bridge.running:
            system.bridge.start()


@dataclass(frozen=True, slots=True)
class ClockJump:
    """The clock of the whole bridge jumps, and after some seconds jumps back."""

    file: Path
    """Where `clock.c` reads how far the clock is ahead."""
    by_seconds: int
    seconds: float = 20.0
    witness: str = f"{KAFKA}.stomp"

    @property
    def name(self) -> str:
        return f"set the clock {self.by_seconds:+} s"

    @staticmethod
    def environment(folder: Path, file: Path) -> Mapping[str, str]:
        """For a bridge whose clock is to be set; what is compiled for it goes to `folder`."""
        library = folder / "clock.so"
        command = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", str(library), str(_CLOCK), "-ldl"]
        subprocess.run(command, check=True)
        _set(file, 0)
        return {"LD_PRELOAD": str(library), "CLOCK_AHEAD": str(file)}

    def inject(self, _: System) -> None:
        _set(self.file, self.by_seconds)

    def mend(self, _: System) -> None:
        _set(self.file, 0)


def _set(file: Path, seconds: int) -> None:
    # In place: the processes have the file mapped into their memory.
    with os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT), "r+b") as clock:
        clock.write(seconds.to_bytes(8, sys.byteorder, signed=True))
