"""Start of one router until its first record: `python -m bench.route_start 500 mixed 0` prints CPU seconds as JSON.

The last number is that of the records that are routed after it, twice, the second time timed; 0: none.

No broker: the frame is made by Spark itself, with headers as the journal has them, and what is routed is thrown away.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import SparkContext

from engine.router import route
from engine.spark import session
from engine.spark.launch import Launch
from routes.config import loads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["main"]

_HEAD = """\
bridge.id=b1
journal.topic=journal
source.s.type=stomp
source.s.url=stomp://127.0.0.1:1
source.s.destinations=queue:orders
"""
_MIXED = (
    "amount > {n}",
    "code LIKE 'c{n}-%'",
    "amount BETWEEN {n} AND {n}.5",
    "amount * 2 + {n} = price - 1",
)


def _predicate(number: int, kind: str) -> str:
    """`equalities`: texts are compared; `mixed`: other conditions; `tenth`: a tenth of these."""
    if kind == "mixed" or (kind == "tenth" and number % 10 == 0):
        # None of these is true of a record made here, so that each is tried.
        return _MIXED[number % len(_MIXED)].format(n=1_000_000 + number)
    return f"msg.address = 'orders.{number}' AND region = 'r{number % 7}'"


def _text(count: int, kind: str) -> str:
    routes = (
        f"routes.r{n}.in.include={_predicate(n, kind)}\nroutes.r{n}.out.topic=out.{n % 5}\n" for n in range(count)
    )
    return _HEAD + "".join(routes)


def _records(spark: SparkSession, count: int, routes: int) -> DataFrame:
    headers = {
        "jms.JMSMessageID": "concat('ID:', id)",
        "jms.JMSDestination": f"concat('queue:orders.', id % {routes})",
        "jms.JMSCorrelationID": "concat('c', id)",
        "jms.region": f"concat('r', (id % {routes}) % 7)",
        "jms.amount": "concat(id % 1000, '')",
        "jms.price": "concat(id % 99, '.5')",
        "jms.code": "concat('k', id)",
    }
    pairs = ", ".join(
        f"named_struct('key', '{key}', 'value', CAST({value} AS binary))" for key, value in headers.items()
    )
    return spark.range(0, count, 1, 1).selectExpr(
        "CAST(NULL AS binary) AS key",
        "CAST(repeat('x', 400) AS binary) AS value",
        "'journal' AS topic",
        "0 AS partition",
        "id AS offset",
        "current_timestamp() AS timestamp",
        "0 AS timestampType",
        f"array({pairs}) AS headers",
    )


def _run(frame: DataFrame) -> None:
    frame.where("topic IS NOT NULL").write.format("noop").mode("overwrite").save()


def _java_seconds(pid: int) -> float:
    after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def main(arguments: list[str]) -> None:
    """Prints the figures of one table."""
    count, kind = int(arguments[0]), arguments[1]
    folder = Path(tempfile.mkdtemp(prefix="route-start-"))
    spark = session.open_session(Launch(folder / "spark", folder / "spark.log", {}), "local[2]")
    _run(_records(spark, 1, count))
    gateway: Any = SparkContext._gateway
    pid = gateway.proc.pid

    def seconds() -> tuple[float, float]:
        return time.process_time(), _java_seconds(pid)

    def since(before: tuple[float, float]) -> dict[str, float]:
        python, java = seconds()
        return {"python": round(python - before[0], 2), "java": round(java - before[1], 2)}

    began = seconds()
    config = loads(_text(count, kind), base=folder)
    found: dict[str, Any] = {"routes": count, "kind": kind, "configuration": since(began)}
    began = seconds()
    _run(route(_records(spark, 1, count), config).frame)
    found["first record"] = since(began)
    if records := int(arguments[2]):
        _run(route(_records(spark, records, count), config).frame)
        began = seconds()
        _run(route(_records(spark, records, count), config).frame)
        found["records"] = since(began)
    found["beyond 64 KB"] = "64 KB" in (folder / "spark.log").read_text(errors="replace")
    session.close(spark)
    shutil.rmtree(folder)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
