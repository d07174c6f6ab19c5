"""Jars that are searched without a JVM and without an object for each of their entries."""

from __future__ import annotations

import time
import zipfile
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from engine.connectors.jms_client.class_files import Classes
from engine.connectors.jms_client.jar import Jar
from engine.embedded.artemis import artemis_home
from tests.conftest import JARS

if TYPE_CHECKING:
    from pathlib import Path


def test_a_jar_has_the_entries_that_zipfile_finds() -> None:
    (path,) = (artemis_home(JARS) / "lib").glob("artemis-jms-client-*.jar")
    jar = Jar(path)
    with zipfile.ZipFile(path) as file:
        for name in file.namelist():
            assert name in jar
            assert jar.read(name) == file.read(name)
        assert jar.names() == file.namelist()
    jar.close()


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_names_that_begin_end_or_lie_within_others_are_told_apart(tmp_path: Path, how: int) -> None:
    path = tmp_path / "a.jar"
    with zipfile.ZipFile(path, "w", how) as file:
        for name in ("aa.class", "a.class.b", "p/a.class", "a.class"):
            file.writestr(name, f"content of {name}")
        file.comment = b"a comment " * 100
    # A program that runs itself has other bytes before the first entry.
    path.write_bytes(b"#!/bin/sh\n" * 20 + path.read_bytes())
    jar = Jar(path)
    assert jar.read("a.class") == b"content of a.class"
    assert "class" not in jar
    with pytest.raises(KeyError):
        jar.read("b.class")
    jar.close()


def test_a_jar_of_more_entries_than_two_bytes_count_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.jar", "w") as file:
        for number in range(66_000):
            file.writestr(zipfile.ZipInfo(f"p/C{number}.class"), b"")
        file.writestr("last.class", b"x")
    jar = Jar(tmp_path / "a.jar")
    assert jar.read("last.class") == b"x"
    assert "p/C65999.class" in jar
    jar.close()


@pytest.mark.parametrize("damage", ["cut", "content", "directory"])
def test_a_damaged_jar_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.jar"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a.class", b"x" * 1000)
    data = bytearray(path.read_bytes())
    if damage == "cut":
        del data[-15:]
    elif damage == "content":
        data[37:42] = b"\xff" * 5
    else:
        data[-6:-2] = b"\xff\xff\xff\x7f"
    path.write_bytes(data)
    with pytest.raises(zipfile.BadZipFile), closing(Jar(path)) as jar:
        jar.read("a.class")
    with Classes([path]) as classes:
        assert classes.find("a") is None


def test_a_hundred_jars_are_searched_in_less_time_than_a_start_may_lose() -> None:
    """Every process of a bridge checks its configuration when it starts."""
    jars = sorted((artemis_home(JARS) / "lib").glob("*.jar"))
    begin = time.process_time()
    with Classes(jars) as classes:
        assert classes.holders("org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory")
    assert time.process_time() - begin < 0.1
