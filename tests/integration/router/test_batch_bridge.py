"""A bridge in micro-batches at brokers that run already: its figures, its dead letters, and a second start of it.

The tests share a bridge and run in their order. The last one starts the bridge again while it runs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.commands import finished
from tests.integration.bridge_process import Bridge, configuration, elsewhere, wait
from tests.integration.prometheus import seconds_old

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.embedded import EmbeddedArtemis, EmbeddedKafka

NAME = "batches"
ROUTED = f"{NAME}.routed"
OPEN = "jmsbridge_dead_letters"
QUARANTINED = "jmsbridge_dead_letters_quarantined"


@pytest.fixture(scope="module")
def bridge(
    tmp_path_factory: pytest.TempPathFactory, kafka: EmbeddedKafka, artemis: EmbeddedArtemis
) -> Iterator[Bridge]:
    more = f"{elsewhere(NAME, kafka, artemis)}router.mode=batch\nrouter.interval=1s\nrouting.max-replays=2\n"
    bridge = Bridge(configuration(tmp_path_factory.mktemp("bridge"), more))
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
        told = finished(capsys, "dlt", *arguments, "-c", bridge.file)
        assert told.code == 0, told.err
        return told.out

    return call


@pytest.fixture
def second(bridge: Bridge) -> Iterator[Bridge]:
    """The same bridge, to be started while the first start runs."""
    second = Bridge(bridge.file)
    second._output = bridge.file.with_suffix(".second.out")
    yield second
    second.end()


def wait_figures(bridge: Bridge, depth: int, quarantined: int) -> None:
    def true() -> bool:
        told = bridge.ready().get("dead_letters", {})
        return (
            (told.get("depth"), told.get("quarantined")) == (depth, quarantined)
            and bridge.metric(OPEN) == bridge.metric(OPEN, reason="key-invalid") == depth
            and bridge.metric(QUARANTINED) == quarantined
        )

    wait(true, lambda: f"{bridge.ready()}\n{bridge.output}")


def test_figures_are_at_most_five_seconds_old(bridge: Bridge) -> None:
    for number in range(5):
        bridge.send(range(20), NAME)
        wait(lambda number=number: len(bridge.records(ROUTED)) > 20 * number)  # type: ignore[misc]
        assert seconds_old(bridge) < 5


def test_a_message_that_fails_after_every_replay_ends_in_quarantine(bridge: Bridge, dlt: Callable[..., str]) -> None:
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


def test_a_second_start_on_the_same_file_waits_goes_on_and_counts_the_same_dead_letters(
    bridge: Bridge, second: Bridge, dlt: Callable[..., str]
) -> None:
    second.start()
    wait(lambda: "another bridge leads" in second.output, lambda: second.output)
    assert f"address={bridge.url}" in second.output
    assert bridge.interrupt() == 0
    second.wait_ready()
    assert second.ready()["leader"] is True
    second.send(range(1000, 1100), NAME)
    wait(lambda: second.metric("jmsbridge_routed_messages_total") == 100, lambda: second.output)
    # What the first one has routed is not routed again.
    assert sorted(int(value.split()[1]) for _, value in second.records(ROUTED)) == sorted(
        [*range(20)] * 5 + [*range(1000, 1100)]
    )

    wait_figures(second, 0, 1)
    dlt("discard", "--quarantine", "--all")
    wait_figures(second, 0, 0)
    actions = [json.loads(line)["action"] for line in dlt("audit", "--json").splitlines()]
    assert actions == ["replayed", "replayed", "quarantined", "discarded"]
    assert "Traceback" not in bridge.output + second.output
