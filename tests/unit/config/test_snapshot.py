"""Properties files as they were at one moment."""

import hashlib
from pathlib import Path

import pytest

from routes.config import load
from routes.config.snapshot import Snapshot
from routes.errors import ConfigurationError

TEXT = """\
bridge.id=b1
source.s.type=stomp
source.s.url=stomp://127.0.0.1:1
source.s.password=${file:secret}
source.s.username=${env:NAME}
source.s.destinations=queue:orders
routes.a.in.include=msg.address==orders
routes.a.out.topic=a
"""
ENV = {"NAME": "me"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("hunter2\n")
    path = tmp_path / "b.properties"
    path.write_text(TEXT)
    return path


def test_a_snapshot_stays_what_the_file_and_what_it_refers_to_were(file: Path) -> None:
    snapshot = Snapshot.take(file)
    now = load(file, ENV)
    file.write_text("half of a fi")
    (file.parent / "secret").unlink()
    assert snapshot.load(ENV) == now
    assert snapshot.load(ENV).sources[0].password == "hunter2"
    assert snapshot.load(ENV).text == TEXT


def test_a_snapshot_crosses_to_another_process(file: Path) -> None:
    snapshot = Snapshot.take(file)
    assert Snapshot.of(snapshot.dump()) == snapshot
    assert Snapshot.of(snapshot.dump()).load(ENV) == load(file, ENV)


def test_another_content_of_a_file_that_a_value_comes_from_is_another_snapshot(file: Path) -> None:
    before = Snapshot.take(file)
    assert Snapshot.take(file) == before
    (file.parent / "secret").write_text("hunter3")
    assert Snapshot.take(file) != before


def test_the_hash_is_that_of_the_file_as_sha256sum_says_it(file: Path) -> None:
    assert Snapshot.take(file).hash == hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def test_faults_are_told_as_of_the_file(file: Path) -> None:
    file.write_text(TEXT.replace("bridge.id", "bridge.ide"))
    assert [(fault.file, fault.line) for fault in Snapshot.take(file).lint(ENV).faults] == [
        (str(file), 0),
        (str(file), 1),
    ]
    with pytest.raises(ConfigurationError, match=r"unknown key 'bridge\.ide'"):
        Snapshot.take(file).load(ENV)
    (file.parent / "secret").unlink()
    assert "the file 'secret' cannot be read" in str(Snapshot.take(file).lint(ENV).faults)


def test_secrets_are_not_shown(file: Path) -> None:
    assert "hunter2" not in repr(Snapshot.take(file))
    assert "hunter2" not in repr(Snapshot.take(file).load(ENV))


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no such file"):
        Snapshot.take(tmp_path / "gone")
