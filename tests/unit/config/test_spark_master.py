"""Tests which values of `spark.master` can be used, and where their masters are."""

from __future__ import annotations

import pytest

from routes.config import lint_text
from routes.spark_master import is_cluster, master_hosts, unfit_master

START = "bridge.id=b\nroutes.r.in.include=TRUE\nroutes.r.out.topic=x\nspark.master="


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
    assert unfit[0] == f"spark.master is {master!r}, which is no master of Spark"
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
