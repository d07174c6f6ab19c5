"""Time from a kill of the router, in the middle of a long journal, to the first new record after its restart.

The bridge's supervisor starts the router again; Kafka Streams is started again by the benchmark, at once, as a static
member of its group, so that it need not wait until Kafka has given up the killed one.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, TopicPartition

from bench import programs
from bench.broker import PARTITIONS
from bench.contestants import Bridge, Place
from bench.processes import running
from bench.workload import expected

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.broker import Broker
    from bench.contestants import Contestant
    from bench.options import Options

__all__ = ["VICTIMS", "after_kill", "resumed"]

VICTIMS = "python", "java"
"""Processes of a router that are killed, each in a run of its own."""
_BEFORE = 0.1
"""Share of the journal that is routed before the kill."""
_AFTER = 0.5
"""Share of the journal at whose end the run is over."""
_POSITION = "jmsbridge.position"
_PATIENCE_SECONDS = 540.0
_READ = 10_000


def after_kill(broker: Broker, contestant: Contestant, journal: str, victim: str, options: Options) -> float:
    """Seconds from the kill of a process of `VICTIMS` to the first new record of the next one.

    Of a contestant without a supervisor, the only process is killed.
    """
    place = Place(broker.bootstrap, journal, options.folder)
    broker.create(*place.outputs)
    command = contestant.command(place)
    wanted = sum(expected(options.start_records))
    with ExitStack() as stack:
        process = stack.enter_context(running(command, place.log, programs.ROOT))
        broker.await_least(place.outputs, int(_BEFORE * wanted), process, _PATIENCE_SECONDS)
        killed = time.time()
        if isinstance(contestant, Bridge):
            process.kill_router(victim)
        else:
            process.kill()
            process = stack.enter_context(running(command, place.log, programs.ROOT))
        broker.await_least(place.outputs, int(_AFTER * wanted), process, _PATIENCE_SECONDS)
    seconds = resumed(list(_appended(place)), killed)
    broker.delete(*place.outputs)
    place.clean()
    return seconds


def resumed(appended: list[tuple[float, int, int]], killed: float) -> float:
    """Seconds from `killed` to the end of the longest time without a new record after it.

    `appended` has for each record the time at which it was appended, in seconds since 1970, and partition and offset of
    its journal record. A record is new if it comes from behind all those of its partition that were published before. A
    killed router may still publish for a moment, since its JVM has to notice the end of Python.
    """
    highest: dict[int, int] = {}
    for moment, partition, offset in appended:
        if moment < killed:
            highest[partition] = max(offset, highest.get(partition, -1))
    new = (moment for moment, partition, offset in appended if moment >= killed and offset > highest.get(partition, -1))
    _, resumption = max(pairwise([killed, *sorted(new)]), key=lambda pair: pair[1] - pair[0])
    return resumption - killed


def _appended(place: Place) -> Iterator[tuple[float, int, int]]:
    """What `resumed` takes, of all records in the outputs."""
    consumer = Consumer({"bootstrap.servers": place.bootstrap, "group.id": "bench", "log_level": 0})
    partitions = [TopicPartition(topic, each, 0) for topic in place.outputs for each in range(PARTITIONS)]
    left = sum(consumer.get_watermark_offsets(each)[1] for each in partitions)
    consumer.assign(partitions)
    while left > 0:
        for record in consumer.consume(_READ, 1.0):
            left -= 1
            headers: Any = record.headers()
            partition, offset = dict(headers)[_POSITION].decode().split(":")[1:3]
            yield record.timestamp()[1] / 1000, int(partition), int(offset)
    consumer.close()
