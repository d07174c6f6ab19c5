"""The queries of Nexmark as topologies give the results that plain Python computes."""

from __future__ import annotations

from functools import cache

import pytest
from pyspark.sql import SparkSession

from bench.nexmark import queries
from bench.nexmark.events import Event, events
from bench.nexmark.expected import Expectation
from bench.nexmark.results import QUERIES, in_force
from engine.streams import TopologyTestDriver

COUNT, PER_SECOND = 3_000, 100
"""Events of half a minute, so that several windows close before the tail."""


@cache
def _events() -> tuple[list[Event], Expectation]:
    made = list(events(COUNT, PER_SECOND))
    return made, Expectation(made)


def test_all_queries_are_topologies() -> None:
    assert queries.__all__ == list(QUERIES)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_gives_what_plain_python_computes(spark: SparkSession, name: str) -> None:
    made, expected = _events()
    with TopologyTestDriver(getattr(queries, name)(), spark) as driver:
        for event in made:
            driver.pipe_input(queries.EVENTS, None, event.value, timestamp=event.time)
        published = driver.read_output(queries.OUTPUT)
        assert driver.rejected() == []
        assert {reason for _, reason in driver.counts()} <= {"repeated_records"}
    query, values = QUERIES[name], in_force(name, ((each.key, each.value) for each in published))
    found, wanted = query.rows(values), query.rows(expected.values(name))
    assert wanted
    assert found == wanted
