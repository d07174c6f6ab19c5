"""A router on a Spark cluster: it waits for task slots, counts exactly, and goes on when an executor is killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster_load import Load, cluster_bridge, faults_of
from tests.integration.bridge_process import wait
from tests.spark_cluster import spark_cluster

if TYPE_CHECKING:
    from pathlib import Path

    from engine.embedded import EmbeddedKafka
    from tests.conftest import TopicFactory

pytestmark = pytest.mark.timeout(300)


def test_a_router_works_on_a_cluster(tmp_path: Path, kafka: EmbeddedKafka, topic: TopicFactory) -> None:
    journal, routed = topic("journal", 4), topic("routed", 4)
    with (
        spark_cluster(tmp_path / "cluster", workers=1, cores=2, secret="not told") as cluster,
        cluster_bridge(tmp_path, kafka, cluster, journal, routed, "realtime") as bridge,
    ):
        few = f"waiting for executors of {cluster.url}: 2 of 4 task slots"
        wait(lambda: few in bridge.get("/ready")[1], lambda: bridge.output, 120)
        cluster.start_worker(1)
        bridge.wait_ready()

        load = Load(kafka.bootstrap, journal, 300)
        wait(lambda: load.sent > 1_000)
        count = load.stop()
        assert faults_of(kafka.bootstrap, routed, count, 60) == []
        # Figures of two executors, half a second old.
        wait(lambda: bridge.metric("jmsbridge_routed_messages_total") == count, lambda: bridge.output, 10)

        load = Load(kafka.bootstrap, journal, 300, first=count)
        wait(lambda: load.sent > count + 300)
        min(cluster.executors().items())[1].kill()
        wait(lambda: load.sent > count + 1_500)
        count = load.stop()
        assert faults_of(kafka.bootstrap, routed, count, 120) == []
        assert "Traceback" not in bridge.output
        bridge.wait_ready()
        assert bridge.interrupt() == 0
        wait(lambda: not cluster.executors(), cluster.state, 30)
