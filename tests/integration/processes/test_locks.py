"""Locks between bridges, held by real processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.errors import SetupError
from engine.supervision.locks import hold
from routes.errors import BridgeError
from tests.processes import gone

HOLDER = """
import subprocess, sys
from pathlib import Path
from engine.supervision.locks import hold
with hold(Path(sys.argv[1]), ["router"]) as locks:
    child = subprocess.Popen(["/bin/sleep", sys.argv[2]], pass_fds=locks.values(), stdout=subprocess.DEVNULL)
    print(child.pid, flush=True)
    sys.stdin.read()
    child.kill()
    child.wait()
"""


def holder(folder: Path, seconds: float) -> tuple[subprocess.Popen[str], int]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    return process, int(process.stdout.readline())


def test_each_part_has_a_lock_of_its_own_whatever_its_name(tmp_path: Path) -> None:
    parts = ["source:orders/2", "source:orders-2", "source:orders.2", "sink:orders/2"]
    with hold(tmp_path, parts) as held:
        assert list(held) == parts


def end(process: subprocess.Popen[str]) -> None:
    process.communicate(timeout=10)


def test_a_second_bridge_on_the_same_data_is_refused_in_one_line(tmp_path: Path) -> None:
    process, _ = holder(tmp_path, 60)
    try:
        with pytest.raises(SetupError) as caught, hold(tmp_path, ["source:orders", "router"]):
            pass
    finally:
        end(process)
    assert str(caught.value) == (
        f"another bridge (process {process.pid}) runs router on {tmp_path}; "
        "stop it, or set embedded.data to another folder"
    )
    with hold(tmp_path, ["source:orders", "router"]) as locks:
        assert set(locks) == {"source:orders", "router"}


def test_other_parts_may_run_on_the_same_data(tmp_path: Path) -> None:
    process, _ = holder(tmp_path, 60)
    try:
        with hold(tmp_path, ["source:orders"]) as locks:
            assert set(locks) == {"source:orders"}
    finally:
        end(process)


def test_the_part_of_a_bridge_that_was_killed_is_waited_for(tmp_path: Path) -> None:
    process, child = holder(tmp_path, 1.5)
    began = time.monotonic()
    process.kill()
    end(process)
    assert not gone(child)
    with hold(tmp_path, ["router"]):
        assert time.monotonic() - began > 1
        assert gone(child)


def test_a_part_of_a_killed_bridge_that_does_not_end_is_no_other_bridge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.supervision.locks._ENDING_SECONDS", 0.3)
    process, child = holder(tmp_path, 60)
    process.kill()
    end(process)
    try:
        with pytest.raises(BridgeError) as caught, hold(tmp_path, ["router"]):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
    text = f"router of a bridge that was killed (process {process.pid}) still runs on {tmp_path} after 0 s: start again"
    assert str(caught.value).startswith(text)
    # What starts the bridge again after a crash does so after this error as well.
    assert caught.value.exit_code == BridgeError.exit_code == 1


def test_a_folder_that_cannot_be_written_is_named_with_its_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    expected = r"^embedded\.data=.*/file cannot be written: Not a directory; "
    with pytest.raises(SetupError, match=expected), hold(tmp_path / "file", ["router"]):
        pass
