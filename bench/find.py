"""Rate of a search: a full scan with a predicate on a header, with one on the body, and for an id.

The journal has small records in four partitions, none of which is what is looked for, so that each search reads all. At
last the id is looked for with filters of ids.
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import asdict, dataclass
from statistics import median
from threading import Event
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from bench.report import Check, Report, table
from bench.throughput import JOURNAL
from engine.find.question import FindQuestion
from engine.find.search import FindProgress, find
from routes.config import load

if TYPE_CHECKING:
    from pathlib import Path

    from bench.broker import Broker
    from bench.options import Options
    from routes.model import Config

__all__ = ["config_of", "measure"]

RATE = 300_000
"""Least records a second."""
ID_SECONDS = 2.0
"""Most seconds for an id with filters."""
_QUESTIONS = {
    "header": FindQuestion(where="region = 'nowhere'"),
    "body": FindQuestion(where="msg.body.amount > 1000"),
    "id": FindQuestion(message_id="ID:nobody:1"),
}
_ADDRESSES, _REGIONS = ("orders", "prices", "trades", "audit"), ("emea", "apac", "amer", "none")


@dataclass(frozen=True, slots=True)
class Scan:
    """Full scan of the journal."""

    question: str
    records: int
    seconds: float
    start_seconds: float
    """Time until the first records were read, in which the JVM starts."""

    @property
    def rate(self) -> float:
        """Records a second, the start of the JVM included."""
        return self.records / self.seconds


def measure(broker: Broker, options: Options) -> Report:
    """Fills the journal once, and looks for each thing in each round."""
    broker.create(JOURNAL)
    _fill(broker.bootstrap, options.find_records)
    config = config_of(broker.bootstrap, options.folder)
    scans, filtered = [], []
    for number in range(options.rounds):
        for name, question in _QUESTIONS.items():
            scans.append(_scan(config, name, question, options.find_records))
            print(f"round {number + 1}, {name}: {scans[-1].rate:,.0f} records/s", flush=True)
            # The filters that this scan has written would leave out nearly all in a later one.
            shutil.rmtree(config.embedded.data / "find", ignore_errors=True)
        _scan(config, "filters", _QUESTIONS["id"], options.find_records)
        last = _scan(config, "filters", _QUESTIONS["id"], options.find_records)
        filtered.append(last.seconds)
        print(f"round {number + 1}, id with filters: {last.seconds:.1f} s for {last.records:,} records", flush=True)
    checks, rows = [Check("find, by id with filters: seconds", median(filtered), ID_SECONDS)], []
    for name in _QUESTIONS:
        rate, start = (
            median(getattr(scan, field) for scan in scans if scan.question == name)
            for field in ("rate", "start_seconds")
        )
        checks.append(Check(f"find, by {name}: records a second", rate, RATE, at_least=True))
        rows.append([name, f"{rate:,.0f}", f"{start:.1f}"])
    shown = table("Full scans", ["by", "records/s", "first record, s"], rows)
    return Report("find", [shown], checks, [asdict(scan) for scan in scans])


def _scan(config: Config, name: str, question: FindQuestion, records: int) -> Scan:
    begun = time.monotonic()
    start, last = 0.0, None
    for each in find(config, question, Event()):
        assert isinstance(each, FindProgress), "nothing is there"
        if each.read and not start:
            start = time.monotonic() - begun
        last = each
    assert last is not None
    if not last.done or last.records + last.excluded != records:
        msg = f"{last.records} of {records} records were read"
        raise RuntimeError(msg)
    return Scan(name, last.records, time.monotonic() - begun, start)


def config_of(bootstrap: str, folder: Path) -> Config:
    """The configuration of a bridge whose journal is searched."""
    file = folder / "find.properties"
    file.write_text(
        f"bridge.id=bench\nkafka.bootstrap.servers={bootstrap}\nembedded=off\njournal.topic={JOURNAL}\n"
        "routes.all.in.include=TRUE\nroutes.all.out.topic=bench.out\n"
    )
    return load(file)


def _fill(bootstrap: str, records: int) -> None:
    """Writes messages with six headers and a body of about a hundred bytes."""
    begun = time.monotonic()
    to_kafka = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 500_000})
    for number in range(records):
        headers: list[tuple[str, str | bytes | None]] = [
            ("jms.JMSMessageID", b"ID:bench:%d" % number),
            ("jms.JMSDestination", f"queue:{_ADDRESSES[number % 4]}".encode()),
            ("jms.JMSCorrelationID", b"order-%d" % (number // 4)),
            ("jms.JMSTimestamp", b"1790000000000"),
            ("jms.region", _REGIONS[number // 4 % 4].encode()),
            ("jmsbridge.body", b"text"),
        ]
        body = json.dumps({"order": number, "amount": number % 1000, "customer": {"name": "Somebody", "tier": 2}})
        while True:
            try:
                to_kafka.produce(JOURNAL, body, b"order-%d" % (number // 4), headers=headers)
                break
            except BufferError:
                to_kafka.poll(0.1)
    to_kafka.flush()
    print(f"journal loaded: {records} records in {time.monotonic() - begun:.0f} s", flush=True)
