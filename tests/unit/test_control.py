"""Requests that change a running bridge, and the commands that send them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from engine.errors import UsageError
from engine.telemetry.client import ask, order
from engine.telemetry.control import control
from engine.telemetry.http import HttpServer, application
from engine.telemetry.http_section import HttpConfig
from engine.telemetry.status import State, Status, StatusBoard
from tests.commands import finished

TEXT = "bridge.id={bridge}\nkafka.bootstrap.servers=127.0.0.1:1\nroutes.a.in.include=TRUE\nroutes.a.out.topic=t\n"
OUTCOME = {"success": True, "changed": ["router"]}


class Bridge:
    """A bridge that answers a request as it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.outcome: dict[str, Any] = OUTCOME
        self.proven = True
        self.paused_by = ""
        self.is_busy = False
        self.board = StatusBoard([])

    def request(self) -> int:
        self.asked.append("reload")
        return len(self.asked)

    def restart(self, name: str) -> list[str]:
        if name != "source:s":
            msg = f"'{name}' is not a part"
            raise UsageError(msg)
        self.asked.append(name)
        return [name, f"{name}/2"]

    def pause(self, name: str, by: str) -> list[str]:
        self.paused_by = by
        if not self.is_busy:
            self.board.put(Status(name, State.PAUSED))
        return self.restart(name)[:1]

    def resume(self, name: str, by: str) -> list[str]:
        if by != self.paused_by:
            msg = f"{name} is not paused"
            raise UsageError(msg)
        self.board.put(Status(name, State.READY))
        return self.restart(name)[:1]

    def state(self) -> dict[str, object]:
        return {
            "bridge": "b",
            "hash": "0123",
            "reload": {**self.outcome, "request": len(self.asked)},
            "proven": self.proven,
        }


@pytest.fixture
def bridge() -> Bridge:
    return Bridge()


@pytest.fixture
def address(bridge: Bridge) -> Iterator[HttpConfig]:
    """Where it answers."""
    app = application(bridge.board, CollectorRegistry(), configuration=bridge.state, pages=control(bridge))
    with HttpServer(HttpConfig("127.0.0.1", 0), app) as server:
        yield HttpConfig("127.0.0.1", int(server.url.rpartition(":")[2]))


@pytest.fixture
def call(
    address: HttpConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """Runs a command; its exit code and what it has written."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, bridge: str = "b") -> tuple[int, str]:
        Path("jms-bridge.properties").write_text(
            TEXT.format(bridge=bridge) + f"http.address=127.0.0.1:{address.port}\n"
        )
        code, out, err = finished(capsys, *arguments)
        return code, out + err

    return run


def test_a_request_without_the_header_changes_nothing(bridge: Bridge, address: HttpConfig) -> None:
    assert ask(address, "/api/reload", 5.0)[0] == 405
    assert order(address, "/api/reload", 5.0) == (202, {"request": 1})
    with closing(HTTPConnection(address.host, address.port, timeout=5)) as connection:
        connection.request("POST", "/api/reload", headers={"Origin": "https://127.0.0.1"})
        answer = connection.getresponse()
        told = json.loads(answer.read())
    assert (answer.status, told) == (403, {"error": "this request needs the header X-Jms-Bridge"})
    assert bridge.asked == ["reload"]


def test_a_part_is_paused_and_resumed_by_the_user_who_asks(bridge: Bridge, call: Any) -> None:
    assert call("pause", "source:s") == (0, "paused: source:s\n")
    assert re.fullmatch(".+@.+", bridge.paused_by)
    code, told = call("resume", "source:s", "--json")
    assert (code, json.loads(told)) == (0, {"parts": ["source:s"], "state": "ready"})
    code, told = call("pause", "source:x")
    assert code == 64
    assert "'source:x' is not a part" in told


def test_a_login_stands_before_the_user_whom_its_client_names(bridge: Bridge) -> None:
    config = HttpConfig("127.0.0.1", 0, token="t0ken-of-an-operator")
    app = application(bridge.board, CollectorRegistry(), configuration=bridge.state, pages=control(bridge))
    with HttpServer(config, app) as server:
        known = replace(config, port=int(server.url.rpartition(":")[2]))
        assert order(known, "/api/pause?part=source:s&by=anna@host", 5.0)[0] == 202
        assert bridge.paused_by == "http.token (anna@host)"
        assert order(known, "/api/pause?part=source:s", 5.0)[0] == 202
        assert bridge.paused_by == "http.token"


def test_a_part_that_does_not_end_in_time_is_told(bridge: Bridge, call: Any) -> None:
    bridge.is_busy = True
    code, told = call("pause", "source:s", "--timeout", "1s")
    assert code == 1
    assert "source:s is not paused yet: see `jms-bridge status`" in told


def test_a_reload_is_told_when_its_parts_are_ready(bridge: Bridge, call: Any) -> None:
    assert call("reload") == (0, "in force: 0123; changed: router\n")
    code, told = call("reload", "--json")
    assert (code, json.loads(told)["reload"]["request"]) == (0, 2)
    bridge.proven = False
    code, told = call("reload", "--timeout", "1s")
    assert code == 1
    assert "changed parts are not ready yet" in told


def test_a_refused_reload_has_its_reason_and_an_exit_code(bridge: Bridge, call: Any) -> None:
    bridge.outcome = {"success": False, "why": "a.py:1:2: SyntaxError", "not_in_force": ["a.py", "b.py"]}
    code, told = call("reload")
    assert code == 2
    assert "stays in force: a.py:1:2: SyntaxError; on disk and not in force: a.py, b.py" in told


def test_a_part_is_restarted_by_its_name(bridge: Bridge, call: Any) -> None:
    assert call("restart", "source:s") == (0, "restarting: source:s, source:s/2\n")
    assert bridge.asked == ["source:s"]
    code, told = call("restart", "sink:x")
    assert (code, "'sink:x' is not a part" in told) == (64, True)


def test_another_bridge_and_no_bridge_are_told_apart(bridge: Bridge, call: Any) -> None:
    code, told = call("reload", bridge="c")
    assert (code, "bridge 'b' answers at" in told) == (4, True)
    assert bridge.asked == []
    Path("other.properties").write_text(TEXT.format(bridge="b") + "http.address=127.0.0.1:1\n")
    code, told = call("reload", "-c", "other.properties")
    assert (code, "no bridge answers at" in told) == (6, True)
