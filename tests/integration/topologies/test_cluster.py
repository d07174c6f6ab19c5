"""Topologies whose tasks run in the executors of a cluster: their state moves, and results come once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.spark_cluster import SparkCluster, spark_cluster
from tests.waiting import patience, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.topologies.conftest import TopologyBench


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster"), workers=2, cores=1) as running:
        yield running


@pytest.mark.kills
@pytest.mark.parametrize(
    ("name", "mode", "state"),
    [
        ("counts", "realtime", "file://{folder}/shared"),
        ("joined", "batch", "{folder}/shared"),
        ("processed", "auto", "{folder}/shared"),
    ],
)
def test_a_topology_goes_on_when_an_executor_is_killed(
    bench: TopologyBench, cluster: SparkCluster, name: str, mode: str, state: str
) -> None:
    with bench.file.open("a") as file:
        file.write(f"spark.master={cluster.url}\nspark.executor.memory=512m\n")
        file.write(f"topologies.state={state.format(folder=bench.folder)}\n")
    options = ("--mode", mode, "--interval", "5s" if mode == "realtime" else "1s")
    bench.send_pages()
    process = bench.start_alone(name, *options)
    # In batches, so that shares go from one executor to the other and come back.
    for sent in range(50, 301, 50):
        bench.send_clicks(50)
        bench.comes_to(f"{name}-out", sent)
    assert len(cluster.executors()) == 2
    min(cluster.executors().items())[1].kill()
    bench.send_clicks(200)
    assert process.wait(patience(60)) != 0
    assert "Spark has lost an executor" in bench.log.read_text() or "does not report" in bench.log.read_text()
    process = bench.start_alone(name, *options)
    bench.comes_to(f"{name}-out", 500)
    bench.stop(process)
    bench.check(f"{name}-out")
    assert {each.name for each in (bench.folder / "shared").iterdir()} == {f"{bench.prefix}-{name}"}
    # The cluster is free again for the next one.
    until(lambda: not cluster.executors())
