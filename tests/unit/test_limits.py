"""The limit of open files is known before anything is started."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from engine import limits
from engine.doctor.checks import Severity
from engine.doctor.machine import check_limits
from tests.commands import exit_code

CONFIGURATION = (
    "bridge.id=b\nsource.s.type=stomp\nsource.s.destinations=queue:q\nroutes.r.in.include=a=1\nroutes.r.out.topic=t\n"
)


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, int]]:
    kept = {"now": (256, 256)}
    monkeypatch.setattr(limits.resource, "getrlimit", lambda _: kept["now"])
    monkeypatch.setattr(limits.resource, "setrlimit", lambda _, both: kept.update(now=both))
    return kept


def test_too_few_files_are_told_before_a_server_is_started(
    limit: dict[str, tuple[int, int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "b.properties"
    file.write_text(CONFIGURATION)
    assert exit_code("run", "-c", file) == 3
    told = capsys.readouterr().err
    assert "a process may open only 256 files and connections (RLIMIT_NOFILE), and 1024 are needed: raise" in told
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize(
    ("now", "then"),
    [
        ((256, 4096), (1024, 4096)),
        ((2048, 4096), (2048, 4096)),
        ((256, resource.RLIM_INFINITY), (1024, resource.RLIM_INFINITY)),
    ],
)
def test_a_low_soft_limit_is_raised(
    now: tuple[int, int], then: tuple[int, int], limit: dict[str, tuple[int, int]]
) -> None:
    limit["now"] = now
    limits.require_files()
    assert limit["now"] == then


def test_doctor_looks_at_the_limit(limit: dict[str, tuple[int, int]]) -> None:
    (found,) = check_limits()
    assert (found.state, found.found, found.exit_code) == (
        Severity.FAILED,
        "only 256 at a time, and 1,024 are needed",
        3,
    )
    limit["now"] = (256, 4096)
    (found,) = check_limits()
    assert (found.state, found.found) == (Severity.OK, "4,096 at a time")
