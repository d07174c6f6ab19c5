"""Passes of the contestants through all events, one at a time, and their comparison.

The events are in Kafka before the first pass. A contestant is measured from the first moment at which it has committed
150,000 events or a quarter of all, by which time Java has compiled what is needed, to its last published record. One
whose first commit has more than half of the events is measured from its start, with the start of Java in the figures.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from bench.broker import PARTITIONS
from bench.nexmark.contestants import NexmarkContestant, NexmarkProgram
from bench.nexmark.events import events
from bench.nexmark.expected import Expectation
from bench.nexmark.results import QUERIES, in_force
from bench.report import Report, table
from bench.stream_contestants import StreamPlace

if TYPE_CHECKING:
    from bench.broker import Broker
    from bench.nexmark.results import Row
    from bench.options import Options
    from bench.processes import ProcessTree

__all__ = ["measure"]

_PATIENCE_SECONDS = 1800.0
_STILL_SECONDS = 8.0
"""Longer than a contestant publishes nothing while it works."""
_SAMPLE_SECONDS = 0.1
_MARKERS = 2
_WARM_UP = 150_000
"""Greatest number of events that are not timed, which the engine commits first where many wait."""
_COMPUTED_EVENTS = 200_000
"""Greatest number of events whose results are also computed in plain Python."""
_PLAIN = "plain Python"


@dataclass(frozen=True, slots=True)
class NexmarkPass:
    """Pass of one contestant through all events."""

    query: str
    contestant: str
    rate: float
    """Events a second."""
    per_cpu_second: float
    """Events in a second of CPU of the process tree."""
    published: int
    """Records published, of which later ones may replace earlier ones."""


def measure(broker: Broker, options: Options) -> Report:
    """Publishes the events once and has every contestant process them for each query."""
    prefix = f"in.{uuid.uuid4().hex[:6]}."
    topic = f"{prefix}events"
    broker.create(topic, timestamps="CreateTime")
    _publish(broker.bootstrap, topic, options.events)
    print(f"{options.events:,} events published", flush=True)
    expected = Expectation(events(options.events)) if options.events <= _COMPUTED_EVENTS else None
    passes: list[NexmarkPass] = []
    wrong: list[str] = []
    for query in options.queries:
        reference: tuple[str, Counter[Row]] | None = None
        if expected is not None:
            reference = _PLAIN, QUERIES[query].rows(expected.values(query))
        for number in range(options.rounds):
            for program in options.programs:
                contestant = NexmarkContestant(program, query)
                if not contestant.is_able:
                    continue
                made, rows = _pass(broker, contestant, prefix, options)
                passes.append(made)
                print(f"round {number + 1}, {_line(made)}", flush=True)
                if reference is None:
                    reference = made.contestant, rows
                if rows != reference[1]:
                    wrong.append(_difference(made, rows, *reference))
                    print(wrong[-1], flush=True)
    broker.delete(topic)
    if wrong:
        raise RuntimeError("; ".join(wrong))
    return _report(passes, options)


def _publish(bootstrap: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "batch.size": 1 << 19, "log_level": 0})
    for number, event in enumerate(events(count)):
        while True:
            try:
                producer.produce(topic, event.value, partition=number % PARTITIONS, timestamp=event.time)
            except BufferError:
                producer.poll(0.1)
            else:
                break
    if producer.flush(60.0):
        msg = f"Kafka has not taken all events of {topic} within a minute"
        raise RuntimeError(msg)


def _pass(
    broker: Broker, contestant: NexmarkContestant, prefix: str, options: Options
) -> tuple[NexmarkPass, Counter[Row]]:
    place = StreamPlace(broker.bootstrap, contestant.query, prefix, options.folder, kind="nexmark.queries")
    broker.create(place.output)
    try:
        with contestant.running(place) as process:
            begun, done = _await_end(broker, contestant.group(place), place, options.events, process)
        last, records = _read(broker.bootstrap, place.output)
        if done > options.events // 2 or begun >= last:
            # What is left after the first commit would be too little to tell a rate.
            begun, done = process.started, 0
        cpu, left = process.cpu_seconds(begun, last), options.events - done
        rows = QUERIES[contestant.query].rows(map(json.loads, in_force(contestant.query, records)))
        figures = left / (last - begun), left / cpu, len(records)
        return NexmarkPass(contestant.query, contestant.program.value, *figures), _compact(rows, options.events)
    finally:
        broker.delete(place.output)
        place.clean()


def _await_end(broker: Broker, group: str, place: StreamPlace, count: int, process: ProcessTree) -> tuple[float, int]:
    """Time at which enough events had been committed and their number then, once nothing more is published.

    RuntimeError if the program ends or takes too long.
    """
    asking = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "log_level": 0})
    deadline = time.monotonic() + _PATIENCE_SECONDS
    first: tuple[float, int] | None = None
    seen, since = 0, time.monotonic()
    while True:
        process.check()
        if time.monotonic() > deadline:
            msg = (
                f"{seen} records published after {_PATIENCE_SECONDS:.0f} s, and more are coming or none; {process.log}"
            )
            raise RuntimeError(msg)
        done = _committed(asking, place.events)
        if first is None and done >= min(count // 4, _WARM_UP):
            first = time.time(), done
        if (found := broker.count([place.output])) != seen:
            seen, since = found, time.monotonic()
        is_still = seen > 0 and time.monotonic() - since > _STILL_SECONDS
        if first is not None and done >= count and is_still and not _waiting(asking, group):
            asking.close()
            return first
        time.sleep(_SAMPLE_SECONDS)


def _committed(asking: Consumer, topic: str) -> int:
    """Number of events that a group has committed; 0 while Kafka is still choosing who knows."""
    try:
        found = asking.committed([TopicPartition(topic, each) for each in range(PARTITIONS)], timeout=30.0)
    except KafkaException:
        return 0
    return sum(max(partition.offset, 0) for partition in found)


def _waiting(asking: Consumer, group: str) -> bool:
    """True if records wait in an internal topic, whose name begins with the group's; Flink has none."""
    internal = {
        name: topic
        for name, topic in asking.list_topics(timeout=30.0).topics.items()
        if name.startswith(f"{group}-") and not name.endswith(("-changelog", "-dead-letters"))
    }
    asked = [TopicPartition(name, each) for name, topic in internal.items() for each in topic.partitions]
    # The marker of the last transaction is a record that nobody reads.
    return any(
        asking.get_watermark_offsets(partition, timeout=30.0)[1] - max(partition.offset, 0) > _MARKERS
        for partition in (asking.committed(asked, timeout=30.0) if asked else [])
    )


def _compact(rows: Counter[Row], count: int) -> Counter[Row]:
    """The rows, or hashes in their place if they are of many events."""
    if count <= _COMPUTED_EVENTS:
        return rows
    return Counter({(hash(row),): number for row, number in rows.items()})


_Records = list[tuple[bytes | None, bytes | None]]


def _read(bootstrap: str, topic: str) -> tuple[float, _Records]:
    """Time of the last committed record in seconds since 1970, and the keys and values."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.partition.eof": True, "log_level": 0}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
    records: _Records = []
    last, ended = 0, 0
    while ended < PARTITIONS:
        for record in consumer.consume(10_000, 1.0):
            if (error := record.error()) is not None:
                if error.code() != KafkaError._PARTITION_EOF:
                    raise RuntimeError(error.str())
                ended += 1
                continue
            last = max(last, record.timestamp()[1])
            records.append((record.key(), record.value()))
    consumer.close()
    return last / 1000, records


def _difference(made: NexmarkPass, rows: Counter[Row], name: str, wanted: Counter[Row]) -> str:
    missing, more = wanted - rows, rows - wanted
    examples = [f"{text} {next(iter(found))}" for text, found in (("lacks", missing), ("has", more)) if found]
    return (
        f"{made.query}, {made.contestant}: {rows.total():,} results, {name}: {wanted.total():,}; {missing.total():,} "
        f"missing and {more.total():,} too many: it {', it '.join(examples)}"
    )


def _line(each: NexmarkPass) -> str:
    return (
        f"{each.query}, {each.contestant}: {each.rate:,.0f} events/s, {each.per_cpu_second:,.0f} in a CPU-second, "
        f"{each.published:,} records published"
    )


def _report(passes: list[NexmarkPass], options: Options) -> Report:
    names = [program for program in options.programs if any(each.contestant == program for each in passes)]
    rows = []
    for query in dict.fromkeys(each.query for each in passes):
        own = {name: [each for each in passes if (each.query, each.contestant) == (query, name)] for name in names}
        rates = {name: median(each.rate for each in found) for name, found in own.items() if found}
        costs = {name: median(each.per_cpu_second for each in found) for name, found in own.items() if found}
        cells = [f"{rates[name]:,.0f} / {costs[name]:,.0f}" if name in rates else "" for name in names]
        rows.append([query, *cells, f"{_ratio(rates)} / {_ratio(costs)}"])
    title = f"Nexmark, {options.events:,} events; events/s / events in a CPU-second; all results equal"
    return Report(
        "nexmark",
        [table(title, ["", *names, "engine to the better peer"], rows)],
        [],
        [asdict(each) for each in passes],
    )


def _ratio(figures: dict[NexmarkProgram, float]) -> str:
    """The better figure of the engine to that of the peers."""
    engine = [figure for name, figure in figures.items() if name.is_engine]
    peers = [figure for name, figure in figures.items() if not name.is_engine]
    return f"{max(engine) / max(peers):.2f}" if engine and peers else "-"
