"""Figures of processes, of real ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from prometheus_client import CollectorRegistry

from engine.telemetry.meters import SUPERVISOR, ProcessMetrics
from tests.waiting import patience

# A child with a session of its own, as brokers are started.
_FAMILY = """\
import subprocess, sys
subprocess.Popen([sys.executable, '-c', 'import sys; sys.stdin.read()'], start_new_session=True)
print(flush=True)
sys.stdin.read()
"""


@contextmanager
def family() -> Iterator[int]:
    """A process and its child."""
    with subprocess.Popen(
        [sys.executable, "-c", _FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def figures(leaders: Mapping[str, int]) -> Mapping[tuple[str, str], float]:
    """By metric and component."""
    registry = CollectorRegistry()
    ProcessMetrics(registry, lambda: leaders)
    samples = [sample for family in registry.collect() for sample in family.samples]
    return {(each.name.removeprefix("jmsbridge_process_"), each.labels["component"]): each.value for each in samples}


def test_a_component_is_its_process_and_all_that_came_from_it() -> None:
    with family() as leader:
        found = figures({"router": leader})
        alone = figures({})
    assert found["threads", "router"] == 2
    assert found["open_fds", "router"] >= 6
    assert found["resident_memory_bytes", "router"] > 2_000_000
    assert found["cpu_seconds_total", "router"] >= 0
    assert 0 <= time.time() - found["start_time_seconds", "router"] < 60
    assert {component for _, component in alone} == {SUPERVISOR}


def test_the_supervisor_is_itself_alone() -> None:
    with family():
        found = figures({})
    assert found["cpu_seconds_total", SUPERVISOR] > 0
    assert 0 < found["resident_memory_bytes", SUPERVISOR] < 4_000_000_000


def test_a_component_that_has_ended_has_no_figures() -> None:
    with family() as leader:
        pass
    deadline = time.monotonic() + patience(30)
    # Nobody has waited for the child, which takes a moment to end.
    while (components := {component for _, component in figures({"router": leader})}) != {SUPERVISOR}:
        assert time.monotonic() < deadline, components
