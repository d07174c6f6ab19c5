"""Kafka cluster of three nodes on loopback, each broker and controller, whose topics have three copies."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient

from engine.embedded import EmbeddedKafka, free_ports
from engine.embedded.ports import LOOPBACK
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from confluent_kafka.admin import PartitionMetadata

__all__ = ["KafkaCluster", "kafka_cluster"]

_NODES = 3
_CLUSTER_ID = "b25lIGNsdXN0ZXIgaGVyZQ"
_HEAP_MEGABYTES = 256
_REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "controlled.shutdown.enable": "true",
    # A killed broker loses its partitions after this time; the default is three times as long.
    "broker.session.timeout.ms": "3000",
}


class _Node(EmbeddedKafka):
    """A node of the cluster; `controllers` are the ports of all controllers, in the order of the nodes."""

    def __init__(self, folder: Path, jars: Path, number: int, port: int, controllers: Sequence[int]) -> None:
        super().__init__(folder / str(number), port, jars, heap_megabytes=_HEAP_MEGABYTES)
        self._number = number
        self._controllers = controllers

    def _cluster_id(self) -> str:
        return _CLUSTER_ID

    def _properties(self, controller_port: int) -> dict[str, str]:
        del controller_port  # The other nodes have to know it before this one starts.
        voters = (f"{number}@{LOOPBACK}:{port}" for number, port in enumerate(self._controllers))
        return (
            super()._properties(self._controllers[self._number])
            | _REPLICATED
            | {"node.id": str(self._number), "controller.quorum.voters": ",".join(voters)}
        )

    def _forget_last_run(self) -> None:
        """Leaves that to the session timeout, which is short here."""


class KafkaCluster:
    """The nodes, of which one at a time may be killed."""

    def __init__(self, folder: Path, jars: Path) -> None:
        ports = free_ports(2 * _NODES)
        self.nodes = [_Node(folder, jars, number, ports[number], ports[_NODES:]) for number in range(_NODES)]

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(node.bootstrap for node in self.nodes)

    def start(self) -> None:
        """Starts all nodes at the same time: none answers before two of three controllers have elected a leader."""
        with ThreadPoolExecutor() as pool:
            for started in [pool.submit(node.start) for node in self.nodes]:
                started.result()

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()

    def kill(self, number: int) -> None:
        """Ends a node without a chance to hand over its partitions."""
        pid = self.nodes[number].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        until(lambda: not self.nodes[number].alive())

    def copies(self, topic: str) -> set[int]:
        """Number of copies that the partitions of a topic have."""
        return {len(partition.replicas) for partition in self._partitions(topic)}

    def await_copies(self) -> None:
        """Waits until all copies of all partitions are complete."""
        until(lambda: all(len(each.isrs) == len(each.replicas) for each in self._partitions()), 60)

    def _partitions(self, topic: str | None = None) -> list[PartitionMetadata]:
        topics = AdminClient({"bootstrap.servers": self.bootstrap}).list_topics(topic, timeout=30).topics
        return [partition for found in topics.values() for partition in found.partitions.values()]


@contextmanager
def kafka_cluster(folder: Path, jars: Path) -> Iterator[KafkaCluster]:
    """A running cluster, ended afterwards."""
    cluster = KafkaCluster(folder, jars)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
