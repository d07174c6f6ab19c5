"""First batch of a checkpoint, cut short by a kill."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession


@pytest.mark.parametrize("folder", ["offsets", "commits", "state"])
def test_a_file_that_a_kill_left_unfinished_does_not_hinder_the_next_start(
    spark: SparkSession, tmp_path: Path, folder: str
) -> None:
    left = tmp_path / "checkpoint" / folder / ".0.97ed4854-27dc-49ef-b427-404f17428ada.tmp"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines.txt").write_text("a\nb\n")
    lines = spark.readStream.text(str(tmp_path / "in"))
    writer = lines.writeStream.format("text").option("path", str(tmp_path / "out"))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    assert sorted(row.value for row in spark.read.text(str(tmp_path / "out")).collect()) == ["a", "b"]
