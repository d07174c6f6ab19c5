"""Source files of topologies as they were at one moment, and modules that are imported from them."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.topologies.library.python_functions import PackedFunction, pickled
from engine.topologies.library.served_modules import serve
from engine.topologies.runtime.code import TopologyCode, dump_codes, load_codes, read_code

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPOLOGY = """\
import json, pyspark, rates.emea
from .shared import RATE
from engine.streams import text
def build():
    import late
    return RATE, late.NAME, rates.emea.NAME
def tag(record, context):
    return RATE
"""
FILES = {
    "billing/__init__.py": "from . import shared\n",
    "billing/topology.py": TOPOLOGY,
    "billing/shared.py": "RATE = 'old'\n",
    "billing/unused.py": "no python\n",
    "rates/emea.py": "NAME = 'emea'\n",
    "late.py": "NAME = 'late'\n",
    "other.py": "",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    serve([])
    for name in FILES:
        forget(Path(name).parts[0].removesuffix(".py"))


def forget(package: str) -> None:
    importlib.invalidate_caches()
    for loaded in [each for each in sys.modules if each.partition(".")[0] == package]:
        del sys.modules[loaded]


def names(code: TopologyCode) -> list[str]:
    return [each.name for each in code.modules]


def test_code_is_the_module_and_the_users_own_modules_that_it_imports(folder: Path) -> None:
    code = read_code("billing.topology:build", folder)
    assert names(code) == ["billing", "billing.shared", "billing.topology", "late", "rates", "rates.emea"]
    assert names(read_code("no_such.module:build", folder)) == []
    assert names(read_code("not a module", folder)) == []
    # A package that is installed counts if the topology is in it.
    assert "structlog" in names(read_code("structlog:build", folder))


def test_changed_files_are_told_and_change_the_hash(folder: Path) -> None:
    before = read_code("billing.topology:build", folder)
    (folder / "other.py").write_text("x = 1\n")
    assert read_code("billing.topology:build", folder) == before
    (folder / "billing/shared.py").write_text("RATE =\n")
    (folder / "late.py").unlink()
    after = read_code("billing.topology:build", folder)
    changed = {str(folder / "billing/shared.py"), str(folder / "late.py")}
    assert set(before.changed(after)) == set(after.changed(before)) == changed
    assert before.hash != after.hash
    assert before.changed(before) == []


def test_modules_are_imported_from_code_whatever_is_on_disk(folder: Path) -> None:
    code = load_codes(dump_codes({"t": read_code("billing.topology:build", folder)}))["t"]
    for name in ("billing/topology.py", "billing/shared.py", "rates/emea.py", "late.py"):
        (folder / name).write_text("a broken file\n")
    serve(code.modules)
    module = importlib.import_module("billing.topology")
    assert module.build() == ("old", "late", "emea")
    assert module.__file__ == str(folder / "billing/topology.py")
    assert not hasattr(importlib.import_module("other"), "RATE")


def test_functions_bring_their_code_to_another_process(folder: Path) -> None:
    serve(read_code("billing.topology:build", folder).modules)
    tag = importlib.import_module("billing.topology").tag
    plain, data = pickle.dumps((0, tag)), pickled(PackedFunction("n", tag, None, b"", None, True, {}))
    (folder / "billing/shared.py").write_text("RATE = 'newer'\n")
    for given, returned in ((plain, "newer"), (data, "old")):
        # As in a process that has imported nothing yet.
        serve([])
        forget("billing")
        assert pickle.loads(given)[1](None, None) == returned  # noqa: S301 - our own bytes
