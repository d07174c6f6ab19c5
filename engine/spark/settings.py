"""Settings of a Spark session: the bridge's own, those that follow from `spark.master`, and what its JVM starts with.

`spark.master` says where tasks of Spark run: in the session's own process, or in executors of a cluster.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = [
    "EXECUTOR_CORES",
    "EXECUTOR_MEMORY",
    "SPARE_SLOTS",
    "environment",
    "is_cluster",
    "java_options",
    "kibibytes",
    "local_master",
    "master_hosts",
    "session_settings",
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

_SENSITIVE = "(?i)pass(word|wd|phrase)|secret|jaas|token|credential|private|(access|account|api)[._-]?key"
"""Matches names of secret settings as `routes.keys.secrets` does; Spark's default leaves out half of them."""

_SLOTS = 64
_DEFAULTS = {
    "spark.app.name": "jms-bridge",
    # The session is opened before Kafka tells how many partitions there are. A task slot is a thread, made when needed.
    "spark.master": f"local[{_SLOTS}]",
    # Spark's default is one for each slot.
    "spark.rpc.netty.dispatcher.numThreads": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    # Spark's ports refuse requests without a secret, which it makes at each start and keeps inside this JVM.
    "spark.authenticate": "true",
    "spark.ui.enabled": "false",
    "spark.redaction.regex": _SENSITIVE,
    "spark.ui.showConsoleProgress": "false",
    # Limits for the finished jobs that Spark keeps for its page; a query that runs for weeks has many.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
    # With a class loader of its own for each session, each query would compile anew the code that warm-up compiled.
    "spark.sql.artifact.isolation.enabled": "false",
    # Without the place in this project's Python, and in Spark's Java, where each Column was made: to find the former
    # takes two thirds of all calls into the JVM while a plan is made. An error in a plan names the expression anyway.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stopTimeout": "30s",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # A kill within the first batch leaves files that are not whole beside the checkpoint's own. Spark would refuse to
    # start with them for ever; that a checkpoint is of this query is checked by its notes.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    # Each consumer that Spark keeps may hold a fetch of several MiB; recovery reads every partition of every output.
    "spark.kafka.consumer.cache.capacity": "16",
    # These settings shorten the pause between two intervals of real-time mode. A file of a local disk gets its
    # permissions without a process.
    "spark.hadoop.fs.file.impl": "jmsbridge.LocalFiles",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}

_LOCAL_ONLY = ("spark.driver.host", "spark.driver.bindAddress", "spark.authenticate")
"""Settings of `_DEFAULTS` for a session without executors."""

_CLUSTER = {
    "spark.plugins": "jmsbridge.cluster.BridgePlugin",
    # A task that has published and is lost must not run again: recovery finds out what it has published.
    "spark.task.maxFailures": "1",
    "spark.stage.maxConsecutiveAttempts": "1",
    # All tasks of real-time mode run at once, for as long as an interval lasts.
    "spark.locality.wait": "0s",
}
_SHARED = "spark.authenticate.secret"
_LOCAL_ADDRESS = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}

_JAVA_OPTIONS = (
    # Routing makes much garbage and keeps no objects. With enough room for it (see `java_options`), this collector
    # takes a sixth less CPU than G1.
    "-XX:+UseParallelGC",
    # Routing writes all over the young generation: larger pages, where the system has them, save look-ups of pages.
    "-XX:+UseTransparentHugePages",
    # The space that Spark's classes take. With less, the JVM collects the whole heap during the start to make room.
    "-XX:MetaspaceSize=192m",
    "-XX:+ExitOnOutOfMemoryError",
    # Routes whose addresses depend on the message make long methods, which the JVM would otherwise not compile.
    "-XX:-DontCompileHugeMethods",
)

_MOST_YOUNG_KIB = 340 * 1024
"""Limit of the young generation: 700 MB took a third of the router's memory, and 96 MB a fifth more CPU."""


def is_cluster(master: str | None) -> bool:
    """True if the master runs tasks in executors, which are processes of their own."""
    return master is not None and not _LOCAL.fullmatch(master)


def master_hosts(master: str) -> list[tuple[str, int]]:
    """Hosts and ports of a standalone master and its standbys; empty for other masters."""
    standalone = _STANDALONE.fullmatch(master)
    if standalone is None:
        return []
    parts = (urlsplit(f"//{each}") for each in standalone[1].split(","))
    return [(part.hostname or "", part.port or 0) for part in parts]


def unfit_master(master: str, partitions: int) -> tuple[str, str] | None:
    """Returns message and hint for a `spark.master` unfit for a journal of so many partitions; None if it is fit.

    The task slots of a cluster are known only when its executors are there.
    """
    local, least = _LOCAL.fullmatch(master), partitions + SPARE_SLOTS
    hint = f"leave it out, or write local[{least}]"
    if local is None:
        if master == _YARN or _STANDALONE.fullmatch(master) or _KUBERNETES.fullmatch(master):
            return None
        return f"spark.master is {master!r}, which is not a master of Spark", f"{hint}, {_HINT}"
    slots = (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)
    if slots < least:
        return f"{master!r} has {slots} task slots, too few for the {partitions} partitions of the journal", hint
    return None


def too_few_slots(master: str, spark: Mapping[str, str], needed: int) -> tuple[str, str, str] | None:
    """Returns setting, message and hint if the settings ask a cluster for fewer task slots than needed, else None.

    Settings that are not numbers are left to Spark.
    """
    try:
        cores, executors = max(int(spark.get(EXECUTOR_CORES, 1)), 1), int(spark.get(*_EXECUTORS))
        most_cores = int(spark.get(_MOST_CORES, sys.maxsize))
    except ValueError:
        return None
    wanted = -(-needed // cores)
    if master_hosts(master):
        # An executor with a number of cores has all of them or does not start.
        setting, given, enough = _MOST_CORES, most_cores // cores * cores, wanted * cores
        what = f"{_MOST_CORES} is {most_cores}"
    else:
        setting, given, enough = _EXECUTORS[0], executors * cores, wanted
        what = f"{_EXECUTORS[0]} is {executors} and {EXECUTOR_CORES} is {cores}"
    if given >= needed:
        return None
    message = f"{what}: {given} task slots, and real-time mode needs one for each of {needed} partitions of the journal"
    return setting, message, f"set {setting}={enough}, or router.mode=batch, which needs one slot"


def kibibytes(size: str) -> int | None:
    """Number of KiB of a size in Spark's notation, in which a bare number means MiB; None if it is not a size."""
    parts = _SIZE.fullmatch(size.strip().lower())
    return int(parts[1]) * _KIB[parts[2] or "m"] if parts else None


def session_settings(
    given: Mapping[str, str], places: Mapping[str, str], jars: Path, compiling: Sequence[str]
) -> dict[str, str]:
    """All settings of a session.

    Args:
        given: the configured settings, which come before all others.
        places: settings for folders of the session.
        jars: folder of the jars that executors need beside Spark's own.
        compiling: options for the compiler of their JVMs.
    """
    master = given.get("spark.master", _DEFAULTS["spark.master"])
    if not is_cluster(master):
        return {**_DEFAULTS, **places, **given}
    shared = {name: value for name, value in _DEFAULTS.items() if name not in _LOCAL_ONLY}
    return {**shared, **places, **_cluster_settings(master, jars, compiling, given), **given}


def _cluster_settings(master: str, jars: Path, compiling: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Spark settings for a cluster.

    Spark's processes identify each other by a configured secret, which a standalone cluster has to have as well;
    Kubernetes and YARN hand out one by themselves.
    """
    is_known = _SHARED in given or not master_hosts(master)
    return {
        **_CLUSTER,
        "spark.jars": ",".join(str(jar) for jar in sorted(jars.absolute().glob("*.jar"))),
        "spark.executor.extraJavaOptions": " ".join([*java_options(given.get(*EXECUTOR_MEMORY)), *compiling]),
        "spark.authenticate": str(is_known).lower(),
        **(_LOCAL_ADDRESS if _is_on_loopback(master) else {}),
    }


def local_master(partitions: int) -> str:
    """The master of a session in one process, with a task slot for each of so many partitions, and usually more."""
    return f"local[{max(partitions + SPARE_SLOTS, _SLOTS)}]"


def java_options(memory: str) -> Iterator[str]:
    """Options of a JVM for a heap of size `memory` in Spark's notation.

    The young generation gets a third of the heap, and no more than `_MOST_YOUNG_KIB`: all of it is soon resident.
    """
    yield from _JAVA_OPTIONS
    if size := kibibytes(memory):
        yield f"-Xmn{min(size // 3, _MOST_YOUNG_KIB)}k"


def environment(folder: Path, master: str, hidden: Collection[str] = ()) -> dict[str, str]:
    """Environment of the JVM: that of this process, with the bridge's Spark variables in place of any others.

    Spark listens on loopback if the master is there; otherwise a SPARK_LOCAL_IP of this process says where.

    Args:
        folder: the folder with Spark's configuration.
        master: the value of `spark.master`.
        hidden: names of variables to leave out.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in hidden and not name.startswith(("SPARK_", "PYSPARK_"))
    }
    address = "127.0.0.1" if _is_on_loopback(master) else os.environ.get("SPARK_LOCAL_IP")
    return {**kept, "SPARK_CONF_DIR": str(folder), **({"SPARK_LOCAL_IP": address} if address else {})}


def _is_on_loopback(master: str) -> bool:
    """True if the master is in this process or has an address of the loopback interface."""
    if not is_cluster(master):
        return True
    # Imports the language of conditions, for which the start of a local session need not wait.
    from routes.keys.addresses import is_loopback

    hosts = master_hosts(master)
    return bool(hosts) and all(is_loopback(host) for host, _ in hosts)
