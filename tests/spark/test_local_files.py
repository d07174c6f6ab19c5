"""Tests the file system of checkpoints: Hadoop's, with permissions that the JVM sets without a process for each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("mode", ["0640", "0600", "0755"])
def test_a_file_gets_its_permissions_from_the_bridges_own_class(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    java: Any = spark.sparkContext._jvm
    files = java.org.apache.hadoop.fs
    path = files.Path(f"file://{tmp_path}/commit")
    system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())

    system.create(path).close()
    system.setPermission(path, files.permission.FsPermission(mode))

    assert system.getClass().getName() == "jmsbridge.LocalFiles"
    assert Path(tmp_path, "commit").stat().st_mode & 0o7777 == int(mode, 8)


def test_a_permission_for_a_file_that_is_not_there_fails(spark: SparkSession, tmp_path: Path) -> None:
    java: Any = spark.sparkContext._jvm
    files = java.org.apache.hadoop.fs
    path = files.Path(f"file://{tmp_path}/nothing")
    system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())

    with pytest.raises(Exception, match="NoSuchFileException"):
        system.setPermission(path, files.permission.FsPermission("0600"))
