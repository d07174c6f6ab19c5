"""Tests which values of `spark.master` can be used, and where their masters are."""

from __future__ import annotations

import pytest

from engine.spark.settings import is_cluster, kibibytes, master_hosts, unfit_master
from routes.config import lint_text
from routes.errors import Fault, Level

START = "bridge.id=b\nroutes.r.in.include=TRUE\nroutes.r.out.topic=x\nspark.master="


def errors(text: str) -> list[Fault]:
    return [fault for fault in lint_text(text).faults if fault.level is Level.ERROR]


@pytest.mark.parametrize(
    ("master", "hosts"),
    [
        ("spark://one:7077", [("one", 7077)]),
        ("spark://one:7077,two:7078", [("one", 7077), ("two", 7078)]),
        ("k8s://https://cluster:443", []),
        ("yarn", []),
    ],
)
def test_clusters(master: str, hosts: list[tuple[str, int]]) -> None:
    assert is_cluster(master)
    assert unfit_master(master, 1000) is None
    assert master_hosts(master) == hosts


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*]", None])
def test_this_process_is_no_cluster(master: str | None) -> None:
    assert not is_cluster(master)


@pytest.mark.parametrize("master", ["", "spark://one", "spark://one:7077/", "spark://u:p@one:7077", "mesos://one:5050"])
def test_what_is_no_master(master: str) -> None:
    unfit = unfit_master(master, 4)
    assert unfit is not None
    assert unfit[0] == f"spark.master is {master!r}, which is not a master of Spark"
    assert "spark://HOST:7077" in unfit[1]


@pytest.mark.parametrize(
    ("lines", "warns"),
    [
        ("spark://one:7077", True),
        ("spark://one:7077\nspark.authenticate.secret=${env:SECRET}", False),
        ("spark://127.0.0.1:7077", False),
        ("yarn", False),
    ],
)
def test_a_cluster_without_a_secret_is_warned_of(lines: str, warns: bool) -> None:
    faults = lint_text(START + lines, env={"SECRET": "x"}).faults
    assert any("do not identify each other" in fault.message for fault in faults) == warns


@pytest.mark.parametrize(
    ("lines", "line", "fault"),
    [
        ("spark://127.0.0.1:1\nspark.cores.max=3", 5, "spark.cores.max is 3: 3 task slots"),
        ("spark://127.0.0.1:1\nspark.cores.max=5\nspark.executor.cores=3", 5, "spark.cores.max is 5: 3 task slots"),
        ("k8s://https://c:443", 4, "spark.executor.instances is 2 and spark.executor.cores is 1: 2 task slots"),
        ("yarn\nspark.executor.instances=3", 5, "spark.executor.instances is 3 and spark.executor.cores is 1: 3 task"),
    ],
)
def test_settings_that_ask_for_too_few_task_slots_are_refused(lines: str, line: int, fault: str) -> None:
    (found,) = errors(START + lines)
    assert found.message.startswith(fault)
    assert found.message.endswith("real-time mode needs one for each of 4 partitions of the journal")
    assert found.line == line


@pytest.mark.parametrize(
    ("lines", "enough"),
    [
        ("spark://127.0.0.1:1\nspark.cores.max=3", "spark.cores.max=4"),
        ("spark://127.0.0.1:1\nspark.cores.max=5\nspark.executor.cores=3", "spark.cores.max=6"),
        ("yarn\nspark.executor.cores=3\nspark.executor.instances=1", "spark.executor.instances=2"),
    ],
)
def test_the_hint_names_a_setting_that_is_enough(lines: str, enough: str) -> None:
    (found,) = errors(START + lines)
    assert found.hint == f"set {enough}, or router.mode=batch, which needs one slot"
    assert errors(f"{START}{lines}\nrouter.mode=batch") == []
    setting = enough.split("=")[0]
    others = [line for line in lines.splitlines() if not line.startswith(setting)]
    assert errors(START + "\n".join([*others, enough])) == []


@pytest.mark.parametrize(
    "lines",
    [
        "spark://127.0.0.1:1",
        "spark://127.0.0.1:1\nspark.executor.cores=3",
        "spark://127.0.0.1:1\nspark.cores.max=4",
        "yarn\nspark.executor.instances=2\nspark.executor.cores=2",
        "yarn\nspark.executor.instances=many",
        "local[6]\nspark.cores.max=1",
    ],
)
def test_settings_that_ask_for_enough_task_slots(lines: str) -> None:
    assert errors(START + lines) == []


@pytest.mark.parametrize(
    ("size", "kib"),
    [("2g", 2 << 20), ("900", 900 << 10), ("1GB", 1 << 20), (" 5k ", 5), ("1t", 1 << 30), ("lots", None)],
)
def test_sizes_in_the_notation_of_spark(size: str, kib: int | None) -> None:
    assert kibibytes(size) == kib
