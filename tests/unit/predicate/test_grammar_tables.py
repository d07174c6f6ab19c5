"""Tables of the predicates' grammar: made once, read by later processes, made again when they do not fit."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from lark import Lark

from routes.predicate import grammar as module
from routes.predicate.grammar import grammar

_PREDICATE = "msg.address == orders && (amount BETWEEN 1 AND 2 OR region LIKE 'e%')"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the tables."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path


def _tables(folder: Path) -> list[Path]:
    return list(folder.rglob("*.tables"))


def test_a_parser_from_tables_reads_what_a_new_one_reads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = grammar.__wrapped__().parse(_PREDICATE)
    monkeypatch.setattr(module, "Lark", type("Loaded", (), {"load": staticmethod(Lark.load)}))

    assert grammar.__wrapped__().parse(_PREDICATE) == expected


@pytest.mark.parametrize("damage", [b"", b"\0" * 100], ids=["empty", "zeros"])
def test_damaged_tables_are_made_again(folder: Path, damage: bytes) -> None:
    expected = grammar.__wrapped__().parse(_PREDICATE)
    (file,) = _tables(folder)
    file.write_bytes(damage)
    assert not module._read(file)

    assert grammar.__wrapped__().parse(_PREDICATE) == expected
    assert module._read(file)


def test_another_grammar_has_tables_of_its_own(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    grammar.__wrapped__()
    before = _tables(folder)
    other = tmp_path_factory.mktemp("other") / "grammar.lark"
    other.write_text('start: "x"')
    monkeypatch.setattr(module, "_GRAMMAR", other)

    assert str(grammar.__wrapped__().parse("x").data) == "start"
    assert len(_tables(folder)) == len(before) + 1


def test_a_process_that_may_write_no_bytecode_writes_no_tables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    grammar.__wrapped__()

    assert _tables(folder) == []


def test_a_folder_that_cannot_be_written_is_no_error(folder: Path) -> None:
    (folder / "jms-bridge").write_text("a file where the folder would be")

    assert grammar.__wrapped__().parse(_PREDICATE)


def test_nothing_is_written_beside_the_package(folder: Path) -> None:
    package = Path(module.__file__).parent
    for old in package.rglob("*.tables"):
        old.unlink()
    grammar.__wrapped__()
    assert _tables(package) == []
    assert [file.parent for file in _tables(folder)] == [folder / "jms-bridge"]
    assert (folder / "jms-bridge").stat().st_mode & 0o777 == 0o700


def test_tables_that_another_user_could_have_written_are_not_read(folder: Path) -> None:
    grammar.__wrapped__()
    (file,) = _tables(folder)
    assert module._read(file)
    file.chmod(0o666)
    assert module._read(file) is None
    file.chmod(0o600)
    file.parent.chmod(0o777)
    assert module._read(file) is None
    file.parent.chmod(0o700)
    linked = file.with_suffix(".linked")
    linked.symlink_to(file)
    assert module._read(linked) is None


def test_a_user_without_a_home_has_no_tables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("could not determine home directory")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    assert grammar.__wrapped__().parse(_PREDICATE)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert grammar.__wrapped__().parse(_PREDICATE)
    assert _tables(folder) == []
