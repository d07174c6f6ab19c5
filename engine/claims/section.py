"""Section `claim-check` of a configuration: the files of bodies that are too large for topics."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from routes.keys.table import key
from routes.keys.values import PLACE, duration
from routes.section_registry import Section

if TYPE_CHECKING:
    from routes.keys.settings import Settings

__all__ = ["SECTION", "ClaimCheckConfig"]

_FOLDER = "claim-check.folder"
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
        "claim-check.keep",
        duration("1d", "3650d"),
        "Time for which a body is kept: the router removes the files of a UTC day when that day is over for so long. "
        "Longer than the retention of the topics that the claims are in, dead-letter topic included.",
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
    if settings.is_set("claim-check.keep"):
        settings.fault("claim-check.keep", "", "nothing is kept without a folder", f"set {_FOLDER}, or remove this")


SECTION = Section(
    about="The files of bodies that are too large for topics: [claim checks](routing.md#claim-checks).",
    settings=ClaimCheckConfig,
    checks=(folder_of_claims,),
)
