"""The setting `spark.master`: where tasks of Spark run, in the router's own process or in executors of a cluster."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "EXECUTOR_CORES",
    "EXECUTOR_MEMORY",
    "SPARE_SLOTS",
    "is_cluster",
    "kibibytes",
    "master_hosts",
    "too_few_slots",
    "unfit_master",
]

SPARE_SLOTS = 2
"""Task slots beside one for each journal partition: for partitions that are added, and for short jobs meanwhile."""

EXECUTOR_MEMORY = ("spark.executor.memory", "1g")
"""Setting for the heap of an executor, and Spark's default."""

EXECUTOR_CORES = "spark.executor.cores"
"""Setting for the cores of an executor: 1 by default, but on a standalone cluster all cores of a worker."""
_EXECUTORS = ("spark.executor.instances", "2")
"""Setting for the number of executors on Kubernetes and YARN, and Spark's default."""
_MOST_CORES = "spark.cores.max"
"""Setting for the cores of an application on a standalone cluster: all by default."""
_SIZE = re.compile(r"(\d+)([kmgt]?)b?")
_KIB = {"k": 1, "m": 1 << 10, "g": 1 << 20, "t": 1 << 30}
_LOCAL = re.compile(r"local(?:\[(\d+|\*)\])?")
_STANDALONE = re.compile(r"spark://([^\s,/@]+:\d{1,5}(?:,[^\s,/@]+:\d{1,5})*)")
_KUBERNETES = re.compile(r"k8s://\S+")
_YARN = "yarn"
_HINT = "or name a cluster: spark://HOST:7077, k8s://https://HOST:443, yarn"


def is_cluster(master: str | None) -> bool:
    """True if the master runs tasks in executors, which are processes of their own."""
    return master is not None and not _LOCAL.fullmatch(master)


def master_hosts(master: str) -> list[tuple[str, int]]:
    """Hosts and ports of a standalone master and its standbys; empty for other masters."""
    found = _STANDALONE.fullmatch(master)
    if found is None:
        return []
    parts = (urlsplit(f"//{each}") for each in found[1].split(","))
    return [(part.hostname or "", part.port or 0) for part in parts]


def unfit_master(master: str, partitions: int) -> tuple[str, str] | None:
    """Returns message and hint for a `spark.master` unfit for a journal of so many partitions; None if it is fit.

    The task slots of a cluster are known only when its executors are there.
    """
    found, least = _LOCAL.fullmatch(master), partitions + SPARE_SLOTS
    hint = f"leave it out, or write local[{least}]"
    if found is None:
        if master == _YARN or _STANDALONE.fullmatch(master) or _KUBERNETES.fullmatch(master):
            return None
        return f"spark.master is {master!r}, which is not a master of Spark", f"{hint}, {_HINT}"
    slots = (os.cpu_count() or 1) if found[1] == "*" else int(found[1] or 1)
    if slots < least:
        return f"{master!r} has {slots} task slots, too few for the {partitions} partitions of the journal", hint
    return None


def too_few_slots(master: str, spark: Mapping[str, str], needed: int) -> tuple[str, str, str] | None:
    """Returns setting, message and hint if the settings ask a cluster for fewer task slots than needed, else None.

    Settings that are not numbers are left to Spark.
    """
    try:
        cores, executors = max(int(spark.get(EXECUTOR_CORES, 1)), 1), int(spark.get(*_EXECUTORS))
        most = int(spark.get(_MOST_CORES, sys.maxsize))
    except ValueError:
        return None
    wanted = -(-needed // cores)
    if master_hosts(master):
        # An executor with a number of cores has all of them or does not start.
        setting, given, enough = _MOST_CORES, most // cores * cores, wanted * cores
        what = f"{_MOST_CORES} is {most}"
    else:
        setting, given, enough = _EXECUTORS[0], executors * cores, wanted
        what = f"{_EXECUTORS[0]} is {executors} and {EXECUTOR_CORES} is {cores}"
    if given >= needed:
        return None
    message = f"{what}: {given} task slots, and real-time mode needs one for each of {needed} partitions of the journal"
    return setting, message, f"set {setting}={enough}, or router.mode=batch, which needs one slot"


def kibibytes(size: str) -> int | None:
    """Number of KiB of a size in Spark's notation, in which a bare number means MiB; None if it is not a size."""
    found = _SIZE.fullmatch(size.strip().lower())
    return int(found[1]) * _KIB[found[2] or "m"] if found else None
