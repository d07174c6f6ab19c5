"""A router on a Spark cluster: it waits for task slots, and counts exactly. `make chaos` kills its executors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.message import Message
from routes.properties import Property
from tests.cluster_bridge import ClusterBridge, router_on_cluster
from tests.integration.bridge_process import wait
from tests.router_load import Load, faults_of
from tests.spark_cluster import spark_cluster
from tests.topic_records import ordered_producer

if TYPE_CHECKING:
    from pathlib import Path

    from engine.embedded import EmbeddedKafka
    from tests.conftest import TopicFactory

HEAP = ("used", "committed", "max")


def test_a_router_works_on_a_cluster(tmp_path: Path, kafka: EmbeddedKafka, topic: TopicFactory) -> None:
    journal, routed = topic("journal", 4), topic("routed", 4)
    bodies = tmp_path / "bodies"
    claims = f"claim-check.folder={bodies}\nroutes.all.out.claim-check-above=64KiB\n"
    checkpoint = f"router.checkpoint=file://{tmp_path}/shared\n{claims}"
    with (
        spark_cluster(tmp_path / "cluster", workers=1, cores=2, secret="not told") as cluster,
        router_on_cluster(tmp_path, kafka, cluster, journal, routed, "realtime", checkpoint) as bridge,
    ):
        few = f"waiting for executors of {cluster.url}: 2 of 4 task slots"
        wait(lambda: few in bridge.get("/ready")[1], lambda: bridge.output, 120)
        assert few in bridge.output
        cluster.start_worker(1)
        bridge.wait_ready()

        load = Load(kafka.bootstrap, journal, 300)
        wait(lambda: load.sent > 1_000)
        count = load.stop()
        assert faults_of(kafka.bootstrap, routed, count, 60) == []
        # Figures of two executors, half a second old.
        wait(lambda: bridge.metric("jmsbridge_routed_messages_total") == count, lambda: bridge.output, 10)

        wait(lambda: executors_shown(bridge) == {"0": 2, "1": 2}, lambda: bridge.output, 10)
        used, committed, most = (bridge.metric(f"jmsbridge_spark_executor_heap_{name}_bytes") for name in HEAP)
        assert 10_000_000 < used <= committed <= most

        fields = {"JMSMessageID": "ID:large", "JMSDestination": "queue:orders"}
        large = Message(b"x" * 100_000, headers=fields, properties={"region": Property("emea")}).to_record()
        producer = ordered_producer(kafka.bootstrap)
        producer.produce(journal, large.value, large.key, headers=list(large.headers))
        assert producer.flush(30) == 0
        # An executor writes it.
        wait(lambda: [path.read_bytes() for path in bodies.glob("*/*")] == [large.value], lambda: bridge.output, 60)

        assert "Traceback" not in bridge.output
        assert bridge.interrupt() == 0
        wait(lambda: not cluster.executors(), cluster.state, 30)
        assert [*(tmp_path / "shared").glob("*/stop.json")]


def executors_shown(bridge: ClusterBridge) -> dict[str, int]:
    """Task slots of each executor that has figures."""
    found = re.findall(r'jmsbridge_spark_executor_task_slots\{executor="(\w+)"\} (\d+)', bridge.get("/metrics")[1])
    return {executor: int(slots) for executor, slots in found}
