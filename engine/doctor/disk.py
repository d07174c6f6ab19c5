"""Checks the free space on the disks where a bridge writes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.doctor.findings import Finding, failed, ok, warning
from engine.doctor.folders import existing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["Room", "check_disks", "judge", "room"]

_MIB = 1 << 20
_GIB = 1 << 30
_LOW_BYTES, _TOO_LOW_BYTES = _GIB, 100 * _MIB
_LOW_INODES, _TOO_LOW_INODES = 10_000, 1_000
"""Free inodes, that is, new files: a checkpoint has some hundred, a dropbox one for each message."""


@dataclass(frozen=True, slots=True)
class Room:
    """Space of a file system that is left for a user without special rights."""

    free_bytes: int
    free_inodes: int | None
    """None: the file system makes inodes as they are needed."""


def check_disks(places: Mapping[str, Path]) -> Iterator[Finding]:
    """Yields a finding for each file system that one of the places is on, or would be; `places` maps uses to paths."""
    disks: dict[int, tuple[list[str], Path]] = {}
    for what, path in places.items():
        nearest = existing(path)
        disks.setdefault(nearest.stat().st_dev, ([], nearest))[0].append(what)
    for users, nearest in disks.values():
        yield judge(", ".join(users), nearest, room(nearest))


def room(path: Path) -> Room:
    """Returns the free space of the file system that a path is on."""
    found = os.statvfs(path)
    return Room(found.f_bavail * found.f_frsize, found.f_favail if found.f_files else None)


def judge(users: str, where: Path, room: Room) -> Finding:
    """Judges whether the free space is enough for `users`, which write there."""
    inodes = room.free_inodes
    files = "" if inodes is None else f", room for {inodes:,} files"
    what = f"{_size(room.free_bytes)} free{files} at {where} ({users})"
    remedy = "make room there: what is full stops the bridge, and damages nothing"
    if room.free_bytes < _TOO_LOW_BYTES or (inodes is not None and inodes < _TOO_LOW_INODES):
        return failed("disk", what, remedy)
    if room.free_bytes < _LOW_BYTES or (inodes is not None and inodes < _LOW_INODES):
        return warning("disk", what, remedy)
    return ok("disk", what)


def _size(number: int) -> str:
    return f"{number / _GIB:,.1f} GiB" if number >= _GIB else f"{number / _MIB:,.0f} MiB"
