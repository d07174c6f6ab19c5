"""Properties files as they were at one moment."""

import hashlib
from pathlib import Path

import pytest

from engine.router.past_routes import routes_text
from routes.config import load
from routes.config.load import loads_routes
from routes.config.snapshot import Snapshot
from routes.errors import ConfigurationError
from routes.model import Policy

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


def paused(snapshot: Snapshot) -> list[str]:
    return [route.name for route in snapshot.load(ENV).routes if route.paused]


def test_routes_are_paused_beside_the_file_and_its_hash_stays(file: Path) -> None:
    file.write_text(f"{TEXT}routes.b.in.include=TRUE\nroutes.b.out.topic=b\nroutes.b.name=bee\n")
    snapshot = Snapshot.take(file)
    assert paused(snapshot) == []
    other = snapshot.with_paused(["bee", "nobody"])
    assert paused(other) == ["bee"]
    assert (other.hash, other == snapshot, other.with_paused(()) == snapshot) == (snapshot.hash, False, True)
    assert paused(Snapshot.of(other.dump())) == ["bee"]
    # What recovery reads has the pause as well.
    assert "routes.b.paused=true" in routes_text(other.load(ENV).text)
    assert loads_routes(routes_text(other.load(ENV).text)).routes[1].paused
    assert {route.on_soft_failure for route in other.load(ENV).routes if route.paused} == {Policy.DEAD_LETTER}


@pytest.mark.parametrize(("line", "found"), [("true", ["a"]), ("false", [])])
def test_a_line_of_the_file_precedes(file: Path, line: str, found: list[str]) -> None:
    assert Snapshot.take(file).line_of_pause("a") == ""
    file.write_text(f"{TEXT}routes.a.paused={line}\n")
    snapshot = Snapshot.take(file)
    assert snapshot.line_of_pause("a") == f"{file}:9"
    assert paused(snapshot.with_paused(["a"])) == found


@pytest.mark.parametrize("end", ["", "\n", " # no comment", "\\", "\\\n  \\\n"])
def test_a_file_that_ends_anyhow_is_not_changed_by_a_pause(file: Path, end: str) -> None:
    file.write_text(f"{TEXT.removesuffix(chr(10))}{end}")
    snapshot = Snapshot.take(file)
    before, after = snapshot.settings(ENV), snapshot.with_paused(["a"]).settings(ENV)
    added = {key for key in after.by_key if key not in before.by_key}
    assert added == {("routes.NAME.paused", "a")}
    assert all(after.by_key[key].entry.value == found.entry.value for key, found in before.by_key.items())
