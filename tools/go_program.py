"""Programs that set-up builds from the Go modules in `tools/`, or takes from the system where it cannot build them."""

from __future__ import annotations

import hashlib
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from engine.private import make_folder
from tools import machine
from tools.readers import go_cause, go_reader
from tools.step import Step, StepError

__all__ = ["SYSTEM_PROGRAMS", "GoProgram"]

SYSTEM_PROGRAMS = "/usr/sbin"
"""Folder of Debian's servers, which only root has in PATH."""


@dataclass(frozen=True, slots=True)
class GoProgram:
    """Program whose source and hashes `go.mod` and `go.sum` of a module pin."""

    name: str
    """File name of the program."""
    title: str
    """Name of the program for people."""
    package: str
    """Go package of its main function."""
    module: Path
    """Folder of the Go module in `tools/`."""
    folder: Path
    """Folder of the program that was built."""
    log: Path
    """Log of set-up."""
    remedy: str = ""
    """What a user can do without Go, after `; or `."""

    @property
    def missing(self) -> Path:
        """File with the reason why there is no such program, for tests."""
        return self.folder / "missing"

    def fingerprint(self) -> str:
        """Changes with the pinned version, its own dependencies and their hashes."""
        total = hashlib.sha256()
        for file in (self.module / "go.mod", self.module / "go.sum"):
            total.update(f"\ntools/{self.module.name}/{file.name}\n".encode() + file.read_bytes())
        return total.hexdigest()

    def existing(self) -> Path | None:
        """Program built earlier, even with older pins, or one of the system; None if there is neither."""
        if (self.folder / self.name).exists():
            return self.folder / self.name
        found = shutil.which(self.name) or shutil.which(self.name, path=SYSTEM_PROGRAMS)
        return Path(found) if found else None

    def set_up(self) -> None:
        """Builds the program; where that fails, one of the system is used, with a note.

        Raises:
            StepError: there is neither.
        """
        try:
            self._build()
        except StepError as error:
            found = self.existing()
            if found is None:
                raise StepError(self._without(error)) from error
            print(f"{found} will be used: {error}", file=sys.stderr)

    def try_set_up(self) -> None:
        """Builds the program for the tests, or uses one of the system; without any, `missing` tells them the reason."""
        try:
            self._build()
        except StepError as error:
            if self.existing() is None:
                self.folder.mkdir(exist_ok=True)
                self.missing.write_text(self._without(error))
                print(f"some tests will be skipped: {self._without(error)}", file=sys.stderr)

    def _without(self, error: StepError) -> str:
        return f"no {self.name}: {error}" + (f"; or {self.remedy}" if self.remedy else "")

    def _build(self) -> None:
        """Builds into a file beside, so that a failure changes nothing; StepError when there is no Go or it fails."""
        pins, stamp = self.fingerprint(), self.folder / ".ready"
        if stamp.exists() and stamp.read_text() == pins:
            return
        if fault := machine.go():
            raise StepError(fault)
        self.folder.mkdir(exist_ok=True)
        make_folder(self.log.parent)
        fresh = self.folder / f"{self.name}.new"
        command: list[str | Path] = ["go", "build", "-v", "-trimpath", "-o", fresh, self.package]
        Step(self.title, self.log, go_reader, go_cause).run(command, self.module)
        fresh.rename(self.folder / self.name)
        self.missing.unlink(missing_ok=True)
        stamp.write_text(pins)
