"""The unit in `deploy/systemd`, taken by systemd."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze") or pytest.skip("no systemd-analyze: it is in Debian's package systemd")
    unit = (ROOT / "deploy/systemd/jms-bridge.service").read_text()
    file = tmp_path / "jms-bridge.service"
    file.write_text(unit.replace("/opt/jms-bridge/bin/jms-bridge", "/bin/true"))
    done = subprocess.run([program, "verify", "--man=no", str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
