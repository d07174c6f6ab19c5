"""The cases of the table with load and kills, through Kafka: what is lost or doubled, and the memory it takes."""

from __future__ import annotations

import base64
import os
import signal
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kafka.clients import KafkaClients
from engine.kafka.errors import KafkaUnavailableError
from engine.kafka.offsets import KafkaOffsets
from engine.kafka.topics import BridgeTopics
from engine.telemetry.status import State
from tests.brokers.bench import numbered
from tests.brokers.packages import CACHE
from tests.integration.connectors import sinks
from tests.integration.connectors.running import Running, configure, visible
from tests.integration.connectors.worker import start_worker
from tests.waiting import until

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator, Mapping

    from routes.model import Config
    from tests.brokers.bench import Bench

__all__ = ["FAULTS"]

_LOAD = 6000
"""Messages of a case with kills."""
_SIZE = 200
"""Bytes of their bodies."""
_KILLS = 2
_SECONDS = 120.0
"""Seconds that a worker may take from the last kill until it has everything."""
_SLOWEST = 500
"""Messages a second that are waited for, however many there are."""
_QUIET_SECONDS = 3.0
_MEGABYTE = 1 << 20


def _down_at_start(bench: Bench) -> None:
    queue = bench.queue()
    bench.application.send(bench.theirs(queue), numbered(10))
    bench.end_application()
    bench.broker.kill()
    config = _source(bench, queue)
    source = Running(config)
    try:
        until(lambda: source.status.current.state is State.DEGRADED or source.error, 60, "degraded")
        bench.remark(f"“{source.status.current.detail}”")
        bench.broker.start()
        source.acknowledges(10)
    finally:
        if not bench.broker.alive():
            bench.broker.start()
        if source.alive:
            source.stop()


def _many_waiting(bench: Bench) -> None:
    queue = bench.queue()
    _fill(bench, queue, bench.waiting)
    bench.end_application()
    config = _source(bench, queue)
    began, most = time.monotonic(), 0
    with _worker("source", "src", config) as worker:
        while (
            found := _journaled(config)
        ) < bench.waiting and time.monotonic() - began < _SECONDS + bench.waiting / 500:
            most = max(most, _resident_bytes(worker.pid))
            assert worker.poll() is None, "the worker ended"
            time.sleep(0.2)
        seconds = time.monotonic() - began
        until(lambda: bench.broker.waiting(queue) == 0, 60, "all acknowledged")
    _count(bench, Counter(int(message.body.rstrip(b".")) for message in visible(config)), bench.waiting)
    rate = (
        f"{bench.waiting:,} messages in {seconds:.0f} s"
        if found >= bench.waiting
        else f"{found:,} of {bench.waiting:,}"
    )
    bench.remark(f"{rate}, the worker had {most / _MEGABYTE:.0f} MiB at most")


def _source_killed(bench: Bench) -> None:
    _source_under_load(bench, lambda worker, _: _kill(worker))


def _broker_killed_under_a_source(bench: Bench) -> None:
    _source_under_load(bench, lambda _, bench: _bounce(bench))


def _source_under_load(bench: Bench, fault: Callable[[subprocess.Popen[bytes], Bench], None]) -> None:
    queue = bench.queue()
    _fill(bench, queue, _LOAD)
    bench.end_application()
    config = _source(bench, queue)
    for _ in range(_KILLS):
        before = _journaled(config)
        with _worker("source", "src", config) as worker:
            until(lambda before=before: _journaled(config) > before or before >= _LOAD, 60, "progress")  # type: ignore[misc]
            fault(worker, bench)
    with _worker("source", "src", config):
        _take_all(bench, queue, config)
    _count(bench, _numbers(config), _LOAD)


def _take_all(bench: Bench, queue: str, config: Config) -> None:
    """Waits until all messages are journaled and acknowledged, if need be with a restart of the broker."""
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline and (len(_numbers(config)) < _LOAD or bench.broker.waiting(queue)):
        time.sleep(1)
    if left := bench.broker.waiting(queue):
        bench.differs(f"{left} of {_LOAD:,} stay with a connection that has ended, until the broker restarts")
        _bounce(bench)
    until(lambda: len(_numbers(config)) == _LOAD, _SECONDS, f"all {_LOAD} journaled")
    until(lambda: bench.broker.waiting(queue) == 0, _SECONDS, "all acknowledged")


def _sink_killed(bench: Bench) -> None:
    _sink_under_load(bench, lambda worker, _: _kill(worker))


def _broker_killed_under_a_sink(bench: Bench) -> None:
    _sink_under_load(bench, lambda _, bench: _bounce(bench))


def _sink_under_load(bench: Bench, fault: Callable[[subprocess.Popen[bytes], Bench], None]) -> None:
    queue = bench.queue()
    folder = bench.folder / queue
    folder.mkdir()
    keys = {**bench.broker.settings(bench.protocol), "embedded.data": str(CACHE)}
    if bench.protocol in bench.broker.keeps_positions:
        keys[".position-queue"] = f"{queue}_positions"
        bench.broker.create(keys[".position-queue"])
        bench.remark("with `position-queue`")
    config = sinks.configure(folder, bench.bootstrap, queue, keys)
    sinks.RouterStandIn(config).give(f"queue/{queue}", sinks.numbered(_LOAD, size=_SIZE))
    for _ in range(_KILLS):
        before = sinks.committed(config)
        with _worker("sink", "out", config) as worker:
            until(lambda before=before: sinks.committed(config) > before or before >= _LOAD, 60, "progress")  # type: ignore[misc]
            fault(worker, bench)
    with _worker("sink", "out", config):
        until(lambda: sinks.committed(config) == _LOAD, _SECONDS, f"all {_LOAD} dealt with")
    if bench.protocol in bench.broker.application_fails_under_load:
        found = _numbers_by_a_source(bench, queue)
    else:
        found = Counter()
        while message := bench.application.receive(bench.theirs(queue), 10 if len(found) < _LOAD else _QUIET_SECONDS):
            found[_number(message)] += 1
    _count(bench, found, _LOAD)


FAULTS: Mapping[str, Callable[[Bench], None]] = {
    "broker down at start": _down_at_start,
    "many waiting messages": _many_waiting,
    "source killed under load": _source_killed,
    "broker killed under a source's load": _broker_killed_under_a_source,
    "sink killed under load": _sink_killed,
    "broker killed under a sink's load": _broker_killed_under_a_sink,
}
"""Cases by the name of their row."""


def _source(bench: Bench, queue: str) -> Config:
    folder = bench.folder / queue
    folder.mkdir()
    keys = {**bench.broker.settings(bench.protocol), ".destinations": f"queue:{queue}", "embedded.data": str(CACHE)}
    config = configure(folder, bench.bootstrap, f"journal-{queue}", keys)
    BridgeTopics(config).ensure_journal()
    until(lambda: _has_leaders(config), 30, "the journal has leaders")
    return config


def _has_leaders(config: Config) -> bool:
    try:
        _journaled(config)
    except KafkaUnavailableError:
        return False
    return True


def _fill(bench: Bench, queue: str, count: int) -> None:
    forms = ({"type": "text", "body": str(n).ljust(_SIZE, ".")} for n in range(count))
    bench.application.send(bench.theirs(queue), forms)


@contextmanager
def _worker(kind: str, name: str, config: Config) -> Iterator[subprocess.Popen[bytes]]:
    process = start_worker(kind, name, config.path, config.path.with_suffix(".log"))
    try:
        yield process
    finally:
        _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _bounce(bench: Bench) -> None:
    bench.broker.kill()
    bench.broker.start()
    time.sleep(_QUIET_SECONDS)


def _journaled(config: Config) -> int:
    """Offsets in the journal, those of markers and of open transactions included."""
    ends = KafkaOffsets(KafkaClients(config.kafka_access)).ends([config.journal.topic])
    return sum(ends.get(config.journal.topic, {}).values())


def _numbers(config: Config) -> Counter[int]:
    return Counter(int(message.body.rstrip(b".")) for message in visible(config))


def _numbers_by_a_source(bench: Bench, queue: str) -> Counter[int]:
    """Reads what a sink sent by a source of the bridge."""
    found: Counter[int] = Counter()
    source = bench.source(f"queue:{queue}")
    source.connect()
    deadline = time.monotonic() + _SECONDS
    while bench.broker.waiting(queue) and time.monotonic() < deadline:
        while delivery := source.receive(1):
            found[int(delivery.message.body.rstrip(b"."))] += 1
            source.acknowledge([delivery.token])
    return found


def _number(message: Mapping[str, str]) -> int:
    body = message.get("body", "")
    text = base64.b64decode(body).decode() if message["type"] == "bytes" else body
    return int(text.rstrip("."))


def _count(bench: Bench, found: Counter[int], wanted: int) -> None:
    lost = wanted - len(found)
    doubled = sum(found.values()) - len(found)
    if lost:
        bench.differs(f"{lost} of {wanted:,} LOST")
    if doubled:
        bench.differs(f"{doubled} of {wanted:,} doubled")
    if not lost and not doubled:
        bench.remark(f"{wanted:,} messages, 0 lost, 0 doubled")


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
