"""The wheel: installed into an environment of its own it runs in an empty folder, without this repository."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.bridge_process import ROOT, configuration, wait
from tests.waiting import patience

if TYPE_CHECKING:
    from collections.abc import Iterator

NUMBER = {"region": "emea", "number": "42"}


@pytest.fixture(scope="module")
def bin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment that has the wheel, and our own packages as its dependencies."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT], check=True
    )
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    own = folder / "venv" / "lib" / Path(sysconfig.get_path("purelib")).relative_to(Path(sys.prefix, "lib"))
    # Behind its own: what is installed there comes first, and no `.pth` of ours is looked at. It has no pip but ours.
    (own / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = folder / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
    return python.parent


@pytest.fixture
def bridge(bin_folder: Path, tmp_path: Path) -> Iterator[Path]:
    """The properties file of one that runs."""
    file = configuration(tmp_path)
    log = tmp_path / "bridge.log"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JMS_BRIDGE", "PYTHON"))}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [bin_folder / "jms-bridge", "run", "-c", file], cwd=tmp_path, env=environment, stdout=output, stderr=output
        )
    try:
        wait(lambda: "ready after" in log.read_text() or process.poll() is not None, log.read_text)
        assert process.poll() is None, log.read_text()
        yield file
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(patience(60))
    assert code == 0, log.read_text()


def test_a_message_goes_in_and_comes_out(bridge: Path, bin_folder: Path) -> None:
    command = bin_folder / "jms-bridge"
    properties = [word for name, value in NUMBER.items() for word in ("--property", f"{name}={value}")]
    send = [command, "send", "queue:orders", *properties, "hello", "-c", bridge]
    subprocess.run(send, cwd=bridge.parent, check=True, timeout=patience(60))
    receive = [command, "receive", "kafka:routed", "-c", bridge, "-n", "1"]
    done = subprocess.run(receive, cwd=bridge.parent, check=True, timeout=patience(60), capture_output=True, text=True)
    assert "hello" in done.stdout


def test_it_brings_a_properties_file_to_begin_with(bin_folder: Path, tmp_path: Path) -> None:
    subprocess.run([bin_folder / "jms-bridge", "init"], cwd=tmp_path, check=True, timeout=patience(60))
    template = ROOT / "engine/cli/templates/jms-bridge.properties"
    assert (tmp_path / "jms-bridge.properties").read_text() == template.read_text()


def test_it_is_the_installed_one(bin_folder: Path, tmp_path: Path) -> None:
    program = "import engine, routes, engine.jars; print(engine.__file__, routes.__file__, engine.jars.jars())"
    done = subprocess.run(
        [bin_folder / "python", "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert all(str(bin_folder.parent) in path for path in done.stdout.split())
