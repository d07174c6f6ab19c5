"""Tests where a router goes on: by its checkpoint, by what is noted in Kafka, or not at all."""

from __future__ import annotations

import json
import shutil
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import HardFailureError
from engine.router.generation import Committed, Generation, Generations, RouterProgress, Start
from engine.router.last_progress import last_progress
from engine.router.position_store import NotedProgress, entry_of

START = Start(
    journal="journal",
    journal_id="abc",
    positions={0: 10, 1: 0},
    outputs={"out": {0: 5}},
    bridge_id="b",
    routes="routes.a.out.topic=out\n",
    run="r2",
    after="r1",
)
COMMITTED = Committed({0: 20, 1: 5}, 1000)


@pytest.fixture
def generations(tmp_path: Path) -> Generations:
    return Generations(tmp_path / "checkpoint")


def noted(generations: Generations, start: Start = START, host: str = "", path: str = "") -> NotedProgress:
    """What is noted of a run, on this machine and in this folder if nothing else is said."""
    progress = RouterProgress(start, COMMITTED, None)
    where = str(generations.root.absolute())
    return NotedProgress(host or socket.gethostname(), path or where, progress, round((time.time() - 90) * 1000))


def test_the_first_start_of_all(generations: Generations) -> None:
    assert last_progress(generations, None, "abc") is None


def test_the_checkpoint_of_the_last_run_is_used(generations: Generations) -> None:
    generation = generations.create(START)
    generation.stop({0: 12})
    assert last_progress(generations, noted(generations), "abc") == generation.progress()


def test_that_of_a_run_which_died_before_it_was_noted_is_used(generations: Generations) -> None:
    generation = generations.create(replace(START, run="r3", after="r2"))
    assert last_progress(generations, noted(generations), "abc") == generation.progress()


def test_one_of_an_earlier_version_is_used_where_nothing_is_noted(generations: Generations) -> None:
    generation = generations.create(replace(START, run="", after=""))
    assert last_progress(generations, None, "abc") == generation.progress()


@pytest.mark.parametrize("elsewhere", [{"host": "other"}, {"path": "/other/checkpoint"}])
def test_without_a_checkpoint_it_goes_on_where_another_was(generations: Generations, elsewhere: dict[str, str]) -> None:
    entry = noted(generations, **elsewhere)
    assert last_progress(generations, entry, "abc") == entry.progress


def test_with_an_old_one_it_goes_on_where_another_was(generations: Generations) -> None:
    generations.create(replace(START, run="r1", after="")).stop({0: 9})
    entry = noted(generations, host="other")
    assert last_progress(generations, entry, "abc") == entry.progress


def test_a_folder_restored_from_an_old_copy_goes_on_from_the_note(generations: Generations) -> None:
    generations.create(replace(START, run="r0", after="")).stop({0: 9})
    entry = noted(generations)
    assert last_progress(generations, entry, "abc") == entry.progress


def test_an_old_one_that_is_damaged_does_not_matter(generations: Generations) -> None:
    damage(generations.create(replace(START, run="r1")))
    entry = noted(generations, host="other")
    assert last_progress(generations, entry, "abc") == entry.progress


def test_what_is_noted_of_a_journal_that_was_made_anew_does_not_count(generations: Generations) -> None:
    assert last_progress(generations, noted(generations), "xyz") is None
    assert last_progress(generations, noted(generations, host="other"), "xyz") is None


def test_brokers_without_ids_of_topics_leave_the_note_to_count(generations: Generations) -> None:
    entry = noted(generations, host="other")
    assert last_progress(generations, entry, "") == entry.progress


def test_one_that_is_gone_is_refused_with_two_ways_out(generations: Generations) -> None:
    generations.create(START)
    shutil.rmtree(generations.root)
    with pytest.raises(HardFailureError) as caught:
        last_progress(generations, noted(generations), "abc")
    root = generations.root
    assert str(caught.value) == (
        f"the router's checkpoint cannot be used: there is none in {root} any more. Either restore {root} from a copy, "
        "or set router.checkpoint to another folder: the router then goes on from where it was by its note in Kafka, "
        "which is 90 s old, without loss or duplicates"
    )


def test_one_that_is_damaged_is_refused_with_two_ways_out(generations: Generations) -> None:
    damage(generations.create(START))
    with pytest.raises(HardFailureError, match=r"start\.json is damaged.*Either restore .* or set router\.checkpoint"):
        last_progress(generations, noted(generations), "abc")


def test_one_of_a_newer_version_is_refused_without_advice_to_remove_it(generations: Generations) -> None:
    (generations.create(START).folder / "start.json").write_text('{"version": 2}')
    with pytest.raises(HardFailureError) as caught:
        last_progress(generations, None, "abc")
    root = generations.root
    assert str(caught.value) == (
        f"the router's checkpoint cannot be used: a newer version of the bridge wrote {root}/1/start.json, in form 2, "
        "and this version reads form 1. "
        f"Start that version again, or restore {root} from a copy that this version wrote"
    )


def test_one_that_is_damaged_and_noted_nowhere_is_refused(generations: Generations) -> None:
    damage(generations.create(START))
    with pytest.raises(HardFailureError, match=r"start\.json is damaged.*Either restore .* or remove it: .* again"):
        last_progress(generations, None, "abc")


def test_commits_that_are_gone_are_refused_like_any_damage(generations: Generations) -> None:
    generation = generations.create(START)
    for number in "01":
        path = generation.checkpoint / "offsets" / number
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("v1\n{}\n{}")
    with pytest.raises(HardFailureError, match="has no commits any more"):
        last_progress(generations, noted(generations), "abc")


def damage(generation: Generation) -> None:
    (generation.folder / "start.json").write_text("{")


WHERE = {"version": 1, "time_ms": 1, "host": "h", "path": "/p"}
BEGUN = {
    **WHERE,
    "journal": "j",
    "journal_id": "",
    "positions": {"0": 1},
    "outputs": {},
    "bridge_id": "b",
    "routes": "",
}


def record(fields: object) -> bytes:
    return json.dumps(fields).encode()


def test_two_records_make_an_entry() -> None:
    progress = {"version": 1, "time_ms": 2, "run": "r", "stopped": None}
    progress["committed"] = {"positions": {"0": 7}, "time_ms": 5}
    entry = entry_of(record({**BEGUN, "run": "r", "after": ""}), record(progress), "t")
    assert entry is not None
    assert (entry.host, entry.path, entry.time_ms) == ("h", "/p", 2)
    assert entry.progress.committed == Committed({0: 7}, 5)
    assert entry.progress.stopped is None
    assert entry.progress.start.positions == {0: 1}


def test_the_progress_of_another_run_does_not_count() -> None:
    progress = {"version": 1, "time_ms": 2, "run": "before", "stopped": {"0": 9}, "committed": None}
    entry = entry_of(record({**BEGUN, "run": "r"}), record(progress), "t")
    assert entry is not None
    assert (entry.time_ms, entry.progress.stopped) == (1, None)


def test_without_a_start_there_is_no_entry() -> None:
    assert entry_of(None, record({"version": 1, "run": "r"}), "t") is None


@pytest.mark.parametrize(
    ("start", "progress"),
    [
        (b"", None),
        (b"[]", None),
        (b"\xff", None),
        (record({**BEGUN, "version": 2}), None),
        (record({**BEGUN, "positions": {"x": 1}}), None),
        (record({**BEGUN, "positions": None}), None),
        (record(WHERE), None),
        (record({**BEGUN, "run": "r"}), b"{"),
        (record({**BEGUN, "run": "r"}), record({"version": 1, "run": "r"})),
    ],
)
def test_what_the_bridge_did_not_write_is_a_clear_error(start: bytes, progress: bytes | None) -> None:
    with pytest.raises(HardFailureError, match=r"noted in topic 't', cannot be read: .* another journal\.state-topic"):
        entry_of(start, progress, "t")
