"""Limits that hold for all parts: of open files, with the operating system's, and of the memory for one message."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

from engine.errors import SetupError

if TYPE_CHECKING:
    from engine.message import Message

__all__ = [
    "LEAST_FILES",
    "MOST_HEADERS",
    "REMEDY",
    "RESULT_BYTES",
    "excess",
    "files_allowed",
    "require_files",
    "too_many_headers",
]

LEAST_FILES = 1024
"""Number of open files and connections that each process of a bridge may need, embedded servers included."""
RESULT_BYTES = 16 << 20
"""Most bytes that a topology's Python function may return for one record, and that the JVM takes of results at once."""
MOST_HEADERS = 1000
"""Largest number of properties of a message, or of headers that may become some. A message with more is unreadable:
each of them costs the router time and memory that the size of the message does not tell."""
_ADDED = 16
"""Number of properties that sources may add to a message, such as the topic and the offset of a Kafka record."""
REMEDY = "raise it: `ulimit -n 4096` in the shell, LimitNOFILE=4096 in a systemd unit, --ulimit nofile=4096 for Docker"


def excess(message: Message) -> str | None:
    """Returns the reason why a message has too many properties to be taken, in one line; None if it has not."""
    return too_many_headers(len(message.properties) + len(message.origins))


def too_many_headers(number: int) -> str | None:
    """Returns the reason why a message with so many headers is not taken, in one line; None if it may be taken."""
    if number <= MOST_HEADERS + _ADDED:
        return None
    return f"it has {number:,} headers; a message may have {MOST_HEADERS:,}"


def files_allowed() -> int:
    """The number of files that a process of this user may open: the hard limit of RLIMIT_NOFILE."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # RLIM_INFINITY, which means no limit, is a negative number.
    return max(hard, LEAST_FILES) if hard == resource.RLIM_INFINITY else hard


def require_files() -> None:
    """Raises the soft limit of open files to LEAST_FILES, for this process and its later children.

    Raises:
        SetupError: the hard limit is lower.
    """
    if (allowed := files_allowed()) < LEAST_FILES:
        msg = f"a process may open only {allowed} files and connections (RLIMIT_NOFILE), and {LEAST_FILES} are needed"
        raise SetupError(f"{msg}: {REMEDY}")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < LEAST_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (LEAST_FILES, hard))
