"""Pause and resumption of parts on the overview."""

from __future__ import annotations

import re
from pathlib import Path

from engine.errors import UsageError
from engine.telemetry.status import State
from tests.unit.page.bridge import Page

SAME = {"Origin": "http://127.0.0.1", "Sec-Fetch-Site": "same-origin"}


class Recorder:
    """Control of a bridge that notes requests."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []

    def separable(self) -> list[str]:
        return ["router", "source:jms"]

    def pause(self, name: str, by: str) -> list[str]:
        if name not in [*self.separable(), "route:orders"]:
            msg = f"'{name}' is not a part"
            raise UsageError(msg)
        self.asked.append(("pause", name, by))
        return [name]

    def resume(self, name: str, by: str) -> list[str]:
        self.asked.append(("resume", name, by))
        return [name]

    def request(self) -> int:
        raise AssertionError

    def restart(self, name: str) -> list[str]:
        raise AssertionError(name)


def buttons(shown: str) -> list[tuple[str, str]]:
    return re.findall(r'name="part" value="([^"]*)"><button name="action" value="([^"]*)"', shown)


def test_routes_are_paused_and_resumed_on_their_page(tmp_path: Path) -> None:
    control = Recorder()
    page = Page(tmp_path, control=control)
    assert buttons(page.text("/routes"))[0] == ("route:orders", "pause")
    fields = {"seal": page.seal("/routes"), "part": "route:orders", "action": "pause"}
    answer = page.client.post("/parts", data=fields, headers=SAME, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"].partition("#")[0]) == (303, "/routes")
    assert control.asked[0][:2] == ("pause", "route:orders")


def test_parts_are_paused_and_resumed_by_buttons(tmp_path: Path) -> None:
    control = Recorder()
    page = Page(tmp_path, control=control)
    assert buttons(page.text("/")) == [("router", "pause"), ("source:jms", "pause")]
    fields = {"seal": page.seal("/"), "part": "source:jms", "action": "pause"}
    answer = page.client.post("/parts", data=fields, headers=SAME, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"].partition("#")[0]) == (303, "/")
    page.board.paused("source:jms", "paused by anna")
    shown = page.text("/")
    assert buttons(shown) == [("router", "pause"), ("source:jms", "resume")]
    assert "source:jms is paused" in shown
    assert page.board.get("source:jms").state is State.PAUSED
    page.client.post("/parts", data={**fields, "action": "resume"}, headers=SAME, follow_redirects=False)
    assert [(each[:2]) for each in control.asked] == [("pause", "source:jms"), ("resume", "source:jms")]
    assert control.asked[0][2].startswith("nobody logged in (")


def test_other_forms_change_nothing_and_say_why(tmp_path: Path) -> None:
    control = Recorder()
    page = Page(tmp_path, control=control)
    seal = page.seal("/")
    for fields, headers, status, told in (
        ({"seal": "x", "part": "router", "action": "pause"}, SAME, 403, ""),
        ({"seal": seal, "part": "router", "action": "pause"}, {"Origin": "http://evil.example"}, 403, ""),
        ({"seal": seal, "part": "router", "action": "stop"}, SAME, 400, "expected pause or resume"),
        ({"seal": seal, "part": "kafka", "action": "pause"}, SAME, 400, "&#39;kafka&#39; is not a part"),
    ):
        answer = page.client.post("/parts", data=fields, headers=headers)
        assert answer.status_code == status
        assert told in answer.text
    assert control.asked == []


def test_without_control_there_are_no_buttons(tmp_path: Path) -> None:
    assert buttons(Page(tmp_path).text("/")) == []
