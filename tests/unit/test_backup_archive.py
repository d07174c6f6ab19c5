"""Files of backups: what is written is read again, and nothing else is taken for a backup."""

from __future__ import annotations

import gzip
import io
import json
import stat
import tarfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backup.archive import Archive, Origin, read, write
from engine.errors import UsageError
from engine.record import Record

if TYPE_CHECKING:
    from pathlib import Path

ORIGIN = Origin("b", "jms-bridge.journal", "id", "/var/checkpoint", "host", "2026-11-28T00:00:00+00:00", "1.0")

names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=20).filter(
    lambda name: name not in {".", ".."}
)
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
values = st.none() | st.binary(max_size=50)
records = st.builds(Record, values, values, st.lists(st.tuples(st.text(max_size=10), values), max_size=3).map(tuple))
offsets = st.dictionaries(st.integers(0, 9), st.integers(0, 2**63 - 1), max_size=3)
archives = st.builds(
    Archive,
    st.just(ORIGIN),
    st.dictionaries(paths, st.binary(max_size=100), max_size=4),
    st.lists(records, max_size=4),
    st.dictionaries(names, st.dictionaries(names, offsets, max_size=3), max_size=3),
)


@given(archive=archives)
def test_a_backup_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, archive: Archive) -> None:
    path = tmp_path_factory.mktemp("backup") / "b.tar.gz"
    write(path, archive)
    assert read(path) == archive
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["b.tar.gz"]


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "b.tar.gz"
    path.write_text("mine")
    with pytest.raises(UsageError, match=r"b\.tar\.gz: there is such a file"):
        write(path, Archive(ORIGIN, {}, [], {}))
    assert path.read_text() == "mine"
    assert [*tmp_path.iterdir()] == [path]


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        return {each.name: file.read() for each in tar if (file := tar.extractfile(each))}


def packed(path: Path, content: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as tar:
        for name, data in content.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def test_a_damaged_backup_is_refused(tmp_path: Path) -> None:
    path, other = tmp_path / "b.tar.gz", tmp_path / "other.tar.gz"
    write(path, Archive(ORIGIN, {"1/start.json": b"{}"}, [Record(b"k", b"v", ())], {"g": {"t": {0: 1}}}))
    content = members(path)
    assert sorted(content) == ["backup.json", "checkpoint/1/start.json", "positions.json", "state.jsonl"]
    for name in content:
        packed(other, {each: data for each, data in content.items() if each != name})
        with pytest.raises(UsageError, match=name if name != "backup.json" else "is not a backup"):
            read(other)
    packed(other, {**content, "checkpoint/1/start.json": b"[]"})
    with pytest.raises(UsageError, match=r"damaged: checkpoint/1/start\.json is missing or another one"):
        read(other)
    packed(other, {**content, "checkpoint/2/start.json": b"{}"})
    with pytest.raises(UsageError, match=r"damaged: checkpoint/2/start\.json"):
        read(other)
    later = {**json.loads(content["backup.json"]), "format": 2, "version": "9.9"}
    packed(other, {**content, "backup.json": json.dumps(later).encode()})
    with pytest.raises(UsageError, match=r"made by version 9\.9"):
        read(other)
    other.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(UsageError, match="damaged"):
        read(other)


@pytest.mark.parametrize("name", ["../outside", "/outside", "checkpoint/../../outside", "checkpoint//x", "./x"])
def test_a_member_outside_of_the_backup_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "b.tar.gz"
    packed(path, {name: b""})
    with pytest.raises(UsageError, match="is not a plain file"):
        read(path)


def test_a_link_in_a_backup_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo("checkpoint/secret")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(member)
    with pytest.raises(UsageError, match="is not a plain file"):
        read(path)


@pytest.mark.parametrize("content", [b"", b"text", gzip.compress(b"text", mtime=0), gzip.compress(b"", mtime=0)])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "b.tar.gz"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="is not a backup"):
        read(path)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.tar\.gz: the backup cannot be read: No such file"):
        read(tmp_path / "none.tar.gz")
