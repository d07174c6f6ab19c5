"""Set-up of a NATS server: built where there is Go, taken from the system, or told in one line how to get it."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engine.embedded import find_nats_server
from engine.embedded import nats as embedded
from engine.errors import SetupError
from tools import go_program, setup

ROOT = Path(__file__).parents[3]

# What `go version` and `go build -v -trimpath -o FILE PACKAGE` do, as far as set-up sees it.
GO = """\
#!/bin/sh
case "$1" in
version) echo "go version go1.24.1 linux/amd64" ;;
build) echo "built in $PWD: $6" >>"$5"; echo "go: downloading a v1" >&2 ;;
esac
"""
BROKEN_GO = """\
#!/bin/sh
case "$1" in
version) echo "go version go1.24.1 linux/amd64" ;;
build) echo "go: a@v1: no such host" >&2; exit 1 ;;
esac
"""
MISSING = "no nats-server: no go in PATH: install Go 1.24 or newer; or apt-get install nats-server"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH and of what else is looked at, on a clone where nothing is set up."""
    folder = tmp_path / "bin"
    folder.mkdir()
    clone = tmp_path / "clone"
    shutil.copytree(ROOT / "tools" / "nats", clone / "tools" / "nats")
    monkeypatch.setenv("PATH", str(folder))
    places = {"module": clone / "tools" / "nats", "folder": clone / ".nats", "log": clone / "var" / "setup.log"}
    monkeypatch.setattr(setup, "NATS", replace(setup.NATS, **places))
    monkeypatch.setattr(go_program, "SYSTEM_PROGRAMS", str(folder / "sbin"))
    monkeypatch.setattr(embedded, "SYSTEM_PROGRAMS", str(folder / "sbin"))
    monkeypatch.setattr(embedded, "BUILT", clone / ".nats" / "nats-server")
    monkeypatch.setattr(sys, "argv", ["setup", "--nats"])
    return folder


def program(file: Path, text: str = "#!/bin/sh\n") -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


def test_it_is_built_once_and_again_when_the_pins_change(programs: Path) -> None:
    program(programs / "go", GO)
    pins = setup.NATS.module
    once = f"built in {pins}: github.com/nats-io/nats-server/v2\n"

    assert setup.main() == 0
    assert (setup.NATS.folder / "nats-server").read_text() == once
    assert find_nats_server() == setup.NATS.folder / "nats-server"

    (setup.NATS.folder / "nats-server").write_text("kept")
    assert setup.main() == 0
    assert (setup.NATS.folder / "nats-server").read_text() == "kept"

    (pins / "go.sum").write_text("others")
    assert setup.main() == 0
    assert (setup.NATS.folder / "nats-server").read_text() == once


def test_without_go_and_without_one_of_the_system_a_line_says_how_to_get_it(
    programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert setup.main() == 3
    assert capsys.readouterr().err == f"set-up failed: {MISSING}\n"

    with pytest.raises(SetupError) as told:
        find_nats_server()
    assert str(told.value).startswith("no nats-server: run `make nats`, install the Debian package nats-server, or ")
    assert "\n" not in str(told.value)


def test_set_up_for_tests_goes_on_without_and_keeps_the_line_for_them(
    programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    setup.NATS.try_set_up()

    assert capsys.readouterr().err == f"some tests will be skipped: {MISSING}\n"
    assert setup.NATS.missing.read_text() == MISSING

    program(programs / "go", GO)
    setup.NATS.try_set_up()

    assert not setup.NATS.missing.exists()


def test_a_build_that_fails_is_told_with_its_cause_and_changes_nothing(
    programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program(programs / "go", BROKEN_GO)

    setup.NATS.try_set_up()

    assert setup.NATS.missing.read_text().startswith("no nats-server: NATS server: a@v1: no such host; see ")
    assert sorted(file.name for file in setup.NATS.folder.iterdir()) == ["missing"]

    program(setup.NATS.folder / "nats-server", "older pins")
    capsys.readouterr()
    setup.NATS.try_set_up()

    assert "skipped" not in capsys.readouterr().err
    assert (setup.NATS.folder / "nats-server").read_text() == "older pins"


def test_a_go_that_is_too_old_to_read_the_pins_is_reported(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program(programs / "go", "#!/bin/sh\necho go version go1.19.8 linux/amd64\n")

    assert setup.main() == 3
    assert f"{programs}/go is Go 1.19: install Go 1.24 or newer" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["nats-server", "sbin/nats-server"])
def test_one_of_the_system_is_taken_where_there_is_no_go(
    place: str, programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = program(programs / place)

    assert setup.main() == 0
    assert capsys.readouterr().err == f"{there} will be used: no go in PATH: install Go 1.24 or newer\n"
    assert find_nats_server() == there

    setup.NATS.try_set_up()
    assert capsys.readouterr().err == ""
