"""Passes of the contestants through all events, one at a time, and their comparison.

Each pass has an input of its own. Its first tenth warms the contestant up; when that is processed, all other events
become visible at once, and from then on the contestant is measured, until its last result is visible.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, TopicPartition

from bench.broker import PARTITIONS, committed_records
from bench.feed import Feed, FeedRecord
from bench.nexmark.contestants import NexmarkContestant, NexmarkProgram
from bench.nexmark.events import events
from bench.nexmark.expected import Expectation
from bench.nexmark.results import QUERIES, in_force
from bench.report import Report, table
from bench.stream_contestants import StreamPlace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.broker import Broker
    from bench.nexmark.results import Row
    from bench.options import Options
    from bench.processes import ProcessTree

__all__ = ["measure"]

_PATIENCE_SECONDS = 1800.0
_SAMPLE_SECONDS = 0.1
_MARKERS = 2
_COMPUTED_EVENTS = 200_000
"""Greatest number of events whose results are also computed in plain Python."""
_PLAIN = "plain Python"


@dataclass(frozen=True, slots=True)
class NexmarkPass:
    """Pass of one contestant through all events."""

    query: str
    contestant: str
    rate: float
    """Events a second, without those of the warm-up."""
    per_cpu_second: float
    """Events in a second of CPU of the process tree."""
    published: int
    """Records published, of which later ones may replace earlier ones."""


def measure(broker: Broker, options: Options) -> Report:
    """Has every contestant process the events for each query."""
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
                try:
                    made, rows = _pass(broker, contestant, options)
                except RuntimeError as error:
                    wrong.append(f"{query}, {program}: {error}")
                    print(wrong[-1], flush=True)
                    continue
                passes.append(made)
                print(f"round {number + 1}, {_line(made)}", flush=True)
                if reference is None:
                    reference = made.contestant, rows
                if rows != reference[1]:
                    wrong.append(_difference(made, rows, *reference))
                    print(wrong[-1], flush=True)
    if wrong:
        raise RuntimeError("; ".join(wrong))
    return _report(passes, options)


def _pass(broker: Broker, contestant: NexmarkContestant, options: Options) -> tuple[NexmarkPass, Counter[Row]]:
    place = StreamPlace.apart(broker.bootstrap, contestant.query, options.folder, "nexmark.queries")
    broker.create(place.events, timestamps="CreateTime")
    broker.create(place.output)
    asking = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": contestant.group(place), "log_level": 0})
    try:
        feed = Feed(broker.bootstrap, place.events, _fed(options.events), options.events // 10)
        with contestant.running(place) as process:
            _await_still(asking, contestant, place, feed.warm_up, process)
            begun = time.time()
            feed.release()
            last = _await_still(asking, contestant, place, options.events, process)
        if last < begun:
            msg = f"nothing published after the warm-up, see {process.log}"
            raise RuntimeError(msg)
        cpu, left = process.cpu_seconds(begun, last), options.events - feed.warm_up
        records = committed_records(broker.bootstrap, place.output)
        rows = QUERIES[contestant.query].rows(map(json.loads, in_force(contestant.query, records)))
        figures = left / (last - begun), left / cpu, len(records)
        return NexmarkPass(contestant.query, contestant.program.value, *figures), _compact(rows, options.events)
    finally:
        asking.close()
        broker.delete(place.output, place.events)
        place.clean()


def _fed(count: int) -> Iterator[FeedRecord]:
    """Events without keys, in each partition in turn."""
    for number, event in enumerate(events(count)):
        yield FeedRecord(number % PARTITIONS, event.time, event.value)


def _await_still(
    asking: Consumer, contestant: NexmarkContestant, place: StreamPlace, count: int, process: ProcessTree
) -> float:
    """Time at which the last result became visible, once so many events are processed and nothing more comes.

    RuntimeError if the program ends or takes too long.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    outputs = [TopicPartition(place.output, each) for each in range(PARTITIONS)]
    seen, since, last = -1, time.monotonic(), 0.0
    while True:
        process.check()
        if time.monotonic() > deadline:
            msg = f"not at its end after {_PATIENCE_SECONDS:.0f} s, with {seen:,} records published; see {process.log}"
            raise RuntimeError(msg)
        # Of a consumer of committed records, so that a transaction counts when it is committed.
        found = sum(asking.get_watermark_offsets(each, timeout=30.0)[1] for each in outputs)
        if found != seen:
            since = time.monotonic()
            if seen >= 0:
                last = time.time()
            seen = found
        is_still = time.monotonic() - since > contestant.still_seconds
        if is_still and _committed(asking, place.events) >= count and not _waiting(asking, contestant.group(place)):
            return last
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
