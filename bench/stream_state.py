"""Topologies with a large state beside the same ones in Kafka Streams: memory, rates, and a start after a kill.

The input has one record of each key and then as many with keys at random; each record is counted under its key. Once
all are published and committed, the program is killed and started again, with one more record to process. Both
contestants run at least once: Kafka Streams throws a state away that was in a transaction at the kill.
"""

from __future__ import annotations

import time
from statistics import fmean
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition

from bench import programs
from bench.broker import PARTITIONS
from bench.memory import memory_of
from bench.report import Check, Report, table
from bench.stream_contestants import StreamContestant, StreamPlace

if TYPE_CHECKING:
    from bench.broker import Broker
    from bench.options import Options
    from bench.processes import ProcessTree

__all__ = ["between", "cost_between", "measure", "rate_between"]

TARGET_GROWTH = 1.1
"""Greatest resident memory in the last quarter of the updates, to that in the second."""
TARGET_SECONDS = 30.0
_SAMPLE_SECONDS = 1.0
_PATIENCE_SECONDS = 1800.0
_COMMITTED_SECONDS = 35.0
"""Longer than the interval in which either contestant commits its state."""
_MARK = "bench.new"

Sample = dict[str, float]
"""Time in `seconds`, records `published` and `cpu` seconds until then, and megabytes `rss` and `heap`."""


def measure(broker: Broker, options: Options) -> Report:
    """Runs each contestant once."""
    modes = [*([""] if options.peer else []), *options.modes]
    runs = []
    for mode in modes:
        runs.append(_run(broker, StreamContestant(mode, is_exact=False), options))
        print(" ".join(_row(runs[-1])), flush=True)
    checks = []
    for run in runs:
        if run["mode"]:
            name = f"stream state, {run['contestant']}"
            checks.append(Check(f"{name}: memory, last quarter to second", run["growth"], TARGET_GROWTH))
            checks.append(Check(f"{name}: start after a kill, s", run["restart_seconds"], TARGET_SECONDS))
    columns = ["", "new keys/s", "updates/s", "CPU-s per million new", "CPU-s per million updates"]
    columns += ["MB, second quarter", "MB, last", "heap, MB", "start after kill, s"]
    title = f"State of {options.keys:,} keys"
    return Report("stream-state", [table(title, columns, [_row(run) for run in runs])], checks, runs)


def _row(run: dict[str, Any]) -> list[str]:
    rates, costs, sizes = ("new_rate", "update_rate"), ("new_cost", "update_cost"), ("second_mb", "last_mb", "heap_mb")
    return [
        run["contestant"],
        *(f"{run[name]:,.0f}" for name in rates),
        *(f"{run[name]:.1f}" for name in costs),
        *(f"{run[name]:,.0f}" for name in sizes),
        f"{run['restart_seconds']:.1f}",
    ]


def _run(broker: Broker, contestant: StreamContestant, options: Options) -> dict[str, Any]:
    place = StreamPlace.apart(broker.bootstrap, "total", options.folder)
    broker.create(place.events, timestamps="CreateTime")
    broker.create(place.output)
    keys = options.keys
    loaded = {"records": keys, "keys": keys, "updates": keys}
    programs.run("LoadStreams", bootstrap=broker.bootstrap, prefix=place.prefix, **loaded)
    with contestant.running(place) as process:
        samples = _samples(broker, place.output, 2 * keys, process)
        time.sleep(_COMMITTED_SECONDS)
        process.kill()
    restart = _restart_seconds(contestant, place)
    broker.delete(place.events, place.output)
    place.clean()
    quarters = [between(samples, keys + keys * part // 4, keys + keys * (part + 1) // 4) for part in (1, 3)]
    second, last = (fmean(sample["rss"] for sample in quarter) for quarter in quarters)
    return {
        "contestant": contestant.name,
        "mode": contestant.mode,
        # Without the beginning, in which Java compiles.
        "new_rate": rate_between(samples, keys // 4, keys),
        "update_rate": rate_between(samples, keys + keys // 4, 2 * keys),
        "new_cost": cost_between(samples, keys // 4, keys),
        "update_cost": cost_between(samples, keys + keys // 4, 2 * keys),
        "second_mb": second,
        "last_mb": last,
        "growth": last / second,
        "heap_mb": min(sample["heap"] for sample in quarters[1]),
        "restart_seconds": restart,
        "samples": samples,
    }


def _samples(broker: Broker, output: str, records: int, process: ProcessTree) -> list[Sample]:
    """Samples until so many records are published."""
    samples: list[Sample] = []
    begun = time.monotonic()
    published = 0
    while published < records:
        process.check()
        seconds = time.monotonic() - begun
        if seconds > _PATIENCE_SECONDS:
            msg = f"{published:,} of {records:,} records after {_PATIENCE_SECONDS:.0f} s, see {process.log}"
            raise RuntimeError(msg)
        published = broker.count([output])
        # At the very beginning there may be no JVM yet.
        if published:
            cpu = process.cpu_seconds(process.started, time.time())
            samples.append({"seconds": seconds, "published": published, "cpu": cpu, **memory_of(process)})
        time.sleep(max(0.0, _SAMPLE_SECONDS - (time.monotonic() - begun - seconds)))
    return samples


def between(samples: list[Sample], low: int, high: int) -> list[Sample]:
    """Samples with more records than `low` and at most `high`; RuntimeError if there is none."""
    found = [sample for sample in samples if low < sample["published"] <= high]
    if not found:
        msg = f"no sample of memory from {low:,} to {high:,} records: take more --keys"
        raise RuntimeError(msg)
    return found


def rate_between(samples: list[Sample], low: int, high: int) -> float:
    """Records a second from the first sample that has `low` records to the first that has `high`."""
    return 1 / _growth(samples, low, high, "seconds")


def cost_between(samples: list[Sample], low: int, high: int) -> float:
    """CPU seconds for a million records, between the same samples as those of `rate_between`."""
    return 1e6 * _growth(samples, low, high, "cpu")


def _growth(samples: list[Sample], low: int, high: int, name: str) -> float:
    """Growth of a figure for each record."""
    first, last = (next(each for each in samples if each["published"] >= number) for number in (low, high))
    return (last[name] - first[name]) / (last["published"] - first["published"])


def _restart_seconds(contestant: StreamContestant, place: StreamPlace) -> float:
    """Time from the start of the process to when Kafka has the result of a record that came after the kill."""
    settings = {"bootstrap.servers": place.bootstrap, "group.id": "bench", "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer(settings)
    partitions = [TopicPartition(place.output, each) for each in range(PARTITIONS)]
    for partition in partitions:
        partition.offset = consumer.get_watermark_offsets(partition)[1]
    consumer.assign(partitions)
    producer = Producer({"bootstrap.servers": place.bootstrap, "log_level": 0})
    producer.produce(place.events, b'{"n":0,"amount":0}', b"k0", headers={_MARK: b""})
    producer.flush()
    with contestant.running(place) as process:
        while time.time() - process.started < _PATIENCE_SECONDS:
            process.check()
            for record in consumer.consume(1000, 1.0):
                # Others before it may be published again.
                if _MARK in dict(record.headers() or ()):
                    consumer.close()
                    return float(record.timestamp()[1] / 1000 - process.started)
    msg = f"nothing published after a kill for {_PATIENCE_SECONDS:.0f} s, see {process.log}"
    raise RuntimeError(msg)
