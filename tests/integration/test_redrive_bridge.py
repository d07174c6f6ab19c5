"""A message that keeps failing, in a bridge that runs: round by round into quarantine, with figures that follow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from engine.cli import main
from tests.integration.bridge_process import Bridge, configuration, elsewhere, wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from engine.embedded import EmbeddedArtemis, EmbeddedKafka

NAME = "redriven"
OPEN = "jmsbridge_dead_letters"
QUARANTINED = "jmsbridge_dead_letters_quarantined"


@pytest.fixture
def bridge(tmp_path: Path, kafka: EmbeddedKafka, artemis: EmbeddedArtemis) -> Iterator[Bridge]:
    bridge = Bridge(configuration(tmp_path, f"{elsewhere(NAME, kafka, artemis)}routing.max-replays=2\n"))
    bridge.start()
    try:
        bridge.wait_ready()
        yield bridge
    finally:
        bridge.end()


@pytest.fixture
def dlt(bridge: Bridge, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """`jms-bridge dlt` with these arguments; what it tells."""

    def call(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["dlt", *arguments, "-c", str(bridge.file)])
        told = capsys.readouterr()
        assert not ended.value.code, told.err
        return told.out

    return call


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
    bridge: Bridge, dlt: Callable[..., str]
) -> None:
    wait_figures(bridge, 0, 0)
    assert bridge.metric("jmsbridge_dead_letters_oldest_seconds") == 0
    bridge.send(range(1), NAME, number="not a key!")
    wait_figures(bridge, 1, 0)
    assert bridge.metric("jmsbridge_dead_letters_oldest_seconds") > 0
    for replays in (1, 2):
        # The dead letter is settled, and comes back as another one.
        assert f"  replayed to {NAME}.journal:" in dlt("replay", "--all")
        wait(lambda replays=replays: len(bridge.records(f"{NAME}.dead")) == 1 + replays, lambda: bridge.output)
        wait_figures(bridge, 1, 0)
    newest = json.loads(dlt("list", "-n", "1", "--json"))
    shown = json.loads(dlt("show", newest["position"], "--json"))
    assert {"name": "jmsbridge.replays", "value": "2"} in shown["headers"]

    assert f"  quarantined to {NAME}.dead.quarantine:0:0" in dlt("replay", "--all")
    wait_figures(bridge, 0, 1)
    assert len(bridge.records(f"{NAME}.dead")) == 3
    code, body = bridge.get("/ready")
    assert (code, json.loads(body)["ready"]) == (200, True)
    assert json.loads(bridge.get("/health")[1])["dead_letters"] == {"reachable": True, "depth": 0}

    assert bridge.interrupt() == 0
    bridge.start()
    bridge.wait_ready()
    wait_figures(bridge, 0, 1)
    dlt("discard", "--quarantine", "--all")
    wait_figures(bridge, 0, 0)
    actions = [json.loads(line)["action"] for line in dlt("audit", "--json").splitlines()]
    assert actions == ["replayed", "replayed", "quarantined", "discarded"]
    assert "Traceback" not in bridge.output
