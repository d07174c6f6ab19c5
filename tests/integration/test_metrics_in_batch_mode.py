"""The figures of a bridge that routes in micro-batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integration.bridge_process import Bridge, configuration, elsewhere, wait
from tests.integration.prometheus import seconds_old

if TYPE_CHECKING:
    from pathlib import Path

    from engine.embedded import EmbeddedArtemis, EmbeddedKafka


def test_figures_are_at_most_five_seconds_old_in_batch_mode(
    tmp_path: Path, kafka: EmbeddedKafka, artemis: EmbeddedArtemis
) -> None:
    name = "figures-in-batches"
    more = f"{elsewhere(name, kafka, artemis)}router.mode=batch\nrouter.interval=1s\n"
    bridge = Bridge(configuration(tmp_path, more))
    try:
        bridge.start()
        bridge.wait_ready()
        for number in range(5):
            bridge.send(range(20), name)
            wait(lambda number=number: len(bridge.records(f"{name}.routed")) > 20 * number)  # type: ignore[misc]
            assert seconds_old(bridge) < 5
    finally:
        bridge.end()
