"""The file of paused parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import SetupError
from engine.supervision.pauses import Pauses


def test_pauses_are_there_again_after_a_restart_and_the_first_user_counts(tmp_path: Path) -> None:
    file = tmp_path / "data" / "paused.json"
    pauses = Pauses(file)
    pauses.add(["sink:a", "sink:a/2"], "ann@host")
    pauses.add(["sink:a"], "bob@host")
    again = Pauses(file)
    assert str(again.find("sink:a")).startswith("paused by ann@host at 2")
    again.remove(["sink:a"], "bob@host")
    assert [name for name in ("sink:a", "sink:a/2") if Pauses(file).find(name)] == ["sink:a/2"]
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["{", "[]", '{"sink:a": 1}', '{"sink:a": {"who": "ann"}}'])
def test_a_damaged_file_starts_no_part_by_mistake(tmp_path: Path, text: str) -> None:
    file = tmp_path / "paused.json"
    file.write_text(text)
    with pytest.raises(SetupError, match="delete it to start all parts"):
        Pauses(file)


def test_what_cannot_be_written_down_is_not_done(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "paused.json"
    kept = Pauses(file)
    (tmp_path / "folder").write_text("a file, where a folder is to be")
    with pytest.raises(SetupError, match="nothing is paused or resumed"):
        kept.add(["sink:a"], "ann@host")
    assert kept.find("sink:a") is None


def test_routes_are_known_by_their_names(tmp_path: Path) -> None:
    pauses = Pauses(tmp_path / "paused.json")
    pauses.add(["sink:a", "route:orders"], "ann@host")
    again = Pauses(tmp_path / "paused.json")
    assert list(again.routes) == ["orders"]
    again.remove(["route:orders"], "ann@host")
    assert list(again.routes) == []
