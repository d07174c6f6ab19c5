"""Any bytes are refused as a row, or read without a look at others: the fuzz target of rows, briefly."""

from __future__ import annotations

import subprocess

from tests.fuzz.rows import fuzz_command


def test_changed_rows_are_refused_or_read_by_their_own_bytes_alone() -> None:
    done = subprocess.run(fuzz_command(5, seed=1), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-3_000:]
    assert "stat::number_of_executed_units" in done.stdout
