"""Tests what a run leaves on disk, and that what is damaged is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.router.generation import (
    Committed,
    DamagedError,
    Generation,
    Generations,
    NewerFormatError,
    RouterProgress,
    Start,
)

START = Start(
    journal="journal",
    journal_id="abc",
    positions={0: 10, 1: 0},
    outputs={"out": {0: 5}},
    bridge_id="b",
    routes="routes.a.out.topic=out\n",
)


def committed(generation: Generation, *numbers: int) -> Path:
    """Writes Spark's files for these intervals, each ten records on."""
    for number in numbers:
        for name, text in (
            ("offsets", f'v1\n{{"batchTimestampMs":{number}}}\n{{"journal":{{"0":{20 + number * 10},"1":3}}}}'),
            ("commits", 'v1\n{"nextBatchWatermarkMs":0}'),
        ):
            path = generation.checkpoint / name / str(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return generation.checkpoint


def test_a_first_start_has_no_generation(tmp_path: Path) -> None:
    assert Generations(tmp_path / "none").newest() is None


def test_the_newest_generation_is_read_back_and_older_ones_are_gone(tmp_path: Path) -> None:
    generations = Generations(tmp_path / "checkpoint")
    generations.create(START)
    created = generations.create(START)
    assert created.number == 2
    assert generations.newest() == created
    generations.remove_before(created)
    assert generations.newest() == created
    assert sorted(path.name for path in (tmp_path / "checkpoint").iterdir()) == ["2", "begun"]


def test_what_was_being_made_when_the_process_died_is_nothing(tmp_path: Path) -> None:
    generations = Generations(tmp_path)
    first = generations.create(START)
    (tmp_path / "2.tmp").mkdir()
    assert generations.newest() == first
    assert generations.create(START).number == 2


def test_a_clean_stop_is_remembered(tmp_path: Path) -> None:
    generation = Generations(tmp_path).create(START)
    assert generation.stopped() is None
    generation.stop({0: 12, 1: -1})
    assert generation.stopped() == {0: 12, 1: -1}


def test_the_last_committed_interval_counts(tmp_path: Path) -> None:
    generation = Generations(tmp_path).create(START)
    assert generation.committed() is None
    checkpoint = committed(generation, 0, 9, 10)
    (checkpoint / "offsets" / "11").write_text("cut short")
    (checkpoint / "commits" / ".10.crc").write_text("not a number")
    found = generation.committed()
    assert found is not None
    assert (found.positions, found.time_ms) == ({0: 120, 1: 3}, 10)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"version": 0}', '{"version": "2"}', '{"version": 1}'])
def test_a_damaged_start_is_reported(tmp_path: Path, damage: str) -> None:
    generations = Generations(tmp_path)
    (generations.create(START).folder / "start.json").write_text(damage)
    with pytest.raises(DamagedError, match=r"start.json is damaged"):
        generations.newest()


@pytest.mark.parametrize("name", ["start.json", "stop.json"])
def test_a_file_of_a_newer_version_is_told_from_a_damaged_one(tmp_path: Path, name: str) -> None:
    generations = Generations(tmp_path)
    generation = generations.create(START)
    (generation.folder / name).write_text('{"version": 2}')
    with pytest.raises(NewerFormatError, match=rf"newer version .* wrote {tmp_path}/1/{name}, in form 2, .* form 1$"):
        (generations.newest() or generation).stopped()


def test_a_missing_start_is_refused(tmp_path: Path) -> None:
    generations = Generations(tmp_path)
    (generations.create(START).folder / "start.json").unlink()
    with pytest.raises(DamagedError, match=r"start.json is missing"):
        generations.newest()


def test_a_checkpoint_whose_generations_were_removed_is_refused(tmp_path: Path) -> None:
    generations = Generations(tmp_path)
    generations.create(START).folder.rename(tmp_path / "elsewhere")
    with pytest.raises(DamagedError, match="has no generation any more"):
        generations.newest()


def test_the_progress_of_a_generation_is_all_that_it_wrote_down(tmp_path: Path) -> None:
    generation = Generations(tmp_path).create(START)
    assert generation.progress() == RouterProgress(START, None, None)
    assert generation.commits() == -1
    committed(generation, 0, 1)
    generation.stop({0: 1})
    assert generation.progress() == RouterProgress(START, generation.committed(), {0: 1})
    assert generation.commits() == 1


def test_a_start_of_an_earlier_version_has_no_name(tmp_path: Path) -> None:
    generation = Generations(tmp_path).create(START)
    path = generation.folder / "start.json"
    path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k not in ("run", "after")}))
    assert Generations(tmp_path).newest() == generation


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("commits/1", None, ""),
        ("commits", None, "commits has no commits any more"),
        ("offsets/1", None, "offsets/1 is missing"),
        ("offsets/1", "", "offsets/1 is damaged"),
        ("offsets/1", "v2\n{}\n{}", "has format 'v2'"),
        ("offsets/1", 'v1\n{"batchTimestampMs":1}\n{"other":{}}', "offsets/1 is damaged"),
        ("commits/1", "", "commits/1 is damaged"),
    ],
)
def test_damage_to_sparks_own_files(tmp_path: Path, path: str, text: str | None, message: str) -> None:
    generation = Generations(tmp_path).create(START)
    at = committed(generation, 0, 1) / path
    if text is not None:
        at.write_text(text)
    elif at.is_dir():
        for file in at.iterdir():
            file.unlink()
    else:
        at.unlink()
    if not message:
        # The newest commit alone: indistinguishable from an interval cut short, and as safe.
        found = generation.committed()
        assert found is not None
        assert found.positions == {0: 20, 1: 3}
        return
    with pytest.raises(DamagedError, match=message):
        generation.committed()


def test_a_damaged_stop_is_refused(tmp_path: Path) -> None:
    generation = Generations(tmp_path).create(START)
    generation.stop({0: 1})
    (generation.folder / "stop.json").write_text("{}")
    with pytest.raises(DamagedError, match=r"stop.json is damaged"):
        generation.stopped()


def test_the_next_generation_may_begin_behind_what_was_committed_or_decided_on() -> None:
    crashed = RouterProgress(START, Committed({0: 20}, time_ms=0), stopped=None)
    assert crashed.positions == {0: 20, 1: 0}
    # Of partition 1 it decided on nothing since it began; partition 2 was added meanwhile.
    stopped = RouterProgress(START, Committed({0: 20, 1: 7}, time_ms=0), stopped={0: 24, 1: -1, 2: 3})
    assert stopped.positions == {0: 25, 1: 7, 2: 4}
