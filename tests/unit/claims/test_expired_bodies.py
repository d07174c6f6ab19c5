"""Bodies that were kept long enough are removed by whole days, and nothing else is."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from engine.router.expired_bodies import remove_expired

DAY = 86_400.0
NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)


def made(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).mkdir()
        (folder / name / "body").write_bytes(b"x")


def test_days_that_are_over_for_long_enough_are_removed(tmp_path: Path) -> None:
    made(tmp_path, "2025-12-31", "2026-11-25", "2026-11-26", "2026-11-27", "2026-11-28")
    assert list(remove_expired(tmp_path, 2 * DAY, NOW)) == ["2025-12-31", "2026-11-25"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2026-11-26", "2026-11-27", "2026-11-28"]
    assert list(remove_expired(tmp_path, 1.5 * DAY, NOW)) == ["2026-11-26"]


def test_what_the_bridge_did_not_make_stays(tmp_path: Path) -> None:
    made(tmp_path, "2020-01-01", "2020-01-01.old", "2020-1-1", "orders", "2020-99-99")
    (tmp_path / "notes").write_text("x")
    assert list(remove_expired(tmp_path, DAY, NOW)) == ["2020-01-01"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2020-01-01.old", "2020-1-1", "2020-99-99", "notes",
                                                               "orders"]  # fmt: skip


def test_a_folder_that_is_not_there_has_nothing_to_remove(tmp_path: Path) -> None:
    assert list(remove_expired(tmp_path / "bodies", DAY, NOW)) == []
