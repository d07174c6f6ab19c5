"""Checks of topologies' definitions in a process of their own, whatever users' code does there."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.topologies.runtime import check
from engine.topologies.runtime.check import check_loaded
from engine.topologies.runtime.code import TopologyCode, read_code
from routes.config.snapshot import Snapshot
from routes.errors import ConfigurationError

GOOD = """\
from engine.streams import StreamsBuilder as B
{}
def build(b=B('t')): return b.stream('a').to('b') or b.build()
"""
SOURCES = {
    "good": GOOD.format("import sys; print('noise'); sys.stdout.write('{}')"),
    "at_import": "from pyspark.sql import functions as F\nF.col('a')\n",
    "columns": "from pyspark.sql import functions as F\ndef build():\n    return F.col('a')\n",
    "session": "from pyspark.sql import SparkSession as S\ndef build():\n    return S.getActiveSession().conf\n",
    "syntax": "def build(:\n",
    "leaves": "import sys\nsys.exit()\n",
    "raises": "def build():\n    raise ValueError('no luck')\n",
}


def checked(folder: Path, **sources: str) -> str:
    """What is wrong with topologies of one module each; empty if nothing is."""
    text = "bridge.id=b\nroutes.a.in.include=TRUE\nroutes.a.out.topic=t\n"
    codes: dict[str, TopologyCode] = {}
    for name, source in sources.items():
        (folder / f"checked_{name}.py").write_text(source)
        text += f"topologies.{name.replace('_', '-')}.build=checked_{name}:build\n"
        codes[name.replace("_", "-")] = read_code(f"checked_{name}:build", folder)
        # What counts is what was read.
        (folder / f"checked_{name}.py").write_text("another\n")
    try:
        check_loaded(Snapshot(folder / "b.properties", text, {}), codes, list(codes))
    except ConfigurationError as error:
        return "\n".join(fault.message for fault in error.faults)
    return ""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))


def test_each_topology_with_a_fault_is_told_with_its_place(tmp_path: Path) -> None:
    said = checked(tmp_path, **SOURCES).splitlines()
    faulty = ("at-import", "syntax", "leaves", "raises")
    assert [line.partition(":")[0] for line in said] == [f"topology '{name}'" for name in faulty]
    assert said[0].endswith("; make Columns in the function, since Spark starts after the import")
    assert said[1].endswith(f"{tmp_path}/checked_syntax.py:1:11: SyntaxError: invalid syntax")
    assert said[2].endswith(f"{tmp_path}/checked_leaves.py:2:1: SystemExit:")
    assert said[3].endswith(f"'checked_raises:build' fails: {tmp_path}/checked_raises.py:2:5: ValueError: no luck")


def test_code_that_ends_or_holds_up_its_process_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = checked(tmp_path, good=SOURCES["good"], ends="import os\nos._exit(0)\n")
    assert said == "topology 'ends': the process that builds it has ended with exit status 0"
    monkeypatch.setattr(check, "_LOAD_SECONDS", 5.0)
    said = checked(tmp_path, waits="import time\ntime.sleep(600)\n")
    assert said == "topology 'waits': its code has not been imported and called within 5 s"
