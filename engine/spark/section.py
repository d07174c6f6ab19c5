"""Section `spark` of a configuration: the settings of the Spark session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.spark.file_systems import unfit_place
from engine.spark.settings import is_cluster, kibibytes, master_hosts, too_few_slots, unfit_master
from routes.errors import Level
from routes.keys.addresses import is_loopback
from routes.keys.table import key
from routes.keys.values import ANY_TEXT, PLACE, scheme_of
from routes.section_registry import Section, check_reserved
from routes.sections import RouterMode

if TYPE_CHECKING:
    from routes.keys.settings import Settings

__all__ = ["SECTION", "SparkConfig"]

_RESERVED: Mapping[str, tuple[str | None, str]] = {
    "spark.sql.streaming.checkpointLocation": (None, "set router.checkpoint instead"),
    "spark.sql.ansi.enabled": ("true", "predicates rely on it"),
    "spark.speculation": ("false", "a task that runs twice publishes twice"),
    "spark.task.maxFailures": ("1", "a task that runs twice publishes twice"),
    "spark.dynamicAllocation.enabled": ("false", "real-time mode needs all its executors at once"),
}
_HEAP = re.compile(r"[0-9]{1,12}[kmgt]", re.IGNORECASE)
_LEAST_HEAP_KIB = 450 << 10
"""Least heap: half as much again as the 300 MiB that Spark keeps for itself (`UnifiedMemoryManager`)."""


@dataclass(frozen=True, slots=True, eq=False)
class SparkConfig(Mapping[str, str]):
    """`spark.*`: settings of Spark by their whole names, `spark.` included."""

    settings: Mapping[str, str] = key(
        "spark.*",
        ANY_TEXT,
        "Any Spark setting; `spark.driver.memory`, the heap of the router, is `2g` unless it is set. `spark.master` "
        "is a cluster, such as `spark://host:7077` (see scaling.md), or `local[N]`, with two task slots more than the "
        "journal has partitions.",
        example="spark.driver.memory=4g",
        made=lambda found, *_: MappingProxyType({f"spark.{name}": value for name, value in found.items()}),
        factory=dict,
    )

    def __getitem__(self, name: str) -> str:
        """Returns the value of a setting; raises KeyError if it is not set."""
        return self.settings[name]

    def __iter__(self) -> Iterator[str]:
        """Yields the names of the settings."""
        return iter(self.settings)

    def __len__(self) -> int:
        """Returns the number of settings."""
        return len(self.settings)


def reserved_spark_settings(settings: Settings) -> None:
    """Checks that settings of Spark which the bridge makes itself have only the value that it would give them."""
    for setting in settings.open("spark.*"):
        if setting.entry.key in _RESERVED:
            check_reserved(settings, setting, _RESERVED[setting.entry.key])


def driver_memory(settings: Settings) -> None:
    """Checks the size of the heap, which goes to the JVM as it is written; the JVM takes one letter for a unit."""
    entry, memory = settings.entry("spark.*", "driver.memory"), settings.get("spark.*", "driver.memory")
    if entry is None or memory is None:
        return
    size = kibibytes(memory) if _HEAP.fullmatch(memory) else None
    if size is None:
        settings.faults.append(entry.fault(f"'{memory}' is not the size of a heap", "as in 512m, 2g"))
    elif size < _LEAST_HEAP_KIB:
        settings.faults.append(entry.fault(f"Spark does not start with a heap of '{memory}'", "450m is the least"))


def spark_master(settings: Settings) -> None:
    """Checks that the master, or the cluster by its settings, has a task slot for each journal partition."""
    entry, given = settings.entry("spark.*", "master"), settings.get("spark.*", "master")
    partitions = settings.get("journal.partitions")
    # The number of processors depends on the machine, which need not be the one that checks.
    if entry is None or given in (None, "local[*]") or partitions is None:
        return
    if unfit := unfit_master(given, partitions):
        settings.faults.append(entry.fault(*unfit))
    elif is_cluster(given) and settings.get("router.mode") is not RouterMode.BATCH:
        entries = {setting.entry.key: setting.entry for setting in settings.open("spark.*")}
        if few := too_few_slots(given, {key: each.value for key, each in entries.items()}, partitions):
            setting, message, hint = few
            settings.faults.append(entries.get(setting, entry).fault(message, hint))


def file_systems(settings: Settings) -> None:
    """Checks that Hadoop has the file system of each folder that is named by a URI."""
    spark = {setting.entry.key: setting.entry.value for setting in settings.open("spark.*")}
    for row in settings.table.fields:
        scheme = scheme_of(settings.get(row.key)) if row.kind is PLACE else None
        if scheme is not None and (unfit := unfit_place(scheme, spark)):
            settings.fault(row.key, "", *unfit)


def spark_secret(settings: Settings) -> None:
    """Warns of a standalone cluster on a network, whose processes do not identify each other.

    Who reaches the driver's port could run code in it.
    """
    entry, given = settings.entry("spark.*", "master"), settings.get("spark.*", "master")
    hosts = master_hosts(given) if given else []
    if entry is None or all(is_loopback(host) for host, _ in hosts):
        return
    if not settings.is_set("spark.*", "authenticate.secret"):
        message = "Spark's processes do not identify each other"
        hint = "set spark.authenticate.secret=${env:NAME}, and the same secret in the cluster"
        settings.faults.append(entry.fault(message, hint, level=Level.WARNING))


SECTION = Section(
    about="Settings of the Spark session.",
    settings=SparkConfig,
    checks=(reserved_spark_settings, driver_memory, spark_master, file_systems, spark_secret),
    reserved=_RESERVED,
)
