"""Files of the state: links in place of copies, bounded memory, and errors that say what is damaged."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from engine.streams import StreamsBuilder, TopologyTestDriver, json
from tests.spark.topologies.test_state_store import run_in

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 # another file system than that of temporary files


@pytest.fixture
def driver(spark: SparkSession) -> TopologyTestDriver:
    builder = StreamsBuilder("files")
    builder.table("in", value=json("n int"), name="table").to("out")
    return TopologyTestDriver(builder.build(), spark)


def fill(driver: TopologyTestDriver, run: Any, commits: int) -> None:
    """Makes versions that are whole copies, each with a table that is new; another call has the same keys."""
    for commit in range(commits):
        for number in range(200):
            driver.pipe_input("in", f"k{commit}-{number}", {"n": number})
        run.commit()
        run.maintain()


@contextmanager
def next_run(driver: TopologyTestDriver, spark: SparkSession, folder: Path, commit: int) -> Iterator[Any]:
    """A run that begins after the end of the one before, at a commit of it."""
    driver._run.giveUp()
    run = run_in(driver, spark, folder, 0)
    run.goOn(commit)
    yield run
    run.giveUp()


def tables(folder: Path) -> list[Path]:
    return sorted((folder / "0" / "SSTs").glob("*.sst"))


def test_a_run_opens_tables_by_links(spark: SparkSession, tmp_path: Path, driver: TopologyTestDriver) -> None:
    fill(driver, run_in(driver, spark, tmp_path, 0), 3)
    links = {each: each.stat().st_nlink for each in tables(tmp_path)}
    assert len(links) >= 3
    # A table in the checkpoint is the one that RocksDB has written, with the rights of all other files there.
    assert max(links.values()) >= 2
    assert {each.stat().st_mode for each in links} == {each.stat().st_mode for each in tmp_path.glob("0/*.zip")}
    assert not list(tmp_path.rglob("*.sst.crc"))
    with next_run(driver, spark, tmp_path, 3) as run:
        assert any(each.stat().st_nlink > number for each, number in links.items())
        assert run.entries() >= 600
        # What RocksDB does with its tables from now on leaves those of the commit as they are.
        before = {each: each.read_bytes() for each in links}
        fill(driver, run, 12)
        assert {each: each.read_bytes() for each in before if each.exists()} == {
            each: content for each, content in before.items() if each.exists()
        }


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system than that of temporary files."""
    if not os.access(_SHARED_MEMORY, os.W_OK) or _SHARED_MEMORY.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is one file system alone")
    folder = Path(tempfile.mkdtemp(dir=_SHARED_MEMORY))
    yield folder
    shutil.rmtree(folder)


def test_tables_are_copied_from_another_file_system(
    spark: SparkSession, elsewhere: Path, driver: TopologyTestDriver
) -> None:
    fill(driver, run_in(driver, spark, elsewhere, 0), 2)
    assert tables(elsewhere)
    assert all(each.stat().st_nlink == 1 for each in tables(elsewhere))
    with next_run(driver, spark, elsewhere, 2) as run:
        assert run.entries() >= 400


def test_copies_of_tables_on_another_file_system_are_kept_for_the_next_run(
    spark: SparkSession, tmp_path: Path, elsewhere: Path, driver: TopologyTestDriver
) -> None:
    kept = tmp_path / "tables"
    copies = kept / "0"

    def start(commit: int) -> Any:
        run = run_in(driver, spark, elsewhere, 0, kept)
        run.goOn(commit)
        return run

    def names() -> set[str]:
        return {each.name for each in copies.iterdir()}

    run = run_in(driver, spark, elsewhere, 0, kept)
    fill(driver, run, 2)
    run.giveUp()
    assert names() == {each.name for each in tables(elsewhere)}
    cut(min(copies.iterdir()))
    max(copies.iterdir()).unlink()
    run = start(2)
    assert run.entries() >= 400
    assert all(each.stat().st_nlink == 2 for each in copies.iterdir())
    assert {each.name: each.read_bytes() for each in copies.iterdir()} == {
        each.name: each.read_bytes() for each in tables(elsewhere)
    }
    gone = min(tables(elsewhere))
    gone.unlink()
    fill(driver, run, 1)
    assert gone.name not in names()
    run.giveUp()


def remove(table: Path) -> None:
    table.unlink()


def cut(table: Path) -> None:
    content = table.read_bytes()
    table.unlink()
    table.write_bytes(content[:-10])


def change(table: Path) -> None:
    content = bytearray(table.read_bytes())
    content[100] ^= 1
    table.unlink()
    table.write_bytes(content)


def forget_blocks(spark: SparkSession) -> None:
    """Has stores that are opened from now on read from files what earlier ones have in memory."""
    memory: Any = spark._jvm.org.apache.spark.sql.execution.streaming.state.RocksDBMemoryManager  # type: ignore[union-attr]
    memory.resetWriteBufferManagerAndCache()


@pytest.mark.parametrize("damage", [remove, cut], ids=lambda each: each.__name__)
def test_a_copy_with_a_damaged_table_is_made_again_from_the_one_before(
    spark: SparkSession, tmp_path: Path, driver: TopologyTestDriver, damage: Callable[[Path], None]
) -> None:
    run = run_in(driver, spark, tmp_path, 0)
    fill(driver, run, 1)
    before = tables(tmp_path)
    fill(driver, run, 1)
    (newest,) = set(tables(tmp_path)) - set(before)
    damage(newest)
    with next_run(driver, spark, tmp_path, 2) as again:
        assert again.entries() >= 200


@pytest.mark.parametrize("damage", [remove, cut, change], ids=lambda each: each.__name__)
def test_damaged_tables_are_named_with_what_to_do(
    spark: SparkSession, tmp_path: Path, driver: TopologyTestDriver, damage: Callable[[Path], None]
) -> None:
    fill(driver, run_in(driver, spark, tmp_path, 0), 1)
    for table in tables(tmp_path):
        damage(table)
    for changes in tmp_path.rglob("*.changelog"):
        changes.unlink()
    forget_blocks(spark)
    with pytest.raises(Py4JJavaError) as refused, next_run(driver, spark, tmp_path, 1) as run:
        run.entries()
    cause = refused.value.java_exception
    assert cause.getClass().getSimpleName() == "DamagedStateException"
    assert "the state of the topology is damaged" in cause.getMessage()
    assert str(tmp_path) in cause.getMessage()
    assert "jms-bridge topology reset" in cause.getMessage()


def test_all_stores_of_a_process_share_bounded_memory(
    spark: SparkSession, tmp_path: Path, driver: TopologyTestDriver
) -> None:
    fill(driver, run_in(driver, spark, tmp_path, 0), 1)
    memory: Any = spark._jvm.org.apache.spark.sql.execution.streaming.state.RocksDBMemoryManager  # type: ignore[union-attr]
    assert memory.getNumRocksDBInstances(True) >= 1
    assert memory.getNumRocksDBInstances(False) == 0
