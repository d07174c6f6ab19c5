"""Class-data archives: which options a JVM gets, when they are made, and that all goes on without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.file_lock import try_lock
from engine.jars import RECORD, class_data_options
from tools import class_data, run, setup
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

    (tmp_path / "find.lst").write_text(
        "java/lang/Object id: 0\n"
        "jmsbridge/find/FindProcess id: 1\n"
        "jmsbridge/Generated id: 2 super: 0 source: /a.jar\n"
        "@lambda-form-invoker [SPECIES_RESOLVE] java.lang.invoke.BoundMethodHandle$Species_LLI\n"
    )

    def dump(command: list[str | Path]) -> str:
        archive_of(command).touch()
        return ""

    monkeypatch.setattr(class_data, "_run", dump)
    class_data._archive(Path("java"), "spark", [], tmp_path, tmp_path)

    assert (tmp_path / "spark.lst").read_text() == (
        "java/lang/Object id: 0\n"
        "@lambda-form-invoker [LF_RESOLVE] java.lang.invoke.DirectMethodHandle$Holder invokeStatic LL_I\n"
        "jmsbridge/find/FindProcess\n"
    )


def archive_of(command: list[str | Path]) -> Path:
    """The file that a JVM is told to write its archive to."""
    (option,) = (part for part in map(str, command) if part.startswith("-XX:SharedArchiveFile="))
    return Path(option.partition("=")[2])


def test_an_archive_that_is_not_whole_is_used_by_no_jvm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "kafka.lst").touch()

    def ended_in_the_middle(command: list[str | Path]) -> str:
        archive_of(command).write_text("half an archive")
        raise KeyboardInterrupt

    monkeypatch.setattr(class_data, "_run", ended_in_the_middle)
    with pytest.raises(KeyboardInterrupt):
        class_data._archive(Path("java"), "kafka", [], folder, folder)

    assert class_data_options("kafka") == []


@pytest.fixture
def steps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The commands that set-up runs to make class data."""
    commands: list[object] = []
    monkeypatch.setattr(Step, "run", lambda _, command, where: commands.append(command))
    monkeypatch.setattr(setup, "CLASS_DATA", folder)
    monkeypatch.setattr(setup, "LOG", folder / "log")
    return commands


def test_class_data_that_were_interrupted_are_made_again(
    folder: Path, steps: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Step, "run", interrupt)
        with pytest.raises(KeyboardInterrupt):
            setup._try_class_data()
    assert not setup.class_data_are_current()

    setup._try_class_data()

    assert len(steps) == 1
    assert setup.class_data_are_current()


def test_class_data_are_not_made_twice_at_a_time(folder: Path, steps: list[object]) -> None:
    with (folder / ".lock").open("w") as other:
        assert try_lock(other.fileno())
        setup._try_class_data()

    assert not steps
    assert not setup.class_data_are_current()


def test_a_set_up_to_run_makes_no_class_data(steps: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "_read", lambda stamp: "current")
    for each in ("python_fingerprint", "jars_fingerprint"):
        monkeypatch.setattr(setup, each, lambda **_: "current")

    assert setup._set_up(dev=False) == 0
    assert not steps


def test_the_first_run_has_class_data_made_in_the_background(
    folder: Path, steps: list[object], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(run.subprocess, "Popen", lambda command, **options: started.append([*command, *options]))

    run.make_class_data()

    ((_, *arguments),) = started
    assert arguments[:3] == ["-m", "tools.setup", "--class-data"]
    assert "start_new_session" in arguments
    assert capsys.readouterr().out.startswith("In the background, class data are made")

    setup._try_class_data()
    run.make_class_data()

    assert len(started) == 1
