"""What PySpark imports in a process of the router, without a JVM."""

from __future__ import annotations

import importlib
import sys

import pytest

from engine.spark.session import leave_out_numpy


def test_pyspark_asks_no_test_tools_for_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyspark.testing", "pyspark.testing.utils"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    leave_out_numpy()
    assert not importlib.import_module("pyspark.testing.utils").have_numpy
    assert not hasattr(sys.modules["pyspark.testing.utils"], "unittest")


def test_tools_that_are_imported_already_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = importlib.import_module("pyspark.testing.utils")
    monkeypatch.setitem(sys.modules, "pyspark.testing.utils", tools)
    leave_out_numpy()
    assert sys.modules["pyspark.testing.utils"] is tools
