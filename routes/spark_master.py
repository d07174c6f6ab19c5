"""The setting `spark.master`: where tasks of Spark run, in the router's own process or in executors of a cluster."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

__all__ = ["SPARE_SLOTS", "is_cluster", "master_hosts", "unfit_master"]

SPARE_SLOTS = 2
"""Task slots beside one for each journal partition: for partitions that are added, and for short jobs meanwhile."""

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
        return f"spark.master is {master!r}, which is no master of Spark", f"{hint}, {_HINT}"
    slots = (os.cpu_count() or 1) if found[1] == "*" else int(found[1] or 1)
    if slots < least:
        return f"{master!r} has {slots} task slots, too few for the {partitions} partitions of the journal", hint
    return None
