"""Rate and cost of topologies beside the same ones in Kafka Streams.

All contestants read the same topics, from their beginning, and write to topics of their own, whose records carry the
broker's time. "Steady" is from the moment at which the share of the warm-up had been published to the last record. What
contestants publish is compared as a multiset of keys and values.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from bench import programs
from bench.broker import PARTITIONS
from bench.report import Check, Report, table
from bench.stream_contestants import NATIVE, WINDOWS, StreamContestant, StreamPlace

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.broker import Broker
    from bench.options import Options

__all__ = ["measure"]

_KEYS = 10_000
_MOST_FOR_HOPS = 2.0
"""Most CPU time of windows of a minute that begin each second, to that of windows that follow one another."""
_PATIENCE_SECONDS = 400.0
_PEERS = StreamContestant("", is_exact=False), StreamContestant("", is_exact=True)
_LEAST = {_PEERS[0].name: 0.8, _PEERS[1].name: 1.0}
"""Least rate of a native topology, to the peer's."""
_PYTHON_LEAST = 150_000.0
"""Least number of records that a Python function over Arrow batches takes in a second of CPU."""


@dataclass(frozen=True, slots=True)
class StreamsPass:
    """Pass of one contestant through the input of one topology."""

    topology: str
    contestant: str
    start_seconds: float
    """Time from the start of the process to the first published record."""
    rate: float
    """Input records a second while steady."""
    cpu_per_million: float
    """CPU seconds of the process tree for a million input records while steady."""
    published: int
    digest: str
    """Sum of the digests of all keys and values."""


def measure(broker: Broker, options: Options) -> Report:
    """Loads the topics once and has every contestant process them."""
    prefix = f"in.{uuid.uuid4().hex[:6]}."
    records = options.warm_up + options.records
    topics = [f"{prefix}{name}" for name in ("names", "events", "left", "right", "few")]
    broker.create(*topics, timestamps="CreateTime")
    programs.run("LoadStreams", bootstrap=broker.bootstrap, prefix=prefix, records=records, keys=_KEYS)
    print(f"topics loaded: {3 * records + _KEYS} records", flush=True)
    passes = []
    for number in range(options.rounds):
        for topology in options.topologies:
            for contestant in _contestants(topology, options):
                passes.append(_pass(broker, topology, contestant, prefix, options))
                print(f"round {number + 1}, {_line(passes[-1])}", flush=True)
    broker.delete(*topics)
    return _report(passes, options)


def _contestants(topology: str, options: Options) -> list[StreamContestant]:
    peers = _PEERS if options.peer and topology in NATIVE else ()
    # A join of several topics, and Python functions, run in batches only.
    modes = options.modes if topology in ("count", "once") else ("batch",)
    return [*peers, *(StreamContestant(mode, is_exact=True) for mode in modes)]


def _pass(broker: Broker, topology: str, contestant: StreamContestant, prefix: str, options: Options) -> StreamsPass:
    place = StreamPlace(broker.bootstrap, topology, prefix, options.folder)
    broker.create(place.output)
    try:
        with contestant.running(place) as process:
            _await_end(broker, place.output, process.check)
            started = process.started
        times, digest = _read(broker.bootstrap, place.output)
        times.sort()
        warm = len(times) * options.warm_up // (options.warm_up + options.records)
        first, steady, last = times[0] / 1000, times[warm] / 1000, times[-1] / 1000
        millions = options.records / 1e6
        return StreamsPass(
            topology,
            contestant.name,
            start_seconds=first - started,
            rate=millions * 1e6 / (last - steady),
            cpu_per_million=process.cpu_seconds(steady, last) / millions,
            published=len(times),
            digest=digest,
        )
    finally:
        broker.delete(place.output)
        place.clean()


def _await_end(broker: Broker, output: str, check: Callable[[], None]) -> None:
    """Returns when nothing has been published for some seconds; RuntimeError if nothing is in the end."""
    deadline, seen, since = time.monotonic() + _PATIENCE_SECONDS, 0, time.monotonic()
    while seen == 0 or time.monotonic() - since < 5:
        check()
        if time.monotonic() > deadline:
            msg = f"{seen} records after {_PATIENCE_SECONDS:.0f} s, and more are coming or none"
            raise RuntimeError(msg)
        if (found := broker.count([output])) != seen:
            seen, since = found, time.monotonic()
        time.sleep(0.25)


def _read(bootstrap: str, topic: str) -> tuple[list[int], str]:
    """Times of the committed records of a topic in milliseconds, and the sum of their digests."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.partition.eof": True, "log_level": 0}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
    times, total, ended = [], 0, 0
    while ended < PARTITIONS:
        for record in consumer.consume(10_000, 1.0):
            if (error := record.error()) is not None:
                if error.code() != KafkaError._PARTITION_EOF:
                    raise RuntimeError(error.str())
                ended += 1
                continue
            times.append(record.timestamp()[1])
            content = (record.key() or b"") + b"\0" + (record.value() or b"")
            total += int.from_bytes(hashlib.blake2b(content, digest_size=16).digest(), "big")
    consumer.close()
    return times, f"{total % (1 << 128):032x}"


def _line(each: StreamsPass) -> str:
    return (
        f"{each.topology}, {each.contestant}: {each.rate:,.0f} records/s steady, {each.cpu_per_million:.1f} CPU-s per "
        f"million, {each.published:,} published, the first after {each.start_seconds:.1f} s"
    )


def _report(passes: list[StreamsPass], options: Options) -> Report:
    rows, checks = [], []
    for topology in options.topologies:
        own = [each for each in passes if each.topology == topology]
        results = {(each.published, each.digest) for each in own}
        if len(results) > 1:
            told = sorted({f"{each.contestant}: {each.published:,} ({each.digest[:8]})" for each in own})
            msg = f"topology '{topology}' does not publish the same: {'; '.join(told)}"
            raise RuntimeError(msg)
        names = list(dict.fromkeys(each.contestant for each in own))
        rates = {name: median(each.rate for each in own if each.contestant == name) for name in names}
        costs = {name: median(each.cpu_per_million for each in own if each.contestant == name) for name in names}
        best = max((name for name in names if name.startswith("engine")), key=lambda name: rates[name])
        rows += [[f"{topology}, {name}", f"{rates[name]:,.0f}", f"{costs[name]:.1f}"] for name in names]
        if topology == "column":
            checks.append(Check("streams, column: records per CPU-s", 1e6 / costs[best], _PYTHON_LEAST, at_least=True))
        for peer, least in _LEAST.items():
            if peer in rates:
                name = f"streams, {topology}: rate of {best} to {peer}"
                checks.append(Check(name, rates[best] / rates[peer], least, at_least=True))
    if set(WINDOWS) <= set(options.topologies):
        tumbling, hopping = (
            median(each.cpu_per_million for each in passes if each.topology == name) for name in WINDOWS
        )
        checks.append(Check("streams, CPU of hopping to tumbling windows", hopping / tumbling, _MOST_FOR_HOPS))
    columns = ["", "records/s", "CPU-s per million"]
    title = f"Topologies, steady state over {options.records:,} records; all outputs equal"
    return Report("streams", [table(title, columns, rows)], checks, [asdict(each) for each in passes])
