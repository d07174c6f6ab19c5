"""Bridges whose router or topology works on a cluster of Spark, with proxies between executors and driver."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.embedded import free_ports
from tests.integration.bridge_process import Bridge
from tests.integration.connectors.proxy import Proxy
from tests.router_load import CONFIGURATION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from engine.embedded import EmbeddedKafka
    from tests.spark_cluster import SparkCluster

__all__ = ["ClusterBridge", "cluster_bridge", "router_on_cluster"]

_CLUSTER = """\
spark.master={master}
spark.authenticate.secret={secret}
spark.executor.memory=512m
spark.driver.bindAddress=127.0.0.1
spark.driver.host=127.0.0.2
spark.driver.port={driver}
spark.driver.blockManager.port={blocks}
"""
_INTERVALS = {"realtime": "10s", "batch": "500ms"}


class ClusterBridge(Bridge):
    """A bridge with one part, whose driver executors reach by proxies."""

    def __init__(
        self, file: Path, cluster: SparkCluster, network: Sequence[Proxy], part: str, environment: Mapping[str, str]
    ) -> None:
        super().__init__(file, environment=environment)
        self.cluster = cluster
        self.network = network
        self.part = part


@contextmanager
def cluster_bridge(
    file: Path, cluster: SparkCluster, part: str, environment: Mapping[str, str] | None = None
) -> Iterator[ClusterBridge]:
    """One part of the bridge of `file` on the cluster, started and ended afterwards; settings are added to the file."""
    driver, blocks = free_ports(2)
    with file.open("a") as settings:
        settings.write(_CLUSTER.format(master=cluster.url, secret=cluster.secret, driver=driver, blocks=blocks))
    network = [Proxy(port, port, "127.0.0.2") for port in (driver, blocks)]
    bridge = ClusterBridge(file, cluster, network, part, environment or {})
    bridge.start("--only", part)
    try:
        yield bridge
    finally:
        bridge.end()
        for proxy in network:
            proxy.close()


@contextmanager
def router_on_cluster(
    folder: Path, kafka: EmbeddedKafka, cluster: SparkCluster, journal: str, routed: str, mode: str, more: str = ""
) -> Iterator[ClusterBridge]:
    """A router of the messages of a `Load` on the cluster, started and ended afterwards."""
    file = folder / "jms-bridge.properties"
    names = {"folder": folder, "bootstrap": kafka.bootstrap, "http": free_ports(1)[0], "interval": _INTERVALS[mode]}
    file.write_text(CONFIGURATION.format(**names, mode=mode, journal=journal, routed=routed) + more)
    with cluster_bridge(file, cluster, "router") as bridge:
        yield bridge
