"""Class-data archives: which options a JVM gets, and that set-up goes on without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.jars import RECORD, class_data_options
from tools import class_data, setup
from tools.step import Step, StepError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of archives."""
    monkeypatch.setenv("JMS_BRIDGE_JARS", str(tmp_path))
    monkeypatch.delenv(RECORD, raising=False)
    (tmp_path / "class-data").mkdir()
    return tmp_path / "class-data"


def test_a_jvm_without_an_archive_gets_no_options() -> None:
    assert class_data_options("kafka") == []


def test_a_jvm_uses_its_archive_and_keeps_silent_about_one_that_does_not_fit(folder: Path) -> None:
    (folder / "kafka.jsa").touch()

    assert class_data_options("kafka") == [
        "-Xlog:cds=off",
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:ArchiveRelocationMode=0",
        f"-XX:SharedArchiveFile={folder / 'kafka.jsa'}",
    ]
    assert class_data_options("spark") == []


def test_a_jvm_that_lists_its_classes_uses_no_archive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "kafka.jsa").touch()
    monkeypatch.setenv(RECORD, "/lists")

    assert class_data_options("kafka") == ["-XX:DumpLoadedClassList=/lists/kafka.lst"]


def test_set_up_goes_on_without_archives_and_does_not_try_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tries: list[object] = []

    def fail(self: Step, command: object, where: Path) -> None:
        tries.append(command)
        raise StepError("no Java; see var/setup.log")

    monkeypatch.setattr(Step, "run", fail)
    monkeypatch.setattr(setup, "CLASS_DATA", folder)
    monkeypatch.setattr(setup, "LOG", folder / "log")

    setup._try_class_data()
    setup._try_class_data()

    assert len(tries) == 1
    assert capsys.readouterr().err == "the bridge will take longer to start: no Java; see var/setup.log\n"


def test_archives_are_made_without_classes_that_have_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark.lst").write_text(
        "java/lang/Object id: 0\n"
        "@lambda-form-invoker [SPECIES_RESOLVE] java.lang.invoke.BoundMethodHandle$Species_LLI\n"
        "@lambda-form-invoker [LF_RESOLVE] java.lang.invoke.DirectMethodHandle$Holder invokeStatic LL_I\n"
    )

    def dump(command: list[str | Path]) -> str:
        (tmp_path / "spark.jsa").touch()
        return ""

    monkeypatch.setattr(class_data, "_run", dump)
    class_data._archive(Path("java"), "spark", [], tmp_path, tmp_path)

    assert (tmp_path / "spark.lst").read_text() == (
        "java/lang/Object id: 0\n"
        "@lambda-form-invoker [LF_RESOLVE] java.lang.invoke.DirectMethodHandle$Holder invokeStatic LL_I\n"
    )
