"""Live state as Python asks a bridge for it, with a bridge that answers as the test says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from engine.errors import UnreachableError, UsageError
from engine.telemetry import client
from engine.telemetry.http_section import HttpConfig
from engine.topologies.library.state import StateError
from engine.topologies.live import LiveNodeState
from engine.topologies.state import open_state
from routes.config import loads

NODES = {"nodes": [{"node": "sums", "operator": "aggregate"}]}
TEXT = """\
bridge.id=b1
source.jms.type=stomp
source.jms.url=stomp://127.0.0.1:1
source.jms.destinations=queue:orders
routes.orders.in.include=TRUE
routes.orders.out.topic=orders
"""


class ScriptedBridge:
    """Answers of a bridge, and the paths that were asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: list[tuple[int, Any]] = [(200, NODES)]
        self.asked: list[str] = []

        def ask(_: HttpConfig, path: str, __: float) -> tuple[int, str]:
            self.asked.append(path)
            status, answer = self.answers.pop(0)
            return status, answer if isinstance(answer, str) else json.dumps(answer)

        monkeypatch.setattr(client, "ask", ask)

    def state(self) -> LiveNodeState:
        return LiveNodeState(HttpConfig("127.0.0.1", 8480), "totals", "sums")


@pytest.fixture
def bridge(monkeypatch: pytest.MonkeyPatch) -> ScriptedBridge:
    return ScriptedBridge(monkeypatch)


def page(rows: list[dict[str, Any]], after: str | None = None) -> tuple[int, Any]:
    return 200, {"live": True, "rows": rows, "next": after}


def test_rows_come_page_after_page_until_the_limit(bridge: ScriptedBridge) -> None:
    bridge.answers += [page([{"key": "a"}, {"key": "b"}], "0:1."), page([{"key": "c"}], "0:2.")]
    state = bridge.state()
    assert [row["key"] for row in state.range("a", {"id": 1}, limit=3)] == ["a", "b", "c"]
    first, second = (parse_qs(urlsplit(path).query, keep_blank_values=True) for path in bridge.asked[1:])
    assert first == {"from": ["a"], "to": ['{"id": 1}'], "limit": ["3"], "after": [""], "live": ["true"]}
    assert (second["limit"], second["after"]) == (["1"], ["0:1."])


def test_times_and_keys_are_written_into_the_question(bridge: ScriptedBridge) -> None:
    bridge.answers += [page([{"key": "ann", "window_start": "x"}]), page([])]
    state = bridge.state()
    assert state.window("ann", 60_000) == {"key": "ann", "window_start": "x"}
    asked = parse_qs(urlsplit(bridge.asked[1]).query)
    assert (asked["key"], asked["window_from"], asked["window_to"]) == (["ann"], ["60000"], ["60000"])
    assert state.get(17) is None
    assert parse_qs(urlsplit(bridge.asked[2]).query)["key"] == ["17"]
    with pytest.raises(StateError, match="is not UTF-8"):
        state.get(b"\xff")


@pytest.mark.parametrize(
    ("answer", "error", "told"),
    [
        ((404, {"error": "no topology"}), StateError, "no topology"),
        ((400, {"error": "no windows"}), StateError, "no windows"),
        ((503, {"error": "share 0 cannot be read"}), UnreachableError, "share 0 cannot be read"),
        ((401, "who are you"), UnreachableError, "answers 401 and no JSON"),
        ((200, {"live": False, "rows": [], "next": None}), StateError, "on a Spark cluster"),
        (page([{"key": "ann", "window_start": "x"}]), StateError, "a row for each window"),
    ],
)
def test_a_question_without_an_answer_is_told_why(
    bridge: ScriptedBridge, answer: tuple[int, Any], error: type[Exception], told: str
) -> None:
    bridge.answers.append(answer)
    with pytest.raises(error, match=told):
        bridge.state().get("ann")


def test_an_unknown_node_is_refused_with_the_known_ones(bridge: ScriptedBridge) -> None:
    with pytest.raises(StateError, match="no node 'other' has state that can be asked; these have: sums"):
        LiveNodeState(HttpConfig("127.0.0.1", 8480), "totals", "other")


def test_live_state_needs_one_topology_of_the_configuration(tmp_path: Path) -> None:
    twice = "topologies.a.build=m:build\ntopologies.b.build=m:build\n"
    for text, told in (("", "the configuration has none"), (twice, "has several: a, b")):
        with pytest.raises(UsageError, match=told), open_state(loads(TEXT + text), "m:build", "sums", live=True):
            pass
