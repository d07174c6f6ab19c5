"""Start of one router until its first record: `python -m bench.route_start 500 mixed 0` prints CPU seconds as JSON.

The last number is that of the records that are routed after it, in passes of which the best counts; 0: none.

No broker: `MadeRecords.java` makes the records, in the rows of the router's own reader, and what is routed is thrown
away. The columns are those that the router's sink gets.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import SparkContext

from bench.registry import record, registry
from engine.jars import jars
from engine.java import find_java
from engine.router import route
from engine.router.kafka_io import KafkaIO
from engine.spark import session
from engine.spark.jvm import class_options
from engine.spark.launch import Launch
from routes.config import loads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from routes.model import Config

__all__ = ["main"]

_HEAD = """\
bridge.id=b1
journal.topic=journal
source.s.type=stomp
source.s.url=stomp://127.0.0.1:1
source.s.destinations=queue:orders
"""
_SOURCE = Path(__file__).with_name("MadeRecords.java")
_PARTITIONS = 2
"""Partitions of the journal, whose tasks run side by side."""
_PASSES = 6
"""Passes over the records; Java compiles during the first ones."""
_MIXED = (
    "amount > {n}",
    "code LIKE 'c{n}-%'",
    "amount BETWEEN {n} AND {n}.5",
    "amount * 2 + {n} = price - 1",
)


_CHANGES = {
    "mask": "out.mask=msg.body.customer.name",
    "gzip": "out.convert=gzip",
    "avro": "out.schema=avro:made-value",
    "copies": "out.topic=out.{to}, copy.{to}",
}
"""What becomes of messages that a route with one path takes, by kind of routes."""
_BODY_BYTES = {"path": 400, "xpath": 400, "paths": 1024, "headers": 1024, **dict.fromkeys(_CHANGES, 400)}
"""Sizes of JSON bodies, by kind of routes; 0 for the others."""
_FIVE = {
    "headers": "msg.address = '{0}' AND region = '{1}' AND amount >= {2} AND price < {3} AND code LIKE 'k%'",
    "paths": "msg.body.kind = '{0}' AND msg.body.customer.region = '{1}' AND msg.body.lines[0].amount >= {2} "
    "AND msg.body.price < {3} AND msg.body.code LIKE 'k%'",
}
"""Five conditions on headers, and on the same values in the body."""


_CUSTOMER = {"name": "string", "region": "string", "tier": "int"}
_LINE = {"sku": "string", "amount": "double", "count": "int"}


_SCHEMA = record(
    "Made",
    {
        **dict.fromkeys(("id", "kind"), "string"),
        "customer": record("Customer", _CUSTOMER),
        "placed": "string",
        "lines": {"type": "array", "items": record("Line", _LINE)},
        "price": "double",
        "code": "string",
        "paid": "boolean",
        "note": "string",
    },
)
"""Schema of the JSON bodies."""


def _predicate(number: int, kind: str) -> str:
    """Returns the predicate of a route.

    `equalities`: texts are compared; `mixed`: other conditions; `tenth`: a tenth of these; `path`: the text under one
    path; `xpath`: that in XML; `paths`: five values of the body; `headers`: these values, of headers.
    """
    if kind == "xpath":
        return f"xpath('/m/kind') = 'orders.{number}'"
    if kind == "path" or kind in _CHANGES:
        return f"msg.body.kind = 'orders.{number}'"
    if kind in _FIVE:
        return _FIVE[kind].format(f"orders.{number}", f"r{number % 7}", 0, 100)
    if kind == "mixed" or (kind == "tenth" and number % 10 == 0):
        # None of these is true of a record made here, so that no route of theirs ends the search.
        shape = number if kind == "mixed" else number // 10
        return _MIXED[shape % len(_MIXED)].format(n=1_000_000 + number)
    return f"msg.address = 'orders.{number}' AND region = 'r{number % 7}'"


def _text(count: int, kind: str) -> str:
    lines = []
    for number in range(count):
        route, to = f"routes.r{number}", number % 5
        keys = {"in.include": _predicate(number, kind), "out.topic": f"out.{to}"}
        if kind in _CHANGES:
            key, _, value = _CHANGES[kind].format(to=to).partition("=")
            keys[key] = value
        lines += [f"{route}.{key}={value}\n" for key, value in keys.items()]
    return _HEAD + "".join(lines)


def _jar(folder: Path) -> Path:
    """Compiles `MadeRecords.java` against the classes of a session; returns a jar with it."""
    classes, jar = folder / "classes", folder / "made-records.jar"
    path = class_options(jars() / "spark")[-1]
    compiler = str(find_java().with_name("javac"))
    subprocess.run([compiler, "-nowarn", "-cp", path, "-d", str(classes), str(_SOURCE)], check=True)
    with zipfile.ZipFile(jar, "w") as written:
        for each in classes.rglob("*.class"):
            written.write(each, each.relative_to(classes))
    return jar


def _records(spark: SparkSession, records: int, routes: int, kind: str) -> DataFrame:
    options = {
        "records": str(records),
        "routes": str(routes),
        "partitions": str(min(records, _PARTITIONS)),
        "body": str(_BODY_BYTES.get(kind, 0)),
        "xml": str(kind == "xpath").lower(),
    }
    return spark.read.format("jmsbridge.kafka.MadeRecords").options(**options).load()


def _routed(records: DataFrame, config: Config) -> DataFrame:
    return KafkaIO(records.sparkSession, config).published(route(records, config))


def _run(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def _java_seconds(pid: int) -> float:
    after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def main(arguments: list[str]) -> None:
    """Prints the figures of one table."""
    count, kind = int(arguments[0]), arguments[1]
    folder = Path(tempfile.mkdtemp(prefix="route-start-"))
    settings = {"spark.master": f"local[{_PARTITIONS}]", "spark.driver.extraClassPath": str(_jar(folder))}
    launch = Launch(folder / "spark", folder / "spark.log", settings)
    spark = session.open_session(launch)
    _run(_records(spark, 1, count, kind))
    gateway: Any = SparkContext._gateway
    pid = gateway.proc.pid

    def seconds() -> tuple[float, float]:
        return time.process_time(), _java_seconds(pid)

    def since(before: tuple[float, float]) -> dict[str, float]:
        python, java = seconds()
        return {"python": round(python - before[0], 2), "java": round(java - before[1], 2)}

    began = seconds()
    stack = ExitStack()
    more = f"schema.registry.url={stack.enter_context(registry(_SCHEMA))}\n" if kind == "avro" else ""
    config = loads(more + _text(count, kind), base=folder)
    found: dict[str, Any] = {"routes": count, "kind": kind, "configuration": since(began)}
    began = seconds()
    _run(_routed(_records(spark, 1, count, kind), config))
    found["first record"] = since(began)
    found["passes"] = []
    if records := int(arguments[2]):
        rows = _routed(_records(spark, records, count, kind), config)
        for _ in range(_PASSES):
            began = seconds()
            _run(rows)
            found["passes"].append(since(began)["java"])
    found["beyond 64 KB"] = "64 KB" in (folder / "spark.log").read_text(errors="replace")
    session.close(spark)
    stack.close()
    shutil.rmtree(folder)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
