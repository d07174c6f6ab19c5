"""Loopback ports: checks whether one is free, finds the process that holds it, and finds free ones for tests."""

from __future__ import annotations

import contextlib
import errno
import random
import socket
from pathlib import Path

import psutil

from engine.errors import SetupError

__all__ = ["LOOPBACK", "accepts", "free_ports", "holder", "holder_id", "is_held_by", "obstacle", "require_free"]

LOOPBACK = "127.0.0.1"

_BELOW_EPHEMERAL = range(20_000, 32_000)
_LISTENING = "0A"
_TAKEN = (errno.EADDRINUSE, errno.EACCES)


def free_ports(count: int) -> tuple[int, ...]:
    """Finds `count` distinct free ports in a range that the system does not use for outgoing connections."""
    candidates = random.sample(_BELOW_EPHEMERAL, len(_BELOW_EPHEMERAL))
    found: list[int] = []
    for port in candidates:
        if len(found) == count:
            break
        if _bindable(port):
            found.append(port)
    return tuple(found)


def require_free(port: int, setting: str) -> None:
    """Raises SetupError if `port` is taken; the text names the holder, if known, and the `setting` to change."""
    if why := obstacle(LOOPBACK, port):
        msg = f"{why}: stop that program or set {setting} to another port"
        raise SetupError(msg)


def obstacle(host: str, port: int) -> str | None:
    """The reason why no server can listen there, such as `port 9092 is in use by java (pid 123)`; None if one can."""
    try:
        _bind(host, port)
    except OSError as error:
        if error.errno not in _TAKEN:
            return f"port {port} cannot be used on {host}: {error.strerror or error}"
        by = holder(port)
        return f"port {port} is in use by {by}" if by else f"port {port} is in use"
    return None


def accepts(port: int) -> bool:
    """True if a server on loopback accepts connections on `port`."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1):
            return True
    except OSError:
        return False


def holder(port: int) -> str | None:
    """The process that listens on `port` as `name (pid 123)`; None if the system does not show it (not Linux)."""
    pid = holder_id(port)
    # The process may end meanwhile.
    with contextlib.suppress(OSError):
        return f"{Path(f'/proc/{pid}/comm').read_text().strip()} (pid {pid})"
    return None


def is_held_by(port: int, owner: int) -> bool:
    """True if `owner` or one of its descendants listens on `port`, or the system does not show who does."""
    pid = holder_id(port)
    if pid is None or pid == owner:
        return True
    with contextlib.suppress(psutil.Error):
        return owner in {each.pid for each in psutil.Process(pid).parents()}
    return False


def holder_id(port: int) -> int | None:
    """The id of the process that listens on `port`; None if the system does not show it."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    if not sockets:
        return None
    for process in Path("/proc").glob("[0-9]*"):
        # Processes may end meanwhile, and those of other users may not be read.
        with contextlib.suppress(OSError):
            if any(_target(handle) in sockets for handle in (process / "fd").iterdir()):
                return int(process.name)
    return None


def _target(handle: Path) -> str:
    """Name of an open file of a process; empty if it has been closed meanwhile."""
    try:
        return str(handle.readlink())
    except OSError:
        return ""


def _bindable(port: int) -> bool:
    try:
        _bind(LOOPBACK, port)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise
    return True


def _bind(host: str, port: int) -> None:
    """Binds the port and releases it again; OSError if that is not possible."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        # The servers set this option too, so that connections of a server that has just ended do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))


def _listening_inodes(port: int) -> set[str]:
    """Inodes of the sockets that listen on `port`, from the tables described in proc(5)."""
    inodes = set()
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        if not table.exists():
            continue
        for line in table.read_text().splitlines()[1:]:
            local, state, inode = (line.split()[column] for column in (1, 3, 9))
            if state == _LISTENING and int(local.rpartition(":")[2], 16) == port:
                inodes.add(inode)
    return inodes
