"""Loggers of PySpark, which the engine silences while it plans a topology."""

from __future__ import annotations

import logging

import pytest
from pyspark.logger import PySparkLogger

from engine.topologies.library.program import _without_logs


def test_pyspark_can_log_its_errors_after_a_topology_was_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("SQL", "DataFrame"):
        monkeypatch.delitem(logging.Logger.manager.loggerDict, f"{kind}QueryContextLogger", raising=False)
    with _without_logs():
        assert logging.getLogger("DataFrameQueryContextLogger").disabled
    # A plain logger would raise TypeError in place of the error that PySpark tells.
    PySparkLogger.getLogger("DataFrameQueryContextLogger").exception("told", errorClass="CAST_INVALID_INPUT")
