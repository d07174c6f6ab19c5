"""What the bridge makes for itself is closed to other users, whatever the umask that it was started with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.private import create_file, make_folder
from engine.router.generation import Generations, Start
from engine.spark.launch import own_folder
from engine.supervision.locks import hold
from tests.unit.connectors.dropbox_bridge import Bridge


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """The most open one there is."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_folder_and_those_above_it_are_for_one_user(tmp_path: Path) -> None:
    make_folder(tmp_path / "var" / "kafka" / "log")
    assert [mode(tmp_path / name) for name in ("var", "var/kafka", "var/kafka/log")] == [0o700] * 3


def test_a_folder_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir(mode=0o750)
    make_folder(tmp_path / "var" / "log")
    make_folder(tmp_path / "var")
    assert [mode(tmp_path / name) for name in ("var", "var/log")] == [0o750, 0o700]


def test_a_file_in_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "var").touch()
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "var")


def test_a_file_is_new_and_for_one_user(tmp_path: Path) -> None:
    with create_file(tmp_path / "a") as file:
        file.write("é")
    assert (mode(tmp_path / "a"), (tmp_path / "a").read_bytes()) == (0o600, "é".encode())
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "a")


def test_locks_temporary_folders_and_checkpoints_are_for_one_user(tmp_path: Path) -> None:
    with hold(tmp_path / "var", ["router"]):
        pass
    own_folder(tmp_path / "spark" / "tmp")
    Generations(tmp_path / "checkpoint").create(Start("journal", "", {0: 0}, {}, "b", ""))
    for top in ("var", "spark", "checkpoint"):
        folders = [path for path in (tmp_path / top, *(tmp_path / top).rglob("*")) if path.is_dir()]
        assert {mode(folder) for folder in folders} == {0o700}
    assert mode(tmp_path / "var" / "locks" / "router.lock") == 0o600


def test_a_dropbox_is_shared_as_the_umask_says(tmp_path: Path) -> None:
    os.umask(0o007)
    bridge = Bridge(tmp_path)
    source = bridge.source("queue:new")
    assert mode(tmp_path / "spool" / "new" / "incoming" / "target") == 0o770
    source.close()
