"""Folders of DropboxMQ as a producer and a consumer see them, without a line of the bridge's own code."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FOLDERS = ("working", "target", "processing", "processed", "routing", "expired", "error")


class Dropboxes:
    """A root with what is in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(exist_ok=True)

    def queue(self, name: str) -> Path:
        """The seven folders of a queue, which are made where they are missing."""
        return self._made(self.root / name / "incoming")

    def topic(self, name: str) -> Path:
        """Those in which producers put messages of a topic."""
        return self._made(self.root / "topic-root" / name / ".incoming")

    def subscription(self, topic: str, name: str) -> Path:
        """Those of a subscription, `SUB.CLIENT`."""
        return self._made(self.root / "topic-root" / topic / ".subscriptions" / name)

    def put(self, box: Path, files: Mapping[str, bytes]) -> None:
        """As a producer does."""
        for name, body in files.items():
            (box / "working" / name).write_bytes(body)
            (box / "working" / name).rename(box / "target" / name)

    def unmount(self) -> None:
        self.root.rename(f"{self.root}.away")

    def mount(self) -> None:
        os.rename(f"{self.root}.away", self.root)  # noqa: PTH104 # its Path is that of where it will be

    @staticmethod
    def _made(box: Path) -> Path:
        for folder in FOLDERS:
            (box / folder).mkdir(parents=True, exist_ok=True)
        return box


def files(folder: Path) -> list[str]:
    """The files in a folder and in those below it, in the order in which consumers take them."""
    found = [entry.name for entry in folder.rglob("*") if entry.is_file() and entry.name != ".lock"]
    return sorted(
        found, key=lambda name: (-int(name.split(".")[0]) if name[:1].isdigit() else -4, name.split(".")[1:2])
    )


def headers(name: str) -> dict[str, str]:
    """What a file name says, properties under their names."""
    fields = name.split(".", 7) + [""] * 8
    names = ("priority", "id", "class", "expiration", "correlation-id", "reply-to", "type")
    found = {name: unquote_plus(value) for name, value in zip(names, fields, strict=False)}
    for pair in fields[7].split("&") if fields[7] else ():
        key, _, value = pair.partition("=")
        found[unquote_plus(key)[:-1]] = unquote_plus(value)
    return found
