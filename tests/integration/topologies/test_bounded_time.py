"""Records of the future and late records on a real Kafka, in both modes and through a kill."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.integration.topologies.conftest import BEGIN_MS, TopologyBench
from tests.topic_records import committed_records
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Mapping

YEAR_2100_MS = 4_102_444_800_000
HOUR_MS, DAY_MS = 3_600_000, 86_400_000


def take_any_time(bench: TopologyBench) -> None:
    """Has Kafka take records of the future, which it refuses by default."""
    admin = AdminClient({"bootstrap.servers": bench.bootstrap, "log_level": 0})
    longest = ConfigEntry(
        "message.timestamp.after.max.ms", str((1 << 63) - 1), incremental_operation=AlterConfigOpType.SET
    )
    topic = ConfigResource(ResourceType.TOPIC, f"{bench.prefix}-clicks", incremental_configs=[longest])
    for done in admin.incremental_alter_configs([topic]).values():
        done.result(30)


def send(bench: TopologyBench, number: int, timestamp: int) -> None:
    producer = bench._producer()
    value = json.dumps({"page": "p", "n": number})
    producer.produce(f"{bench.prefix}-clicks", value, "k", partition=0, timestamp=timestamp)
    assert producer.flush(30) == 0


def letters(bench: TopologyBench) -> dict[int, Mapping[str, str]]:
    """Headers of the dead letters by the numbers of their clicks."""
    found = {}
    for record in committed_records(bench.bootstrap, f"{bench.prefix}-bounded-dead-letters"):
        about = {header: str(value, "utf-8") for header, value in record.headers() or [] if isinstance(value, bytes)}
        found[json.loads(record.value() or b"{}")["n"]] = about
    return found


@pytest.mark.parametrize("mode", ["realtime", "batch"])
def test_records_of_the_future_and_late_ones_are_dead_letters(bench: TopologyBench, mode: str) -> None:
    take_any_time(bench)
    process = bench.start("bounded", "--mode", mode)
    send(bench, 1, BEGIN_MS)
    send(bench, 2, YEAR_2100_MS)
    send(bench, 3, BEGIN_MS + 1_000)
    send(bench, 4, BEGIN_MS + 2 * DAY_MS)
    send(bench, 5, BEGIN_MS)
    bench.comes_to("counts-out", 3)
    until(lambda: len(letters(bench)) == 2, 60)
    bench.stop(process)
    assert [value["total"] for _, value in bench.published("counts-out")] == [1, 4, 4]
    found = letters(bench)
    assert {number: about["jmsbridge.reason"] for number, about in found.items()} == {2: "future", 5: "late"}
    assert found[2]["jmsbridge.node"] == "clicks"
    assert found[5]["jmsbridge.node"] == "counts"
    start = BEGIN_MS - BEGIN_MS % 60_000
    assert (found[5]["jmsbridge.window-start"], found[5]["jmsbridge.window-end"]) == (str(start), str(start + 60_000))
    # Windows end before their ends.
    assert int(found[5]["jmsbridge.lateness"]) == BEGIN_MS + 2 * DAY_MS - (start + 60_000 + DAY_MS - 1)


def test_a_record_of_the_future_that_is_repeated_after_a_kill_is_judged_as_before(bench: TopologyBench) -> None:
    take_any_time(bench)
    options = ("--mode", "realtime", "--interval", "60m")
    killed = bench.start_alone("bounded", *options)
    send(bench, 1, BEGIN_MS)
    bench.comes_to("counts-out", 1)
    # The first intervals are short whatever is set.
    bench.commits("bounded")
    passes_at = time.time() + 25
    send(bench, 2, round(passes_at * 1_000) + HOUR_MS)
    send(bench, 3, BEGIN_MS + 1_000)
    bench.comes_to("counts-out", 2)
    until(lambda: 2 in letters(bench), 60)
    bench.kill(killed)
    time.sleep(max(0, passes_at + 1 - time.time()))
    process = bench.start_alone("bounded", *options)
    send(bench, 4, BEGIN_MS + 2_000)
    bench.comes_to("counts-out", 3)
    bench.stop(process)
    assert [value["total"] for _, value in bench.published("counts-out")] == [1, 4, 8]
    assert list(letters(bench)) == [2]
