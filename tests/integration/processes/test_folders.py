"""Folders of processes: for one user, and cleared of what killed ones have left."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.embedded.process import ChildProcess
from engine.spark.launch import own_folder

ROUTER = """
import pathlib, sys
from engine.spark.launch import own_folder
print(own_folder(pathlib.Path(sys.argv[1])), flush=True)
input()
"""


@pytest.fixture
def open_umask() -> Iterator[None]:
    """The most open one there is."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.usefixtures("open_umask")
def test_what_an_embedded_server_makes_is_for_one_user(tmp_path: Path) -> None:
    script = "import os; os.mkdir('data'); open('data/log', 'w').close()"
    process = ChildProcess([sys.executable, "-c", script], tmp_path, tmp_path / "console.log")
    assert process.ended_within(20)
    process.stop(1)
    assert (mode(tmp_path / "data"), mode(tmp_path / "data" / "log")) == (0o700, 0o600)


def test_what_killed_routers_have_left_goes_and_what_others_use_stays(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ROUTER, str(tmp_path / "tmp")]
    others = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    folders = [Path(other.stdout.readline().strip()) for other in others if other.stdout]
    for folder in folders:
        (folder / "liblz4.so").touch()
    others[0].kill()
    others[0].communicate()

    own = own_folder(tmp_path / "tmp")

    assert [path.name for path in own.iterdir()] == ["lock"]
    assert {path for path in (tmp_path / "tmp").iterdir() if path.is_dir()} == {own, folders[1]}
    assert (folders[1] / "liblz4.so").exists()
    others[1].kill()
    others[1].communicate()
