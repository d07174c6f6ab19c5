"""Tests files of a checkpoint that are named by a URI: their steps, their errors, generations and claims."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.errors import ClientEndedError, HardFailureError, SetupError
from engine.router.generation import Generations, RouterProgress, Start
from engine.router.last_progress import last_progress
from engine.router.position_store import NotedProgress
from engine.spark.checkpoint_lock import CheckpointLock
from engine.spark.hadoop_path import HadoopPath
from routes.config import loads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = Start("journal", "abc", {0: 10}, {"out": {0: 5}}, "b", "routes.a.out.topic=out\n", "r2", "r1")


@pytest.fixture
def root(spark: SparkSession, tmp_path: Path) -> HadoopPath:
    return HadoopPath.of(spark, f"file://{tmp_path}/checkpoint")


def names(folder: HadoopPath) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_and_folders_appear_in_one_step(root: HadoopPath, tmp_path: Path) -> None:
    assert not root.exists()
    with pytest.raises(FileNotFoundError, match="checkpoint/note"):
        (root / "note").read_text()
    with pytest.raises(FileNotFoundError):
        names(root)
    (root / "note").write_text("é")
    (root / "note").write_text("ü")
    assert (root / "note").read_text() == "ü"
    (root / "1").make_with("note", "first")
    with pytest.raises(FileExistsError):
        (root / "1").make_with("note", "second")
    assert (root / "1" / "note").read_text() == "first"
    assert names(root) == ["1", "note"]
    assert (tmp_path / "checkpoint" / "1").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "checkpoint" / "note").stat().st_mode & 0o777 == 0o600
    root.remove()
    root.remove()
    assert not root.exists()


def test_a_file_system_without_a_class_is_refused_with_what_to_do(spark: SparkSession) -> None:
    with pytest.raises(SetupError, match=r"no class for the file system 's3a': .*S3AFileSystem.*extraClassPath"):
        HadoopPath.of(spark, "s3a://bucket/b")


def test_the_newest_generation_is_read_back_and_older_ones_are_removed(root: HadoopPath) -> None:
    generations = Generations(root)
    assert generations.newest() is None
    generations.create(START)
    created = generations.create(replace(START, run="r3", after="r2"))
    created.stop({0: 12})
    assert generations.newest() == created
    assert created.progress() == RouterProgress(created.start, None, {0: 12})
    generations.remove_before(created)
    assert names(root) == ["2", "begun"]


def test_a_generation_of_a_router_that_was_shut_out_does_not_count(
    root: HadoopPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    generations = Generations(root)
    mine = generations.create(START)
    progress = RouterProgress(START, None, None)
    entry = NotedProgress("any other host", root.uri, progress, 1)
    # It continues the generation before mine, and comes into the folder after mine.
    foreign = generations.create(replace(START, run="x", after="r1"))
    assert foreign.number == mine.number + 1
    assert last_progress(generations, entry, "abc", is_trial=True) == progress
    # Both take the same number at the same time: the later one has the next.
    monkeypatch.setattr("engine.router.generation.numbered", lambda _: {})
    assert generations.create(replace(START, run="y")).number == foreign.number + 1


def test_a_checkpoint_that_is_gone_is_refused_on_any_machine(root: HadoopPath) -> None:
    entry = NotedProgress("any other host", root.uri, RouterProgress(START, None, None), 1)
    with pytest.raises(HardFailureError, match=r"there is none in file:.* any more"):
        last_progress(Generations(root), entry, "abc")


def test_a_claim_from_another_machine_shuts_out_the_one_before(
    spark: SparkSession, root: HadoopPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.spark.checkpoint_lock._LOOK_SECONDS", 0.0)
    text = "bridge.id=b\nroutes.r.in.include=TRUE\nroutes.r.out.topic=x\nsource.s.type=dropbox\nsource.s.root=in\n"
    text += "source.s.destinations=queue:q\nkafka.bootstrap.servers=127.0.0.1:9092\nembedded.data="
    here, there = (loads(f"{text}{name}", tmp_path) for name in ("here", "there"))
    first = CheckpointLock(spark, here.embedded.data, root, 0.0)
    first.check()
    second = CheckpointLock(spark, there.embedded.data, root, 0.0)
    second.check()
    with pytest.raises(ClientEndedError, match=r'has been claimed since, by \{"host": .*only one may work with it'):
        first.check()
    first.release()
    # A claim does not outlive the state that it is for.
    root.remove()
    with pytest.raises(ClientEndedError, match="removed the claims"):
        second.check()
    second.release()
