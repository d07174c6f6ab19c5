"""The order in which files of a folder are taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.connectors.dropbox import pending_files
from engine.connectors.dropbox.folder import Folder
from engine.connectors.dropbox.pending_files import PendingFiles

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from engine.connectors.dropbox.file_name import Rank


def test_a_file_that_a_listing_has_missed_is_not_overtaken_by_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        (tmp_path / name).touch()
    listed = pending_files.ranked
    listings = 0

    def missing(folder: Folder) -> list[Rank]:
        """As readdir(3) may: what comes while the first listing is made is in it or not, and `d` comes after it."""
        nonlocal listings
        listings += 1
        if listings == 2:
            (tmp_path / "d").touch()
        return [rank for rank in listed(folder) if listings > 1 or rank.filename != "b"]

    monkeypatch.setattr(pending_files, "ranked", missing)
    taken: list[str] = []
    with Folder.open(str(tmp_path)) as folder:
        files = PendingFiles(folder, 0.0, lambda: True)
        while len(taken) < 4 and (name := files.next(taken)):
            taken.append(name)
            (tmp_path / name).unlink()

    assert taken == ["a", "b", "c", "d"]
