"""The workloads of the comparison with stream processors for Python give, as topologies, what plain Python computes."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from bench.python_engines import topologies
from bench.python_engines.workloads import WORKLOADS
from engine.streams import TopologyTestDriver

COUNT, WARM_UP = 1_000, 100


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_topology_gives_what_plain_python_computes(spark: SparkSession, name: str) -> None:
    workload = WORKLOADS[name]
    with TopologyTestDriver(getattr(topologies, name)(), spark) as driver:
        for record in workload.records(COUNT, WARM_UP):
            driver.pipe_input(topologies.EVENTS, record.key, record.value, timestamp=record.time)
        found = workload.results(each.value for each in driver.read_output(topologies.OUTPUT))
        assert driver.rejected() == []
    assert found == workload.expected(workload.records(COUNT, WARM_UP))
