"""A message that keeps failing, in a bridge that runs: round by round into quarantine, with figures that follow."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.bridge_process import ROOT, Bridge, configuration, wait

OPEN = "jmsbridge_dead_letters"
QUARANTINED = "jmsbridge_dead_letters_quarantined"


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[Bridge]:
    bridge = Bridge(configuration(tmp_path, "routing.max-replays=2\n"))
    bridge.start()
    bridge.wait_ready()
    yield bridge
    bridge.end()


def dlt(bridge: Bridge, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "engine", "dlt", *arguments, "-c", str(bridge.file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def wait_figures(bridge: Bridge, depth: int, quarantined: int) -> None:
    def true() -> bool:
        told = bridge.ready().get("dead_letters", {})
        return (
            (told.get("depth"), told.get("quarantined")) == (depth, quarantined)
            and bridge.metric(OPEN) == bridge.metric(OPEN, reason="key-invalid") == depth
            and bridge.metric(QUARANTINED) == quarantined
        )

    wait(true, lambda: f"{bridge.ready()}\n{bridge.output}")


@pytest.mark.timeout(900)
def test_a_message_that_fails_after_every_replay_ends_in_quarantine_and_a_restart_changes_no_figure(
    bridge: Bridge,
) -> None:
    wait_figures(bridge, 0, 0)
    assert bridge.metric("jmsbridge_dead_letters_oldest_seconds") == 0
    bridge.send(range(1), number="not a key!")
    wait_figures(bridge, 1, 0)
    assert bridge.metric("jmsbridge_dead_letters_oldest_seconds") > 0
    for replays in (1, 2):
        # The dead letter is settled, and comes back as another one.
        assert "  replayed to jms-bridge.journal:" in dlt(bridge, "replay", "--all")
        wait(lambda replays=replays: len(bridge.records("dead")) == 1 + replays, lambda: bridge.output)
        wait_figures(bridge, 1, 0)
    newest = json.loads(dlt(bridge, "list", "-n", "1", "--json"))
    shown = json.loads(dlt(bridge, "show", newest["position"], "--json"))
    assert {"name": "jmsbridge.replays", "value": "2"} in shown["headers"]

    assert "  quarantined to dead.quarantine:0:0" in dlt(bridge, "replay", "--all")
    wait_figures(bridge, 0, 1)
    assert len(bridge.records("dead")) == 3
    code, body = bridge.get("/ready")
    assert (code, json.loads(body)["ready"]) == (200, True)
    assert json.loads(bridge.get("/health")[1])["dead_letters"] == {"reachable": True, "depth": 0}

    assert bridge.interrupt() == 0
    bridge.start()
    bridge.wait_ready()
    wait_figures(bridge, 0, 1)
    dlt(bridge, "discard", "--quarantine", "--all")
    wait_figures(bridge, 0, 0)
    actions = [json.loads(line)["action"] for line in dlt(bridge, "audit", "--json").splitlines()]
    assert actions == ["replayed", "replayed", "quarantined", "discarded"]
    assert "Traceback" not in bridge.output
