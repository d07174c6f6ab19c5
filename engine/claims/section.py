"""Section `claim-check` of a configuration: the files of bodies that are too large for topics."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from routes.errors import Level
from routes.keys.table import key
from routes.keys.values import PLACE, duration
from routes.section_registry import Section

if TYPE_CHECKING:
    from routes.keys.settings import Settings

__all__ = ["SECTION", "ClaimCheckConfig"]

_FOLDER, _KEEP = "claim-check.folder", "claim-check.keep"
_RETENTION = "journal.retention"
_ABOVE = "routes.NAME.out.claim-check-above"


@dataclass(frozen=True, slots=True)
class ClaimCheckConfig:
    """`claim-check.*`: the files of bodies that are too large for topics."""

    folder: Path | str | None = key(
        _FOLDER,
        PLACE,
        "Directory of the bodies that routes keep as files (`routes.NAME.out.claim-check-above`). A relative path "
        "begins at this file; a URI such as `hdfs://host:8020/bodies` is of a file system that Hadoop knows. Router, "
        "executors, sinks and consumers have to reach the same one.",
        example="/srv/bodies",
    )
    """A local path, or the URI of a folder on a file system of Hadoop; None: no route keeps bodies as files."""
    keep_seconds: float = key(
        _KEEP,
        duration("1d", "3650d"),
        "Time for which a body is kept: the router removes the files of a UTC day when this time has passed since its "
        "end. It has to be longer than the retention of the topics that the claims are in, dead-letter topic included.",
        default="14d",
    )

    @property
    def place(self) -> str | None:
        """The folder as text: an absolute path, or a URI."""
        return str(self.folder.absolute()) if isinstance(self.folder, Path) else self.folder


def folder_of_claims(settings: Settings) -> None:
    """Checks that there is a folder for the bodies that routes keep as files."""
    if settings.is_set(_FOLDER):
        return
    for name in settings.names("routes"):
        if settings.is_set(_ABOVE, name):
            hint = f"as in {_FOLDER}=/srv/bodies"
            settings.fault(_ABOVE, name, f"route '{name}' keeps bodies as files, and there is no folder for them", hint)
    if settings.is_set(_KEEP):
        settings.fault(_KEEP, "", "nothing is kept without a folder", f"set {_FOLDER}, or remove this")


def bodies_that_outlive_records(settings: Settings) -> None:
    """Warns of bodies that are removed before the records of sink topics, which have claims on them."""
    keep, retention = settings.get(_KEEP), settings.get(_RETENTION)
    entry = settings.entry(_KEEP) or settings.entry(_RETENTION)
    if not settings.is_set(_FOLDER) or entry is None or keep is None or retention is None:
        return
    if not 0 <= retention <= keep:
        message = f"topics of sinks keep records as long as {_RETENTION}, and {_KEEP} removes their bodies before"
        settings.faults.append(entry.fault(message, f"make {_KEEP} longer", level=Level.WARNING))


SECTION = Section(
    about="The files of bodies that are too large for topics: [claim checks](routing.md#claim-checks).",
    settings=ClaimCheckConfig,
    checks=(folder_of_claims, bodies_that_outlive_records),
)
