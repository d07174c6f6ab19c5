"""The router on a real Kafka: each journal record is routed once, whatever happens to the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Bench


@pytest.mark.parametrize("mode", ["realtime", "batch"])
def test_routes_each_record_once_across_a_clean_restart_and_a_kill(bench: Bench, mode: str) -> None:
    bench.send(500)
    router = bench.start(mode).wait_ready()
    bench.wait_numbers(500)
    assert router.stop() == 0

    bench.send(500)
    router = bench.start(mode).wait_ready()
    bench.wait_numbers(1000)
    bench.send(2000)
    router.kill()

    router = bench.start("batch" if mode == "realtime" else "realtime").wait_ready()
    found = bench.wait_numbers(3000)
    assert router.stop() == 0
    assert found == dict.fromkeys(range(3000), 1)
