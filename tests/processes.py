"""What tests ask about processes that others started."""

from __future__ import annotations

from pathlib import Path

__all__ = ["gone"]


def gone(pid: int) -> bool:
    """Whether a process has ended; where nobody collects orphans, one that has ended keeps its number."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
