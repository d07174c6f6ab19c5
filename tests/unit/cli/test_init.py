"""`jms-bridge init`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli import main
from routes.config import lint


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def test_what_it_writes_has_no_fault_and_passes_its_own_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("init") == 0
    assert lint(Path("jms-bridge.properties")).faults == ()
    assert run("test") == 0


def test_it_makes_the_folder_and_says_what_comes_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "etc/bridge/payments.properties"
    assert run("init", str(file)) == 0
    assert file.exists()
    assert f"jms-bridge run -c {file}" in capsys.readouterr().err


def test_programs_are_told_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.properties"
    assert run("init", "--json", str(file)) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert told == [{"file": str(file)}, {"file": str(tmp_path / "routes.test.yaml")}]


@pytest.mark.parametrize("there", ["jms-bridge.properties", "routes.test.yaml"])
def test_nothing_that_is_there_is_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str], there: str) -> None:
    (tmp_path / there).write_text("mine")
    assert run("init", str(tmp_path / "jms-bridge.properties")) == 64
    assert [each.name for each in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"
    assert f"{tmp_path / there} is there already" in capsys.readouterr().err
