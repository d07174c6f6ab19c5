"""The JVM of a session: what it opens of Java, what is on its class path, and whether it maps its archive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from engine.jars import jars
from engine.spark.jvm import MODULE_OPTIONS
from engine.spark.launch import Launch
from tests.spark.conftest import ODD, SETTINGS

SECRET = "Zq9-secret"


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
        pytest.skip(f"no {archive.name}: make setup-dev records it")
    gateway: Any = spark.sparkContext._gateway

    assert str(archive) in Path(f"/proc/{gateway.proc.pid}/maps").read_text()


def test_what_the_jvm_writes_is_for_one_user(spark: SparkSession) -> None:
    gateway: Any = spark.sparkContext._gateway

    assert "Umask:\t0077" in Path(f"/proc/{gateway.proc.pid}/status").read_text()


def test_a_secret_setting_reaches_spark_and_is_in_no_file_while_the_jvm_starts(tmp_path: Path) -> None:
    launched = Launch(tmp_path, tmp_path / "spark.log", {**SETTINGS, "spark.my.password": SECRET})
    jvm: Any = launched._jvm
    try:
        while not jvm._connection.exists():
            assert jvm._process.poll() is None
            assert _files_with_the_secret(tmp_path) == []
        assert SECRET.encode() not in Path(f"/proc/{jvm._process.pid}/cmdline").read_bytes()
    finally:
        launched.abandon()
        launched.abandon()

    assert jvm._process.poll() is not None
    assert _files_with_the_secret(tmp_path) == []


def test_settings_reach_the_session_whatever_their_characters(spark: SparkSession) -> None:
    assert spark.conf.get("spark.test.odd") == ODD


def test_the_jvm_leaves_signals_to_the_python_process(spark: SparkSession) -> None:
    gateway: Any = spark.sparkContext._gateway
    os.kill(gateway.proc.pid, signal.SIGTERM)
    os.kill(gateway.proc.pid, signal.SIGINT)

    assert spark.range(3).count() == 3
    assert gateway.proc.poll() is None


def _files_with_the_secret(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


def test_a_launch_does_not_wait_for_the_import_of_pyspark() -> None:
    program = "import sys, engine.spark.launch; sys.exit('pyspark' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
