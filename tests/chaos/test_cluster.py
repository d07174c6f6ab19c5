"""Faults of a Spark cluster while a router or a topology works on it: nothing is lost, doubled or out of order.

A master and two workers run on loopback. CLUSTER_FAULTS=20 sets how many faults strike in each test.
"""

from __future__ import annotations

import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from typing import TYPE_CHECKING

import psutil
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.cluster_bridge import ClusterBridge, cluster_bridge, router_on_cluster
from tests.integration.bridge_process import descendants, part, wait
from tests.integration.topologies.conftest import PARTITIONS, TopologyBench
from tests.processes import pause
from tests.router_load import Load, faults_of
from tests.spark_cluster import SparkCluster, spark_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from engine.embedded import EmbeddedKafka
    from tests.conftest import TopicFactory

RATE = 300
CHANCE = random.Random()  # noqa: S311 # test data
COUNT = int(os.environ.get("CLUSTER_FAULTS", "8"))
BEYOND_LEASE = 9.0

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster"), workers=2, cores=2, secret="not told") as running:
        yield running


def process_of(bridge: ClusterBridge) -> int:
    """The process of the bridge's part; waits for it if the bridge is just starting it again."""
    found: list[int] = []

    def is_there() -> bool:
        with suppress(LookupError):
            found.append(part(bridge, bridge.part))
        return bool(found)

    wait(is_there, lambda: bridge.output, 30)
    return found[0]


def driver_of(bridge: ClusterBridge) -> int:
    """The JVM of the part."""
    wait(lambda: bool(descendants(process_of(bridge))), lambda: bridge.output, 30)
    return min(descendants(process_of(bridge)))


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


def kill_part(bridge: ClusterBridge) -> None:
    os.kill(process_of(bridge), signal.SIGKILL)


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
    kill_part,
    freeze_driver,
    kill_master,
    cut_network,
]


class Output:
    """Reader of a topic, which counts its records; of transactions, the committed ones."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        settings = {"bootstrap.servers": bootstrap, "group.id": "output", "log_level": 0}
        self._consumer = Consumer({**settings, "isolation.level": "read_committed"})
        self._consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)])
        self._count = 0

    def count(self) -> int:
        while records := self._consumer.consume(10_000, 0.2):
            self._count += len(records)
        return self._count


def strike(bridge: ClusterBridge, name: str, sent: Callable[[], int], output: Output) -> None:
    """Lets faults strike, each after the results of all records that were sent during the one before."""
    for number in range(COUNT):
        time.sleep(CHANCE.uniform(1.0, 6.0))
        fault = FAULTS[number % len(FAULTS)]
        begun = time.monotonic()
        fault(bridge)
        ended, due = time.monotonic(), sent()
        wait(lambda due=due: output.count() >= due, lambda: bridge.output, 120)  # type: ignore[misc]
        now = time.monotonic()
        print(f"{name}: {fault.__name__} for {ended - begun:.1f} s, made up for {now - ended:.1f} s later", flush=True)


@pytest.mark.kills
@pytest.mark.parametrize("mode", ["realtime", "batch"])
def test_a_router_loses_doubles_and_reorders_nothing(
    tmp_path: Path, kafka: EmbeddedKafka, topic: TopicFactory, cluster: SparkCluster, mode: str
) -> None:
    journal, routed = topic("journal", 4), topic("routed", 4)
    with router_on_cluster(tmp_path, kafka, cluster, journal, routed, mode) as bridge:
        bridge.wait_ready()
        load = Load(kafka.bootstrap, journal, RATE)
        try:
            strike(bridge, mode, lambda: load.sent, Output(kafka.bootstrap, routed, 4))
        finally:
            count = load.stop()
        assert faults_of(kafka.bootstrap, routed, count, 120) == []
        assert "Traceback" not in bridge.output


@pytest.mark.kills
@pytest.mark.parametrize(("name", "mode"), [("counts", "realtime"), ("counts", "batch"), ("joined", "batch")])
def test_a_topology_counts_each_record_once(
    tmp_path: Path, kafka: EmbeddedKafka, cluster: SparkCluster, name: str, mode: str
) -> None:
    bench = TopologyBench(tmp_path, kafka.bootstrap)
    with bench.file.open("a") as file:
        file.write(f"topologies.state={tmp_path}/shared\ntopologies.{name}.build={bench.function(name)}\n")
        file.write(f"topologies.{name}.mode={mode}\n")
        file.write(f"topologies.{name}.interval={'10s' if mode == 'realtime' else '1s'}\n")
    bench.send_pages()
    stop = Event()

    def load() -> None:
        while not stop.wait(0.2):
            bench.send_clicks(RATE // 5)

    with (
        cluster_bridge(bench.file, cluster, f"topology:{name}", {"TOPOLOGY_PREFIX": bench.prefix}) as bridge,
        ThreadPoolExecutor() as threads,
    ):
        bridge.wait_ready()
        loading = threads.submit(load)
        try:
            output = Output(kafka.bootstrap, f"{bench.prefix}-{name}-out", PARTITIONS)
            strike(bridge, f"{name}, {mode}", lambda: bench.sent, output)
        finally:
            stop.set()
        loading.result()
        bench.comes_to(f"{name}-out", bench.sent)
        # What was published twice may come a moment later.
        time.sleep(2.0)
        bench.check(f"{name}-out")
        assert "Traceback" not in bridge.output
