"""Files that are on disk before anybody is told of them, few or many."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from engine.connectors.dropbox import folder as folder_module
from engine.connectors.dropbox.folder import FileBatch, Folder


@pytest.fixture(autouse=True)
def fresh() -> None:
    folder_module._syncfs.cache_clear()


class Syncs:
    """Counts calls instead of making them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.single = 0
        self.whole = 0
        self.fails = False
        monkeypatch.setattr(folder_module.os, "fsync", self._one)
        monkeypatch.setattr(folder_module.ctypes, "CDLL", lambda *_, **__: self)
        monkeypatch.setattr(folder_module.ctypes, "get_errno", lambda: errno.EIO)

    def syncfs(self, _: int) -> int:
        self.whole += 1
        return -1 if self.fails else 0

    def _one(self, _: int) -> None:
        self.single += 1


def written(folder: Path, count: int) -> None:
    with Folder.open(str(folder)) as opened, FileBatch(opened) as own:
        for number in range(count):
            own.write(str(number), b"x" * number)
        own.sync()


@pytest.mark.parametrize(("count", "single", "whole"), [(0, 1, 0), (1, 2, 0), (8, 9, 0), (9, 0, 1), (500, 0, 1)])
def test_few_files_are_synced_one_by_one_and_many_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, single: int, whole: int
) -> None:
    syncs = Syncs(monkeypatch)
    written(tmp_path, count)
    assert (syncs.single, syncs.whole) == (single, whole)
    assert [(tmp_path / str(number)).stat().st_size for number in range(count)] == list(range(count))


@pytest.mark.parametrize("release", ["5.7.19-generic", "4.18.0", "strange"])
def test_a_kernel_that_would_not_tell_of_errors_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str
) -> None:
    syncs = Syncs(monkeypatch)
    monkeypatch.setattr(folder_module.os, "uname", lambda: os.uname_result(("Linux", "n", release, "v", "m")))
    written(tmp_path, 20)
    assert (syncs.single, syncs.whole) == (21, 0)


def test_an_error_of_the_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Syncs(monkeypatch).fails = True
    with pytest.raises(OSError, match="Input/output error"):
        written(tmp_path, 20)


def test_many_files_are_written_by_the_system_itself(tmp_path: Path) -> None:
    written(tmp_path, 50)
    assert len(list(tmp_path.iterdir())) == 50
    assert len(os.listdir("/proc/self/fd")) < 200  # noqa: PTH208
