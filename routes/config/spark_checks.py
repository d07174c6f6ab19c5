"""Checks of the values of `spark.*` with which the router's session would not start."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from routes.keys.settings import Settings

__all__ = ["SPARE_SLOTS", "SPARK_CHECKS", "unfit_master"]

SPARE_SLOTS = 2
"""Task slots beside one for each journal partition: for partitions that are added, and for short jobs meanwhile."""

_LOCAL = re.compile(r"local(?:\[(\d+|\*)\])?")
_HEAP = re.compile(r"([0-9]{1,12})([kmgt])", re.IGNORECASE)
_KIB = {"k": 1, "m": 1 << 10, "g": 1 << 20, "t": 1 << 30}
_LEAST_HEAP_KIB = 450 << 10
"""Least heap: half as much again as the 300 MiB that Spark keeps for itself (`UnifiedMemoryManager`)."""


def unfit_master(master: str, partitions: int) -> tuple[str, str] | None:
    """Returns message and hint for a `spark.master` unfit for a journal of so many partitions; None if it is fit."""
    found, least = _LOCAL.fullmatch(master), partitions + SPARE_SLOTS
    hint = f"leave it out, or write local[{least}]"
    if found is None:
        return f"spark.master is {master!r}, but the router runs inside one machine", hint
    slots = (os.cpu_count() or 1) if found[1] == "*" else int(found[1] or 1)
    if slots < least:
        return f"{master!r} has {slots} task slots, too few for the {partitions} partitions of the journal", hint
    return None


def driver_memory(settings: Settings) -> None:
    """Checks the size of the heap, which goes to the JVM as it is written; the JVM takes one letter for a unit."""
    entry, memory = settings.entry("spark.*", "driver.memory"), settings.get("spark.*", "driver.memory")
    if entry is None or memory is None:
        return
    found = _HEAP.fullmatch(memory)
    if found is None:
        settings.faults.append(entry.fault(f"'{memory}' is not the size of a heap", "as in 512m, 2g"))
    elif int(found[1]) * _KIB[found[2].lower()] < _LEAST_HEAP_KIB:
        settings.faults.append(entry.fault(f"Spark does not start with a heap of '{memory}'", "450m is the least"))


def master(settings: Settings) -> None:
    """Checks that the master is this process, with a task slot for each partition of the journal."""
    entry, given = settings.entry("spark.*", "master"), settings.get("spark.*", "master")
    partitions = settings.get("journal.partitions")
    # The number of processors depends on the machine, which need not be the one that checks.
    if entry is None or given in (None, "local[*]") or partitions is None:
        return
    if unfit := unfit_master(given, partitions):
        settings.faults.append(entry.fault(*unfit))


SPARK_CHECKS = (driver_memory, master)
"""The checks; each adds its faults to the settings."""
