"""The targets of `make fuzz`, briefly: right inputs are read, wrong ones refused, in bounded time and memory."""

from __future__ import annotations

import time
import tracemalloc
from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.fuzz.mutation import mutated
from tests.fuzz.targets import MOST_BYTES, TARGETS, Target

EXAMPLES = 60
MOST_PEAK_BYTES = 32 * 1024 * 1024

every_target = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)


@every_target
def test_seeds_are_well_formed(target: Target) -> None:
    for seed in target.seeds:
        target.read(seed)


@every_target
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@example(b"")
@example(b"\xff" * MOST_BYTES)
@example(b"(" * MOST_BYTES)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(target: Target, data: bytes) -> None:
    target.feed(data)


@every_target
def test_changed_inputs_are_read_or_refused_in_bounded_time_and_memory(target: Target) -> None:
    random = Random(target.name)
    inputs = [mutated(random, target.seeds, MOST_BYTES) for _ in range(5 * EXAMPLES)]
    begun = time.process_time()
    for data in inputs:
        target.feed(data)
    assert time.process_time() - begun < 60
    tracemalloc.start()
    try:
        for data in inputs[:EXAMPLES]:
            target.feed(data)
        assert tracemalloc.get_traced_memory()[1] < MOST_PEAK_BYTES
    finally:
        tracemalloc.stop()
