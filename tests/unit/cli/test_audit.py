"""`jms-bridge audit`: actions for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.looks import log
from engine.looks.action import ActionQuestion, AuditedAction
from tests.commands import exit_code
from tests.unit.page.bridge import CONFIGURATION


def run(*arguments: str) -> int:
    return exit_code("audit", *arguments)


def test_actions_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    file = tmp_path / "jms-bridge.properties"
    file.write_text(CONFIGURATION)
    asked: list[tuple[str, ActionQuestion, int]] = []

    def last_actions(topic: log.LookTopic, question: ActionQuestion, count: int, _: float) -> list[AuditedAction]:
        asked.append((topic.name, question, count))
        given: tuple[Any, ...] = ("eve\x1b[2J", "operator", "10.0.0.1", "1", "pause", "source:jms")
        return [AuditedAction("2026-11-28T12:00:00.000Z", *given, result) for result in ("done", "")]

    monkeypatch.setattr(log, "last_actions", last_actions)
    arguments = ("--config", str(file), "--user", "eve", "--action", "pause", "--target", "jms", "-n", "2")
    assert run(*arguments) == 0
    shown = capsys.readouterr().out
    for text in (r"eve\x1b[2J@10.0.0.1", "source:jms", "done", "not known"):
        assert text in shown
    assert run(*arguments, "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["user"], each["result"]) for each in lines] == [("eve\x1b[2J", "done"), ("eve\x1b[2J", "")]
    assert asked == [("jms-bridge.journal.actions", ActionQuestion("eve", "pause", "jms"), 2)] * 2
    monkeypatch.setattr(log, "last_actions", lambda *_: [])
    assert run("--config", str(file)) == 0
    assert "no such action is noted" in capsys.readouterr().err
