"""The short form of the chaos suite: one bridge, a few kills. `make chaos` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.plan import seed, short
from tests.chaos.run import run
from tests.chaos.system import System


@pytest.mark.kills
def test_nothing_is_lost_and_nothing_published_twice_whatever_is_killed(tmp_path: Path, nats_server: Path) -> None:
    chosen = seed()
    system = System(tmp_path, "realtime")
    try:
        outcome = run(system, chosen, short(chosen), print, per_second=40)
    finally:
        system.end()
    assert outcome.verdict.total.delivered > 1000
    assert outcome.verdict.faults() == {}, dict(outcome.verdict.examples)
    assert outcome.stuck == []
