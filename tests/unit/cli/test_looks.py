"""`jms-bridge looks`: entries for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.kafka.reader import Position
from engine.looks import log
from engine.looks.look import Look
from tests.commands import exit_code
from tests.unit.page.bridge import CONFIGURATION


@pytest.fixture
def config(tmp_path: Path) -> str:
    file = tmp_path / "jms-bridge.properties"
    file.write_text(CONFIGURATION)
    return str(file)


def run(*arguments: str) -> int:
    return exit_code("looks", *arguments)


def test_entries_are_shown(config: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    asked: list[tuple[str, int, str]] = []

    def last_looks(topic: log.LookTopic, count: int, _: float, user: str) -> list[Look]:
        asked.append((topic.name, count, user))
        records = tuple(Position("orders", 0, offset) for offset in range(7))
        return [
            Look("2026-11-28T12:00:00.000Z", "eve\x1b[2J", "viewer", "10.0.0.1", "list of records", True, records),
            Look("2026-11-28T12:00:01.000Z", "", "operator", "10.0.0.2", "API", False, records[:1]),
        ]

    monkeypatch.setattr(log, "last_looks", last_looks)
    assert run("--config", config, "-n", "2", "--user", "eve") == 0
    shown = capsys.readouterr().out
    for text in (r"eve\x1b[2J@10.0.0.1", "yes", "orders:0:0", "more", "10.0.0.2", "no"):
        assert text in shown
    assert run("--config", config, "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["user"], len(each["records"])) for each in lines] == [("eve\x1b[2J", 7), ("", 1)]
    assert asked == [("jms-bridge.journal.looks", 2, "eve"), ("jms-bridge.journal.looks", 50, "")]
    monkeypatch.setattr(log, "last_looks", lambda *_: [])
    assert run("--config", config) == 0
    assert "nobody has looked at a body yet" in capsys.readouterr().err
