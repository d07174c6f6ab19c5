"""The workloads in Pathway, with persistence, in as many workers as `pathway spawn` gives it."""

from __future__ import annotations

from typing import Any

import pathway as pw

from bench.python_engines.programs import arguments
from bench.python_engines.rule import FIELDS, scored


class _Event(pw.Schema):
    key: str
    time: int
    user: str
    url: str
    cents: int


class _Scored(pw.Schema):
    user: str
    host: str
    cents: int
    level: str


def _words(lines: pw.Table) -> pw.Table:
    words = lines.select(word=pw.this.data.str.split(" ")).flatten(pw.this.word)
    return words.groupby(pw.this.word).reduce(pw.this.word, count=pw.reducers.count())


def _windows(events: pw.Table) -> pw.Table:
    # The beginning of a tumbling window is a key as any other, which costs less than `windowby`.
    starts = events.select(pw.this.key, start=pw.this.time - pw.this.time % 10_000)
    return starts.groupby(pw.this.key, pw.this.start).reduce(pw.this.key, pw.this.start, count=pw.reducers.count())


@pw.udf(deterministic=True)
def _made(user: str, url: str, cents: int) -> tuple[str, str, int, str]:
    return scored(user, url, cents)


def _function(events: pw.Table) -> pw.Table:
    made = events.select(made=_made(pw.this.user, pw.this.url, pw.this.cents))
    return made.select(**{name: pw.this.made[number] for number, name in enumerate(FIELDS)})


def main() -> None:
    """Runs until it is ended."""
    given = arguments()
    workload = given["workload"]
    client = {"bootstrap.servers": given["bootstrap"], "linger.ms": "50", "batch.size": str(1 << 18)}
    source: dict[str, Any] = {"format": "plaintext"} if workload == "words" else {"format": "json", "schema": _Event}
    settings = {**client, "group.id": given["group"], "auto.offset.reset": "earliest"}
    records = pw.io.kafka.read(settings, topic=given["input"], autocommit_duration_ms=1000, **source)
    made = {"words": _words, "windows": _windows, "function": _function}[workload](records)
    pw.io.kafka.write(made, client, topic_name=given["output"], format="json")
    backend = pw.persistence.Backend.filesystem(given["state"])
    pw.run(monitoring_level=pw.MonitoringLevel.NONE, persistence_config=pw.persistence.Config(backend))


if __name__ == "__main__":
    main()
