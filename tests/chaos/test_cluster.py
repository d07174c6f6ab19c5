"""Faults of a Spark cluster while a router works on it: nothing is lost, doubled or out of order.

A master and two workers run on loopback. CLUSTER_FAULTS=20 sets how many faults strike in each mode.
"""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.integration.bridge_process import descendants, part, wait
from tests.processes import pause
from tests.router_load import ClusterBridge, Load, cluster_bridge, faults_of
from tests.spark_cluster import SparkCluster, spark_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from engine.embedded import EmbeddedKafka
    from tests.conftest import TopicFactory
    from tests.integration.bridge_process import Bridge

RATE = 300
CHANCE = random.Random()  # noqa: S311 # test data
COUNT = int(os.environ.get("CLUSTER_FAULTS", "8"))
BEYOND_LEASE = 9.0

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster"), workers=2, cores=2, secret="not told") as running:
        yield running


def router_of(bridge: Bridge) -> int:
    """The router's process; waits for it if the bridge is just starting it again."""
    found: list[int] = []

    def is_there() -> bool:
        with suppress(LookupError):
            found.append(part(bridge, "router"))
        return bool(found)

    wait(is_there, lambda: bridge.output, 30)
    return found[0]


def driver_of(bridge: Bridge) -> int:
    """The JVM of the router."""
    wait(lambda: bool(descendants(router_of(bridge))), lambda: bridge.output, 30)
    return min(descendants(router_of(bridge)))


def executor_of(cluster: SparkCluster) -> psutil.Process:
    """Any of the executors; waits for one."""
    wait(lambda: bool(cluster.executors()), cluster.state, 60)
    return CHANCE.choice([*cluster.executors().values()])


def kill_executor(bridge: ClusterBridge) -> None:
    executor_of(bridge.cluster).kill()


def freeze_executor(bridge: ClusterBridge) -> None:
    """Stops an executor beyond its lease, and lets it go on while its successor works."""
    frozen = executor_of(bridge.cluster)
    pause(frozen.pid)
    time.sleep(BEYOND_LEASE)
    if frozen.is_running():
        frozen.send_signal(signal.SIGCONT)


def kill_worker(bridge: ClusterBridge) -> None:
    cluster = bridge.cluster
    number = CHANCE.choice([*cluster.workers])
    cluster.kill(cluster.workers[number])
    time.sleep(1.0)
    cluster.start_worker(number)


def kill_driver(bridge: ClusterBridge) -> None:
    os.kill(driver_of(bridge), signal.SIGKILL)


def kill_router(bridge: ClusterBridge) -> None:
    os.kill(router_of(bridge), signal.SIGKILL)


def freeze_driver(bridge: ClusterBridge) -> None:
    java = driver_of(bridge)
    pause(java)
    time.sleep(BEYOND_LEASE)
    with suppress(ProcessLookupError):
        os.kill(java, signal.SIGCONT)


def kill_master(bridge: ClusterBridge) -> None:
    cluster = bridge.cluster
    assert cluster.master
    cluster.kill(cluster.master)
    time.sleep(1.0)
    cluster.start_master()
    wait(lambda: cluster.living_workers() == len(cluster.workers), cluster.state, 120)


def cut_network(bridge: ClusterBridge) -> None:
    """Parts executors from the driver, or only its answers from them; Kafka is there for all."""
    both_ways = CHANCE.choice([True, False])
    for proxy in bridge.network:
        proxy.silence(both_ways=both_ways)
    time.sleep(BEYOND_LEASE)
    for proxy in bridge.network:
        proxy.resume()


FAULTS: list[Callable[[ClusterBridge], None]] = [
    kill_executor,
    freeze_executor,
    kill_worker,
    kill_driver,
    kill_router,
    freeze_driver,
    kill_master,
    cut_network,
]


@pytest.mark.kills
@pytest.mark.parametrize("mode", ["realtime", "batch"])
def test_nothing_is_lost_doubled_or_out_of_order(
    tmp_path: Path, kafka: EmbeddedKafka, topic: TopicFactory, cluster: SparkCluster, mode: str
) -> None:
    journal, routed = topic("journal", 4), topic("routed", 4)
    with cluster_bridge(tmp_path, kafka, cluster, journal, routed, mode) as bridge:
        bridge.wait_ready()
        load = Load(kafka.bootstrap, journal, RATE)
        try:
            for number in range(COUNT):
                time.sleep(CHANCE.uniform(1.0, 6.0))
                fault = FAULTS[number % len(FAULTS)]
                begun = time.monotonic()
                fault(bridge)
                bridge.wait_ready(120)
                print(f"{mode}: {fault.__name__}: ready again after {time.monotonic() - begun:.1f} s", flush=True)
        finally:
            count = load.stop()
        assert faults_of(kafka.bootstrap, routed, count, 120) == []
        assert "Traceback" not in bridge.output
