"""The Python programs in the documentation run, those of each page in a process of their own, with nothing prepared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documented_programs import blocks

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("name", "way", "least"), [("api", "as-one", 7), ("streams", "each", 8)])
def test_the_programs_of_a_page_run(name: str, way: str, least: int, tmp_path: Path) -> None:
    page = ROOT / "docs" / f"{name}.md"
    ended = subprocess.run(
        [sys.executable, "-m", "tests.documented_programs", str(page), way],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=480,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    ran = [line for line in ended.stdout.splitlines() if line.startswith(f"ran {page.name}:")]
    assert len(ran) == len(blocks(page)) >= least
