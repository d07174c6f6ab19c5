"""Rate at which sources move a full queue of Artemis into Kafka, compared with plain JMS applications.

The application (`peer/jms/JmsPeer.java`) is what one would write by hand with Artemis' own client: it acknowledges 500
messages at a time after Kafka has confirmed them, and writes bodies and ids only, where the source writes all headers.
The STOMP source does it in both ways: with one acknowledgement for all 500 (`acknowledge=cumulative`), and with one for
each message, which is its default, so that none that it did not see is acknowledged. An AMQP source with one worker and
with two stands beside the faster of two applications: the one above, cumulative, and the same program with Qpid JMS,
which speaks AMQP. A consumer that only takes and acknowledges shows what the broker gives.

All start on a full queue of their own; in each round one after the other. The rate is that of the broker's append times
after the share of the warm-up, so that no start counts; the bare consumer measures its own time.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, TopicPartition

from bench import programs
from bench.broker import PARTITIONS
from bench.processes import running
from bench.report import Check, Report, table
from bench.workload import properties
from engine.embedded import EmbeddedArtemis, free_ports
from engine.java import find_java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.broker import Broker
    from bench.options import Options

__all__ = ["measure"]

TARGET_RATIO = 1.0
AMQP_TARGET_RATIOS = {"one worker": 0.5, "two workers": 0.8}
_BODY_BYTES = 400
_BATCH = 500
_HEAP_MEGABYTES = 1024
_PATIENCE_SECONDS = 240.0
_SOURCE = "jms"
_PEER = "jms application"
_SOURCE_NAME = "stomp source"
_CONSUMER = "bare jms consumer"
_AMQP = "amqp source"
_CUMULATIVE = f"{_PEER}, cumulative"
_OVER_AMQP = f"{_PEER}, over AMQP"


@dataclass(frozen=True, slots=True)
class Pass:
    """Pass of one contestant through its queue."""

    contestant: str
    rate: float
    """Messages a second after the warm-up."""
    whole_seconds: float
    """Time from the first message in Kafka to the last."""
    cpu_per_million: float
    """CPU seconds of the process tree for a million messages after the warm-up."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Queue and topic of one pass."""

    kafka: Broker
    artemis: EmbeddedArtemis
    options: Options
    name: str

    @property
    def messages(self) -> int:
        return self.options.source_warm_up + self.options.source_messages


def measure(kafka: Broker, options: Options) -> Report:
    """Runs both in turns."""
    contestants: dict[str, Callable[[_Place], list[str]]] = {
        _CUMULATIVE: _application,
        f"{_SOURCE_NAME}, cumulative": _source_cumulative,
        f"{_PEER}, individual": _application_one_by_one,
        f"{_SOURCE_NAME}, individual": _source,
        _OVER_AMQP: _application_amqp,
        f"{_AMQP}, one worker": partial(_source_amqp, workers=1),
        f"{_AMQP}, two workers": partial(_source_amqp, workers=2),
    }
    passes = []
    with _artemis(options) as artemis:
        # Both brokers are cold in the beginning, which must not count against the first contestant.
        for name, command in list(contestants.items())[:2] if options.peer else ():
            print(f"to warm the brokers: {_line(_pass(name, command, kafka, artemis, options))}", flush=True)
        for _ in range(options.rounds):
            for name, command in contestants.items():
                if options.peer or not name.startswith(_PEER):
                    passes.append(_pass(name, command, kafka, artemis, options))
                    print(_line(passes[-1]), flush=True)
            if options.peer:
                passes.append(_drained(kafka, artemis, options))
                print(_line(passes[-1]), flush=True)
    return _report(passes)


@contextmanager
def _artemis(options: Options) -> Iterator[EmbeddedArtemis]:
    folder = options.folder / f"artemis-{uuid.uuid4().hex[:8]}"
    core, stomp, amqp = free_ports(3)
    artemis = EmbeddedArtemis(folder, core, stomp, amqp, programs.JARS, heap_megabytes=_HEAP_MEGABYTES)
    try:
        artemis.start()
        yield artemis
    finally:
        artemis.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _pass(
    contestant: str, command: Callable[[_Place], list[str]], kafka: Broker, artemis: EmbeddedArtemis, options: Options
) -> Pass:
    place = _Place(kafka, artemis, options, f"bench-{uuid.uuid4().hex[:8]}")
    kafka.create(place.name)
    _run("load", place, messages=place.messages, bytes=_BODY_BYTES)
    log = options.folder / f"{place.name}.log"
    with running(command(place), log, programs.ROOT) as process:
        kafka.await_count([place.name], place.messages, process, _PATIENCE_SECONDS)
        times = _append_times(kafka, place)
        warm, last = times[options.source_warm_up - 1], times[-1]
        cpu_seconds = process.cpu_seconds(warm, last)
    if left := int(_run("left", place)):
        msg = f"{contestant}: {left} messages were not acknowledged, see {log}"
        raise RuntimeError(msg)
    kafka.delete(place.name)
    return Pass(
        contestant,
        rate=options.source_messages / (last - warm),
        whole_seconds=last - times[0],
        cpu_per_million=cpu_seconds / options.source_messages * 1e6,
    )


def _drained(kafka: Broker, artemis: EmbeddedArtemis, options: Options) -> Pass:
    place = _Place(kafka, artemis, options, f"bench-{uuid.uuid4().hex[:8]}")
    _run("load", place, messages=place.messages, bytes=_BODY_BYTES)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = float(_run("drain", place, messages=place.messages, warm=options.source_warm_up, batch=_BATCH))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Pass(_CONSUMER, options.source_messages / seconds, seconds, cpu_seconds / place.messages * 1e6)


def _application(place: _Place) -> list[str]:
    kafka = {"bootstrap": place.kafka.bootstrap, "topic": place.name}
    return _java("consume", place, messages=place.messages, batch=_BATCH, **kafka)


def _application_one_by_one(place: _Place) -> list[str]:
    return [*_application(place), "each=true"]


def _application_amqp(place: _Place) -> list[str]:
    return [*_application(place), f"url={place.artemis.amqp_url}"]


def _source(place: _Place, **more: str) -> list[str]:
    folder = place.options.folder / place.name
    folder.mkdir()
    own = {
        "journal.partitions": str(PARTITIONS),
        "embedded.data": str(folder),
        "router.checkpoint": str(folder / "checkpoint"),
        "http.address": f"127.0.0.1:{free_ports(1)[0]}",
        f"source.{_SOURCE}.type": "stomp",
        f"source.{_SOURCE}.url": place.artemis.stomp_url,
        f"source.{_SOURCE}.destinations": f"queue:{place.name}",
        **{f"source.{_SOURCE}.{key}": value for key, value in more.items()},
        **place.options.settings,
    }
    outputs = [f"{place.name}.out"] * 5
    file = folder / "bridge.properties"
    file.write_text(properties(place.kafka.bootstrap, place.name, outputs, own))
    return [sys.executable, "-m", "engine", "run", "--only", f"source:{_SOURCE}", "--config", str(file)]


def _source_cumulative(place: _Place) -> list[str]:
    return _source(place, acknowledge="cumulative")


def _source_amqp(place: _Place, workers: int) -> list[str]:
    return _source(place, type="amqp", url=place.artemis.amqp_url, workers=str(workers))


def _java(command: str, place: _Place, **arguments: object) -> list[str]:
    jars = [*programs.JARS.glob("artemis/*/lib/*.jar"), *programs.JARS.glob("kafka/kafka-clients-*.jar")]
    program = programs.ROOT / "bench" / "peer" / "jms" / "JmsPeer.java"
    given = {"url": place.artemis.core_url, "queue": place.name, **arguments}
    words = [f"{name}={value}" for name, value in given.items()]
    return [str(find_java()), "-Xmx1g", "-cp", ":".join(map(str, jars)), str(program), command, *words]


def _run(command: str, place: _Place, **arguments: object) -> str:
    done = subprocess.run(_java(command, place, **arguments), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        msg = f"JmsPeer {command} failed: {done.stderr.strip()[-2000:]}"
        raise RuntimeError(msg)
    return done.stdout


def _append_times(kafka: Broker, place: _Place) -> list[float]:
    """Times at which the broker appended the records, in seconds since 1970, in order."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "bench", "log_level": 0})
    consumer.assign([TopicPartition(place.name, partition, 0) for partition in range(PARTITIONS)])
    times: list[float] = []
    deadline = time.monotonic() + _PATIENCE_SECONDS
    try:
        while len(times) < place.messages and time.monotonic() < deadline:
            times += [message.timestamp()[1] / 1000 for message in consumer.consume(10_000, 1)]
    finally:
        consumer.close()
    if len(times) != place.messages:
        msg = f"{len(times)} of {place.messages} records read"
        raise RuntimeError(msg)
    return sorted(times)


def _line(each: Pass) -> str:
    return f"{each.contestant}: {each.rate:,.0f} messages/s, {each.cpu_per_million:.1f} CPU-s per million"


def _report(passes: list[Pass]) -> Report:
    by_name: dict[str, list[Pass]] = {}
    for each in passes:
        by_name.setdefault(each.contestant, []).append(each)
    rows = []
    for name, own in by_name.items():
        rates = sorted(each.rate for each in own)
        cpu = median(each.cpu_per_million for each in own)
        rows.append([name, f"{rates[0]:,.0f} / {median(rates):,.0f} / {rates[-1]:,.0f}", f"{cpu:.1f}"])
    checks = []
    for row in rows:
        kind, _, how = row[0].partition(", ")
        peers = [_CUMULATIVE, _OVER_AMQP] if kind == _AMQP else [f"{_PEER}, {how}"]
        target = AMQP_TARGET_RATIOS[how] if kind == _AMQP else TARGET_RATIO
        if kind not in (_SOURCE_NAME, _AMQP) or peers[0] not in by_name:
            continue
        rounds = zip(by_name[row[0]], *(by_name[peer] for peer in peers), strict=True)
        ratio = median(own.rate / max(other.rate for other in others) for own, *others in rounds)
        row.append(f"{ratio:.2f}")
        checks.append(Check(f"{row[0]}: rate to the application's", ratio, target, at_least=True))
    title = f"Artemis into Kafka, persistent text messages of {_BODY_BYTES} bytes"
    made = table(title, ["", "messages/s min / median / max", "CPU-s per million", "to the application"], rows)
    return Report("jms-source", [made], checks, [asdict(each) for each in passes])
