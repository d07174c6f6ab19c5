"""Checks of the machine: limit of open files, clock, free space on disks, and ports to listen on."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from engine.doctor.checks import Finding, failed, ok, warning
from engine.doctor.folders import existing
from engine.embedded.ports import LOOPBACK, is_held_by, obstacle
from engine.file_lock import part_owner
from engine.limits import LEAST_FILES, REMEDY, files_allowed
from routes.systems import schemes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from routes.model import BrokerConfig, Config

__all__ = [
    "Room",
    "check_clock",
    "check_disks",
    "check_embedded_ports",
    "check_limits",
    "check_port",
    "free_bytes",
    "is_synchronised",
    "judge",
    "listening",
    "room",
]

_ERROR = 5
"""TIME_ERROR, which adjtimex(2) returns for a clock that is not synchronised."""
_MIB = 1 << 20
_GIB = 1 << 30
_LOW_BYTES, _TOO_LOW_BYTES = _GIB, 100 * _MIB
_LOW_INODES, _TOO_LOW_INODES = 10_000, 1_000
"""Free inodes, that is, new files: a checkpoint has some hundred, a dropbox one for each message."""


def check_limits() -> Iterator[Finding]:
    """Checks the limit of open files, RLIMIT_NOFILE."""
    allowed = files_allowed()
    if allowed < LEAST_FILES:
        yield failed("open files", f"only {allowed:,} at a time, and {LEAST_FILES:,} are needed", REMEDY)
    else:
        yield ok("open files", f"{allowed:,} at a time")


class _Timex(ctypes.Structure):
    """`struct timex` as far as it has to be right, and room for the rest: all zero, it asks and changes nothing."""

    _fields_ = (("modes", ctypes.c_uint), ("rest", ctypes.c_long * 64))


def check_clock() -> Iterator[Finding]:
    """Checks the clock; yields no finding if the system does not tell."""
    synchronised = is_synchronised()
    if synchronised:
        yield ok("clock", "the system's clock is synchronised")
    elif synchronised is False:
        remedy = "start chrony, ntpd or systemd-timesyncd; `timedatectl` shows whether it helps"
        yield warning("clock", "the system's clock is not synchronised", remedy)


def is_synchronised() -> bool | None:
    """Returns whether the kernel's clock is synchronised; None if this is not Linux, or the kernel does not answer."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "adjtimex"):
        return None
    answer: int = libc.adjtimex(ctypes.byref(_Timex()))
    return None if answer < 0 else answer != _ERROR


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


def free_bytes(places: Mapping[str, Path]) -> dict[str, int]:
    """The free space at each of the places, by its use; those that cannot be looked at are left out."""
    found = {}
    for what, path in places.items():
        with suppress(OSError):
            found[what] = room(existing(path)).free_bytes
    return found


def room(path: Path) -> Room:
    """Returns the free space of the file system that a path is on."""
    found = os.statvfs(path)
    return Room(found.f_bavail * found.f_frsize, found.f_favail if found.f_files else None)


def judge(users: str, where: Path, room: Room) -> Finding:
    """Judges whether the free space is enough for `users`, which write there."""
    inodes = room.free_inodes
    files = "" if inodes is None else f", room for {inodes:,} files"
    what = f"{_size(room.free_bytes)} free{files} at {where} ({users})"
    remedy = "make room there: a full disk stops the bridge, and damages nothing"
    if room.free_bytes < _TOO_LOW_BYTES or (inodes is not None and inodes < _TOO_LOW_INODES):
        return failed("disk", what, remedy)
    if room.free_bytes < _LOW_BYTES or (inodes is not None and inodes < _LOW_INODES):
        return warning("disk", what, remedy)
    return ok("disk", what)


def _size(number: int) -> str:
    return f"{number / _GIB:,.1f} GiB" if number >= _GIB else f"{number / _MIB:,.0f} MiB"


def check_embedded_ports(config: Config, *, running: bool) -> Iterator[Finding]:
    """Checks the ports of embedded servers; `running`: a bridge of this id runs, and may have started them.

    They are its own if the bridge that works in the same data folder holds them. Another one of the same id, or another
    program, is in the way.
    """
    embedded = config.embedded
    ports = {
        "kafka": {"embedded.kafka.port": embedded.kafka_port} if config.embedded_kafka else {},
        "artemis": {
            "embedded.artemis.port": embedded.artemis_port,
            "embedded.stomp.port": embedded.stomp_port,
            "embedded.amqp.port": embedded.amqp_port,
        }
        if config.embedded_artemis
        else {},
        "nats": {"embedded.nats.port": embedded.nats_port} if config.embedded_nats else {},
    }
    for part, listeners in ports.items():
        owner = part_owner(embedded.data, part)
        for setting, port in listeners.items():
            is_own = running and owner is not None and is_held_by(port, owner)
            yield check_port(setting, LOOPBACK, port, running=is_own)


def check_port(setting: str, host: str, port: int, *, running: bool) -> Finding:
    """Checks one port; `setting` is the key that sets it; `running`: the bridge itself holds it if it is taken."""
    why = obstacle(host, port)
    if why is None:
        return ok(setting, f"port {port} is free")
    if running:
        return ok(setting, f"{why}: the bridge runs")
    return failed(setting, why, f"stop that program, or set {setting} to another address or port")


def listening(broker: BrokerConfig) -> tuple[str, int]:
    """Returns host and port of a source or sink that listens."""
    parts = urlsplit(broker.listen or "")
    return parts.hostname or LOOPBACK, parts.port or schemes_of([broker.type])[parts.scheme].port
