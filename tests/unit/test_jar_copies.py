"""Copies of Spark's jars: without signature and descriptions, the rest unchanged; and their place in the class path."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from engine.jars import copies
from engine.spark import jvm
from engine.spark.jvm import class_options
from tools.jar_copies import convert_lambdas, copy_jars

_SIGNED = {
    "META-INF/MANIFEST.MF": "Manifest-Version: 1.0\r\nMulti-Release: true\r\n\r\nName: a/B.class\r\nSHA-256: x\r\n",
    "META-INF/DUMMY.SF": "Signature-Version: 1.0",
    "META-INF/DUMMY.DSA": "signature",
    "META-INF/services/a.Service": "a.B",
    "a/B.class": "bytecode",
}
_SETTINGS = """<?xml version="1.0"?>
<!-- About this file. -->
<configuration>
  <property>
    <name>fs.defaultFS</name> <value>file:///?a&amp;b</value>
    <final>true</final>
    <description>The default, with <b>marks</b>.</description>
  </property>
  <property><name>empty</name><value></value><description/></property>
</configuration>
"""


def _jar(path: Path, files: dict[str, str]) -> Path:
    path.parent.mkdir(exist_ok=True)
    with ZipFile(path, "w") as jar:
        for name, content in files.items():
            jar.writestr(name, content)
    return path


def _files(path: Path) -> dict[str, str]:
    with ZipFile(path) as jar:
        return {name: jar.read(name).decode() for name in jar.namelist()}


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of that of Spark's jars."""
    monkeypatch.setattr(jvm, "spark_jars", lambda: tmp_path / "spark-jars")
    monkeypatch.setenv("JMS_BRIDGE_JARS", str(tmp_path / "jars"))
    _jar(tmp_path / "spark-jars" / "plain-1.jar", {"a.class": "a"})
    _jar(tmp_path / "spark-jars" / "signed-2.jar", _SIGNED)
    _jar(tmp_path / "spark-jars" / "hadoop-3.jar", {"core-default.xml": _SETTINGS, "a/other.xml": _SETTINGS})
    return tmp_path / "spark-jars"


def test_a_copy_of_a_signed_jar_has_no_signature_and_no_digests(spark: Path, tmp_path: Path) -> None:
    copy_jars(spark, tmp_path / "copies")

    assert _files(tmp_path / "copies" / "signed-2.jar") == {
        "META-INF/MANIFEST.MF": "Manifest-Version: 1.0\r\nMulti-Release: true\n\n",
        "META-INF/services/a.Service": "a.B",
        "a/B.class": "bytecode",
    }


def test_copies_of_default_settings_have_all_but_descriptions(spark: Path, tmp_path: Path) -> None:
    copy_jars(spark, tmp_path / "copies")

    (content,) = _files(tmp_path / "copies" / "defaults-of-hadoop-3.jar").items()
    assert content == (
        "core-default.xml",
        "<?xml version='1.0' encoding='utf-8'?>\n<configuration><property><name>fs.defaultFS</name>"
        "<value>file:///?a&amp;b</value><final>true</final></property>"
        "<property><name>empty</name><value /></property></configuration>",
    )


def test_only_jars_that_need_a_copy_get_one(spark: Path, tmp_path: Path) -> None:
    made = copy_jars(spark, tmp_path / "copies")

    assert {path.name for path in made} == {"signed-2.jar", "defaults-of-hadoop-3.jar"}
    assert {path.name for path in (tmp_path / "copies").iterdir()} == {path.name for path in made}


def test_the_class_path_has_copies_in_place_of_their_originals(spark: Path, tmp_path: Path) -> None:
    own = _jar(tmp_path / "own" / "own.jar", {})
    copy_jars(spark, copies())

    path = class_options(own.parent)[-1].split(":")

    assert [Path(entry).name for entry in path] == [
        "own.jar",
        "defaults-of-hadoop-3.jar",
        "hadoop-3.jar",
        "plain-1.jar",
        "signed-2.jar",
    ]
    assert [Path(entry).parent for entry in path] == [own.parent, copies(), spark, spark, copies()]


def test_copies_of_the_projects_own_jars_stay_before_those_of_spark(spark: Path, tmp_path: Path) -> None:
    own = _jar(tmp_path / "own" / "kafka_2.13-1.jar", {})
    copies().mkdir(parents=True)
    copy = _jar(copies() / own.name, {})

    path = class_options(own.parent)[-1].split(":")

    assert path[0] == str(copy)
    assert str(own) not in path


def test_copies_of_other_versions_are_not_used(spark: Path, tmp_path: Path) -> None:
    _jar(tmp_path / "own" / "own.jar", {})
    copy_jars(spark, copies())
    (spark / "signed-2.jar").rename(spark / "signed-3.jar")
    (spark / "hadoop-3.jar").rename(spark / "hadoop-4.jar")

    path = class_options(tmp_path / "own")[-1]

    assert str(copies()) not in path
    assert str(spark / "signed-3.jar") in path


def test_only_jars_of_scala_are_searched_for_lambdas_and_those_without_get_no_copy(spark: Path, tmp_path: Path) -> None:
    for jar in ("scala-library-2.13.1.jar", "spark-core_2.13-4.jar", "xbean-asm9-shaded-4.jar"):
        _jar(spark / jar, {})
    commands: list[list[str | Path]] = []

    def convert(command: list[str | Path]) -> None:
        commands.append(command)
        _jar(tmp_path / "copies" / "spark-core_2.13-4.jar", {})

    made = convert_lambdas(sorted(spark.iterdir()), tmp_path / "copies", convert)

    assert made == [tmp_path / "copies" / "spark-core_2.13-4.jar"]
    ((_, _, libraries, program, *pairs),) = commands
    assert libraries == f"{tmp_path / 'jars'}/spark/jms-bridge-spark.jar:{spark}/xbean-asm9-shaded-4.jar"
    assert program == "jmsbridge.copies.LambdaCopies"
    names = ("scala-library-2.13.1.jar", "spark-core_2.13-4.jar")
    assert pairs == [path for name in names for path in (spark / name, tmp_path / "copies" / name)]
