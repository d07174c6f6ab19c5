"""One route of a running bridge is paused and resumed under load: its messages are held, and published once each."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.integration.bridge_process import ROOT, descendants, part, wait
from tests.integration.restarted_bridge.conftest import TO_A
from tests.processes import gone
from tests.waiting import patience

if TYPE_CHECKING:
    from tests.integration.restarted_bridge.conftest import Editor

ELSE = "routes.other.in.include=msg.address==orders\nroutes.other.out.topic=b\n"


def command(editor: Editor, *words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "engine", *words, "-c", str(editor.bridge.file)]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)


def held(editor: Editor) -> float:
    return editor.bridge.metric("jmsbridge_dead_letters", reason="route-paused")


@pytest.mark.kills
def test_a_paused_route_holds_messages_through_kills_and_publishes_each_once_when_it_is_resumed(editor: Editor) -> None:
    editor.reload(TO_A)
    digest = editor.status()["hash"]
    with editor.load():
        editor.wait_for_some()
        done = command(editor, "pause", "route:all", "--timeout", "2m")
        assert (done.returncode, done.stdout) == (0, "paused: route:all\n"), done.stderr
        published = len(editor.bridge.records("a"))
        wait(lambda: held(editor) > 100, lambda: editor.bridge.output)
        status = command(editor, "status", "--once").stdout
        assert "paused: route:all" in status
        assert "held " in status
        assert editor.bridge.metric("jmsbridge_component_paused", component="route:all") == 1
        assert editor.bridge.metric("jmsbridge_failed_messages_total", route="all") == 0
        # The file is as it was, and a reload of it pauses nothing less.
        assert editor.status()["hash"] == digest
        editor.reload(TO_A + "routing.key-pattern=[0-9]+\n")
        assert list(editor.status()["paused"]) == ["all"]

        restarts = editor.bridge.metric("jmsbridge_component_restarts_total", component="router")
        os.kill(part(editor.bridge, "router"), signal.SIGKILL)
        wait(lambda: editor.bridge.metric("jmsbridge_component_restarts_total", component="router") > restarts)
        editor.bridge.wait_ready()
    bridge = editor.bridge.process
    assert bridge is not None
    started = descendants(bridge.pid)
    bridge.kill()
    bridge.wait()
    wait(lambda: all(map(gone, started)))
    editor.bridge.start()
    editor.bridge.wait_ready()
    assert list(editor.status()["paused"]) == ["all"]
    wait(lambda: held(editor) > 200, lambda: editor.bridge.output)
    assert len(editor.bridge.records("a")) == published

    with editor.load():
        done = command(editor, "resume", "route:all", "--timeout", "2m")
        assert (done.returncode, done.stdout) == (0, "ready: route:all\n"), done.stderr
        wait(lambda: held(editor) == 0, lambda: editor.bridge.output)
        editor.wait_for_some()
    editor.wait_for_all()
    assert "all held messages of resumed routes are replayed" in editor.bridge.output
    assert editor.status()["paused"] == {}


def test_a_pause_that_cannot_be_is_refused_with_the_reason(editor: Editor) -> None:
    done = command(editor, "pause", "route:al")
    assert done.returncode != 0
    assert "there is no route 'al' that can be paused; there are orders, all" in done.stderr
    done = command(editor, "resume", "route:all")
    assert "route:all is not paused" in done.stderr
    editor.reload(TO_A + "routes.all.paused=true\n")
    try:
        assert list(editor.status()["paused"]) == ["all"]
        done = command(editor, "resume", "route:all")
        assert "jms-bridge.properties:" in done.stderr
        assert "says whether the route is paused: correct that line, then `jms-bridge reload`" in done.stderr
        sent = editor.sent_now(3)
        wait(lambda: held(editor) >= 3, lambda: editor.bridge.output)
    finally:
        editor.reload(TO_A)
    a, _ = editor.wait_for_all()
    assert sent <= set(a)
    noted = command(editor, "audit", "--target", "route:al", "--json").stdout.splitlines()
    found = [(each["action"], each["target"], each["result"][:8]) for each in map(json.loads, noted)]
    refused = [("pause", "route:al", "refused:"), ("resume", "route:all", "refused:")]
    assert found[-3:] == [*refused, ("resume", "route:all", "refused:")]
    assert re.fullmatch(r"(.+ \()?.+@.+", json.loads(noted[-1])["user"])


@pytest.mark.kills
def test_a_kill_while_a_route_is_paused_or_resumed_neither_loses_nor_doubles_a_message(editor: Editor) -> None:
    editor.reload(TO_A)
    with editor.load():
        editor.wait_for_some()
        for word, delay in (("pause", 0.3), ("resume", 0.3), ("pause", 1.5), ("resume", 3.0)):
            line = [sys.executable, "-m", "engine", word, "route:all", "-c", str(editor.bridge.file), "--timeout", "3m"]
            asking = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.DEVNULL)
            since = len(editor.bridge.output)
            wait(lambda since=since: "on request" in editor.bridge.output[since:])  # type: ignore[misc]
            time.sleep(delay)
            os.kill(part(editor.bridge, "router"), signal.SIGKILL)
            assert asking.wait(patience(200)) == 0
            editor.bridge.wait_ready()
    wait(lambda: held(editor) == 0, lambda: editor.bridge.output)
    editor.wait_for_all()
