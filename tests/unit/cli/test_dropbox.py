"""`send` and `receive` with folders, which need no server."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from tests.commands import exit_code
from tests.dropboxes import Dropboxes, files


@pytest.fixture
def boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dropboxes:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jms-bridge.properties").write_text(
        "bridge.id=b1\nsource.files.type=dropbox\nsource.files.root=spool\nsource.files.destinations=queue:orders\n"
        "routes.r.in.include=TRUE\nroutes.r.out.topic=t\n"
    )
    return Dropboxes(tmp_path / "spool")


def headers(shown: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in shown["headers"]}


def test_what_is_sent_is_received(boxes: Dropboxes, capsys: pytest.CaptureFixture[str]) -> None:
    typed = ("--typed-property", "amount:int=5", "--property", "region=a b", "--priority", "7")
    assert exit_code("send", "dropbox:queue/orders", *typed, "--correlation-id", "42", "--count", "3", "hello") == 0
    assert "sent 3 messages to dropbox:queue/orders at dropbox://" in capsys.readouterr().err
    assert len(files(boxes.queue("orders") / "target")) == 3
    assert exit_code("receive", "files:queue/orders", "--json", "--count", "3") == 0
    found = [headers(json.loads(line)) for line in capsys.readouterr().out.splitlines()]
    assert len(found) == 3
    assert files(boxes.queue("orders") / "target") == []
    assert len(files(boxes.queue("orders") / "processed")) == 3
    assert len({each["jms.JMSMessageID"] for each in found}) == 3
    first = found[0]
    assert (first["jms.amount"], first["jms.region"], first["jms.JMSPriority"]) == ("5", "a b", "7")
    assert "amount=int" in first["jmsbridge.types"]


def test_a_topic_is_listened_to_for_as_long_as_the_command_runs(
    boxes: Dropboxes, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = boxes.topic("news")
    Timer(1.0, lambda: boxes.put(topic, {"news": b"it rains"})).start()
    assert exit_code("receive", "dropbox:topic/news", "--count", "1", "--timeout", "20s") == 0
    assert "it rains" in capsys.readouterr().out
    assert list((topic.parent / ".subscriptions").iterdir()) == []


def test_a_folder_that_is_not_there_is_reported(boxes: Dropboxes, capsys: pytest.CaptureFixture[str]) -> None:
    boxes.unmount()
    assert exit_code("send", "dropbox:queue/orders", "hello") == 6
    told = capsys.readouterr().err
    assert told.endswith(f"(there is no folder {boxes.root}; is its disk mounted?)\n")


def test_a_message_that_no_name_can_hold_is_received_whole(
    boxes: Dropboxes, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("send", "dropbox:queue/orders", "--property", f"x={'y' * 300}", "hello") == 0
    assert exit_code("receive", "files:queue/orders", "--json", "--count", "1") == 0
    assert headers(json.loads(capsys.readouterr().out))["jms.x"] == "y" * 300
