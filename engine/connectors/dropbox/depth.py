"""Depth of the dropboxes of a source: files that wait, or that the source has taken and not finished."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from engine.connectors.base import NotConnectedError
from engine.connectors.dropbox.box import LOCK
from engine.connectors.dropbox.folder import reason
from engine.connectors.dropbox.pending_files import UNFINISHED
from engine.connectors.dropbox.source import boxes_of, owner_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.connectors.dropbox.settings import DropboxSourceConfig
    from engine.connectors.endpoint import SystemEndpoint

__all__ = ["DropboxDepth"]


class DropboxDepth:
    """Counter of the files in the folders of each queue and subscription."""

    def __init__(self, endpoint: SystemEndpoint[DropboxSourceConfig]) -> None:
        """Creates the depth without touching the file system."""
        self._endpoint = endpoint

    def ask(self) -> int:
        """See `Depth`; a folder that is missing has no files."""
        try:
            return sum(_files(folder) for folder in self._folders())
        except OSError as error:
            raise NotConnectedError(reason(error)) from error

    def close(self) -> None:
        """Does nothing."""

    def _folders(self) -> Iterator[Path]:
        slots = f"{owner_of(self._endpoint)}."
        for own, topic in boxes_of(self._endpoint):
            box = Path(own.path)
            yield box / "target"
            if topic is not None:
                # Messages of a topic that are not yet in the folder of the subscription.
                yield Path(topic.path) / "target"
            processing = box / "processing"
            if processing.is_dir():
                yield from (each for each in processing.iterdir() if each.name.startswith(slots))


def _files(folder: Path) -> int:
    try:
        with os.scandir(folder) as entries:
            return sum(
                each.is_file(follow_symlinks=False) and each.name != LOCK and not each.name.startswith(UNFINISHED)
                for each in entries
            )
    except FileNotFoundError:
        return 0
