"""The JVM of a session: what it opens of Java, what is on its class path, and whether it maps its archive."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from engine.jars import jars
from engine.spark.jvm import MODULE_OPTIONS
from engine.spark.launch import Launch
from tests.spark.conftest import SETTINGS


def test_java_modules_are_open_as_spark_itself_opens_them(spark: SparkSession) -> None:
    java: Any = spark.sparkContext._jvm

    assert list(java.org.apache.spark.launcher.JavaModuleOptions.defaultModuleOptionArray()) == list(MODULE_OPTIONS)


def test_the_class_path_has_the_bridges_own_classes_and_only_jars(spark: SparkSession) -> None:
    java: Any = spark.sparkContext._jvm

    entries = str(java.System.getProperty("java.class.path")).split(":")

    assert all(entry.endswith(".jar") and Path(entry).is_file() for entry in entries)
    assert Path(entries[0]).parent == jars().absolute() / "spark"


def test_no_argument_of_the_jvm_shows_in_the_list_of_processes(spark: SparkSession) -> None:
    gateway: Any = spark.sparkContext._gateway
    command = Path(f"/proc/{gateway.proc.pid}/cmdline").read_bytes().split(b"\0")

    assert [part[:1] for part in command[1:]] == [b"@", b""]


def test_the_jvm_maps_its_class_data(spark: SparkSession) -> None:
    archive = jars().absolute() / "class-data" / "spark.jsa"
    if not archive.exists():
        pytest.skip(f"no {archive.name}: make setup records it")
    gateway: Any = spark.sparkContext._gateway

    assert str(archive) in Path(f"/proc/{gateway.proc.pid}/maps").read_text()


def test_what_the_jvm_writes_is_for_one_user(spark: SparkSession) -> None:
    gateway: Any = spark.sparkContext._gateway

    assert "Umask:\t0077" in Path(f"/proc/{gateway.proc.pid}/status").read_text()


def test_a_jvm_that_is_not_needed_leaves_no_process_and_no_settings(tmp_path: Path) -> None:
    launched = Launch(tmp_path, tmp_path / "spark.log", {**SETTINGS, "spark.secret": "x"})
    jvm: Any = launched._jvm
    written = list(tmp_path.rglob("spark-defaults.conf"))

    launched.abandon()
    launched.abandon()

    assert jvm._process.poll() is not None
    assert written
    assert not list(tmp_path.rglob("spark-defaults.conf"))


def test_a_launch_does_not_wait_for_the_import_of_pyspark() -> None:
    program = "import sys, engine.spark.launch; sys.exit('pyspark' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
