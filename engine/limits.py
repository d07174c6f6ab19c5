"""Limits: of open files, which the operating system has to allow, and of what one record may take."""

from __future__ import annotations

import resource

from engine.errors import SetupError

__all__ = ["LEAST_FILES", "REMEDY", "RESULT_BYTES", "files_allowed", "require_files"]

LEAST_FILES = 1024
"""Number of open files and connections that each process of a bridge may need, embedded servers included."""
RESULT_BYTES = 16 << 20
"""Most bytes that a topology's Python function may return for one record, and that the JVM takes of results at once."""
REMEDY = "raise it: `ulimit -n 4096` in the shell, LimitNOFILE=4096 in a systemd unit, --ulimit nofile=4096 for Docker"


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
