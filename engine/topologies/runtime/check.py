"""Check of topologies before they run: their modules are imported, their functions called, and their nodes planned.

All of it happens in a process of its own, `python -m engine.topologies.runtime.check`, since users' code may print, end
its process or take long, and since a process imports a module once. Nothing of Kafka is asked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import SetupError, UnreachableError
from engine.schemas.section import SchemaConfig
from engine.spark.section import SparkConfig
from engine.topologies.runtime.code import dump_codes, load_codes, read_code
from engine.topologies.section import TopologiesConfig
from routes.config.snapshot import Snapshot
from routes.errors import BridgeError, ConfigurationError, Fault, Level

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from engine.schemas.section import SchemaConfig
    from engine.topologies.library.topology import Topology
    from engine.topologies.runtime.code import TopologyCode
    from engine.topologies.section import TopologyConfig

__all__ = ["CheckedTopology", "check_loaded", "check_planned", "fault_of"]

_LOAD_SECONDS = 60.0
_PLAN_SECONDS = 180.0
_PLAN_MEMORY = "1g"
_LOAD, _PLAN = "load", "plan"


@dataclass(frozen=True, slots=True)
class CheckedTopology:
    """Result of the check of one topology."""

    name: str
    """Name of the topology in the configuration."""
    fault: str = ""
    """Fault of its definition, with its place; empty: it has none."""
    unplanned: str = ""
    """Reason for which its nodes were not planned although it could be built; empty: they were, or were not to be."""


def check_loaded(snapshot: Snapshot, codes: Mapping[str, TopologyCode], names: Sequence[str]) -> None:
    """Checks that topologies of a configuration can be built from their source files; starts no Spark.

    A topology whose function makes Columns is not built, since these need Spark; its module is imported.

    Raises:
        ConfigurationError: one of them cannot be built; it has a fault for each.
    """
    # One that ends its process must not take the answers for others with it.
    checked = [each for name in names for each in _check(snapshot, codes, [name], _LOAD, _LOAD_SECONDS)]
    faults = [fault_of(each, snapshot.path) for each in checked if each.fault]
    if faults:
        raise ConfigurationError(faults)


def check_planned(topologies: Sequence[TopologyConfig], snapshot: Snapshot) -> list[CheckedTopology]:
    """Checks that each of the topologies can be built and planned; starts Spark on this machine, if need be.

    The topologies are those of the snapshot; their files are those on disk.
    """
    codes = {each.name: read_code(each.build, Path.cwd()) for each in topologies}
    return _check(snapshot, codes, list(codes), _PLAN, _PLAN_SECONDS)


def fault_of(checked: CheckedTopology, path: Path) -> Fault:
    """The fault of a topology's definition, or a warning that it was not planned, for the file that names it."""
    key = f"topologies.{checked.name}.build"
    if checked.fault:
        return Fault(f"topology '{checked.name}': {checked.fault}", f"correct it, or {key}", str(path), key=key)
    what = f"topology '{checked.name}' can be built, but was not planned: {checked.unplanned}"
    return Fault(what, "its expressions are checked when it starts", str(path), key=key, level=Level.WARNING)


def _check(
    snapshot: Snapshot, codes: Mapping[str, TopologyCode], names: Sequence[str], task: str, seconds: float
) -> list[CheckedTopology]:
    """Has a process carry out a task for each named topology; one that it does not answer for has a fault."""
    if not names:
        return []
    command = [sys.executable, "-m", "engine.topologies.runtime.check", task, *names]
    content = snapshot.dump() + b"\n" + dump_codes(codes)
    try:
        done = subprocess.run(
            command, input=content, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=seconds, check=False
        )
        output, end = done.stdout, f"the process that builds it has ended with exit status {done.returncode}"
    except subprocess.TimeoutExpired as error:
        output, end = error.stdout or b"", f"its code has not been imported and called within {seconds:g} s"
    answers = {found["name"]: CheckedTopology(**found) for found in map(json.loads, output.splitlines())}
    return [answers.get(name) or CheckedTopology(name, fault=end) for name in names]


def _main() -> None:
    """Carries out the task that the arguments name; the input has the configuration and the codes."""
    task, *names = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # What users' code prints must not stand between the answers.
    os.dup2(2, 1)
    dumped, _, codes = sys.stdin.buffer.read().partition(b"\n")
    config = Snapshot.of(dumped).load()
    wanted = [each for each in config.section(TopologiesConfig) if each.name in names]
    for checked in _checked(wanted, load_codes(codes), task, config.section(SchemaConfig), config.section(SparkConfig)):
        answers.write(json.dumps({"name": checked.name, "fault": checked.fault, "unplanned": checked.unplanned}) + "\n")
        answers.flush()


def _checked(
    wanted: Sequence[TopologyConfig],
    codes: Mapping[str, TopologyCode],
    task: str,
    schema: SchemaConfig,
    spark_settings: Mapping[str, str],
) -> Iterator[CheckedTopology]:
    """Checks topologies; those whose modules can be imported are planned together, for which Spark starts once."""
    from engine.topologies.runtime.definition import find, read_without_spark

    left = []
    for each in wanted:
        if fault := _fault(find, each, codes):
            yield CheckedTopology(each.name, fault)
        else:
            left.append(each)
    unplanned = ""
    if left and task == _PLAN:
        try:
            with _session(spark_settings) as spark:
                while left:
                    yield _planned(schema, left.pop(0), codes, spark)
        except SetupError as error:
            # No Java, or no jars: their own checks say so.
            unplanned = _line(error)
    for each in left:
        fault = _fault(read_without_spark, each, codes)
        yield CheckedTopology(each.name, fault, "" if fault else unplanned)


def _fault(read: Callable[[str], object], topology: TopologyConfig, codes: Mapping[str, TopologyCode]) -> str:
    """Fault in the definition of a topology that `read` raises; empty if it raises none."""
    from engine.topologies.library.served_modules import serve

    serve(codes[topology.name].modules)
    try:
        read(topology.build)
    except BridgeError as error:
        return _line(error)
    return ""


def _planned(
    schema: SchemaConfig, topology: TopologyConfig, codes: Mapping[str, TopologyCode], spark: SparkSession
) -> CheckedTopology:
    from engine.topologies.library.served_modules import serve
    from engine.topologies.runtime.definition import read

    serve(codes[topology.name].modules)
    fault = unplanned = ""
    try:
        _plan(schema, topology, read(topology.build), spark)
    except UnreachableError as error:
        unplanned = _line(error)
    except BridgeError as error:
        fault = _line(error)
    return CheckedTopology(topology.name, fault, unplanned)


@contextmanager
def _session(settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session on this machine, whatever cluster the configuration names, that leaves no files."""
    from engine.spark.launch import Launch
    from engine.spark.session import close, open_session

    kept = {name: value for name, value in settings.items() if name != "spark.master"}
    needed = {**kept, "spark.driver.memory": _PLAN_MEMORY}
    with tempfile.TemporaryDirectory(prefix="jms-bridge-") as folder:
        spark = open_session(Launch(Path(folder), Path(folder) / "log" / "spark.log", needed))
        try:
            yield spark
        finally:
            close(spark)


def _plan(schema: SchemaConfig, settings: TopologyConfig, topology: Topology, spark: SparkSession) -> None:
    """Plans a topology and looks whether its mode fits it; raises as `planned` and `mode_of`."""
    from engine.topologies.runtime.layout import lay_out
    from engine.topologies.runtime.registry import planned
    from engine.topologies.runtime.settings import TopologySettings, mode_of

    planned(schema, topology, spark, settings.on_failure.value)
    # How many partitions the topics have is not asked; whether the mode fits does not depend on it.
    layout = lay_out(topology, {source.topic: 1 for source in topology.sources})
    run: dict[str, Any] = {"mode": settings.mode.value, "guarantee": settings.guarantee.value}
    mode_of(TopologySettings(settings.build, **run, interval_seconds=settings.interval_seconds), layout)


def _line(error: BridgeError) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    _main()
