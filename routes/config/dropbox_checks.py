"""Checks of sources and sinks of type dropbox: a root is a folder, and so is a destination."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from routes.targets import ADDRESSES, System

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from routes.config.binding import Settings

__all__ = ["DROPBOX_CHECKS"]

_DESTINATION = re.compile(rf"(?=queue:|topic:)(?:{ADDRESSES[System.DROPBOX].pattern})")


def root_is_a_folder(settings: Settings) -> None:
    """Checks that a root is no file. It may be missing for now, like a disk that is not mounted."""
    for section, name in _dropboxes(settings):
        root: Path | None = settings.get(f"{section}.NAME.root", name)
        if root is not None and settings.has_file(root):
            settings.fault(f"{section}.NAME.root", name, f"'{root}' is a file", "name the folder of the dropboxes")


def destinations(settings: Settings) -> None:
    """Checks that destinations of a source are queues and topics whose names can be those of folders."""
    for section, name in _dropboxes(settings):
        entry = settings.entry("source.NAME.destinations", name) if section == "source" else None
        for destination in (entry and settings.get("source.NAME.destinations", name)) or ():
            if entry is not None and not _DESTINATION.fullmatch(destination):
                message = f"'{destination}' is not a dropbox"
                hint = "as in queue:orders or topic:prices.eu; a name holds no '/' and begins with no '.'"
                settings.faults.append(entry.fault(message, hint, max(entry.value.find(destination), 0)))


def _dropboxes(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yields section and NAME of each source and sink of type dropbox."""
    for section in ("source", "sink"):
        for name in settings.names(section):
            if settings.get(f"{section}.NAME.type", name) is System.DROPBOX:
                yield section, name


DROPBOX_CHECKS = (root_is_a_folder, destinations)
