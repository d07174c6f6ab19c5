"""A query is ready once every partition of the journal is read, and its start is timed up to its first message."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from engine.router.vitals import Readiness, process_age
from engine.telemetry.meters import SparkMetrics
from tests.unit.router.test_meter import READING

NOTHING = replace(READING, acknowledged=0)


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def seconds(registry: CollectorRegistry, until: str) -> float | None:
    return registry.get_sample_value("jmsbridge_router_start_seconds", {"until": until})


def test_real_time_mode_is_ready_when_the_task_of_each_partition_reads(registry: CollectorRegistry) -> None:
    now = [100.0]
    readiness = Readiness(SparkMetrics(registry), [0, 1], 90.0, lambda: now[0])
    for partitions in ((), (0,), (1,)):
        readiness.update(replace(NOTHING, reading=frozenset(partitions)))
        assert not readiness.ready
    readiness.update(replace(NOTHING, reading=frozenset((0, 1))))
    assert readiness.ready
    assert (seconds(registry, "ready"), seconds(registry, "routed")) == (10.0, 0.0)

    now[0] = 103.0
    readiness.update(replace(NOTHING, reading=frozenset((0, 1)), acknowledged=1))
    now[0] = 200.0
    readiness.update(replace(NOTHING, reading=frozenset((0, 1)), acknowledged=5))
    assert (seconds(registry, "ready"), seconds(registry, "routed")) == (10.0, 13.0)


def test_batch_mode_is_ready_after_its_first_trigger(registry: CollectorRegistry) -> None:
    readiness = Readiness(SparkMetrics(registry), [0, 1], 0.0)
    readiness.update(NOTHING)
    assert not readiness.ready
    readiness.update(replace(NOTHING, looked=True))
    assert readiness.ready


def test_the_age_of_a_process_begins_before_its_code_runs() -> None:
    assert process_age() >= time.process_time() / (os.cpu_count() or 1)
