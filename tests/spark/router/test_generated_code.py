"""The code that Spark generates for a table of routes does not grow with its conditions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.router import route
from engine.router.kafka_io import KafkaIO
from routes.config import loads
from tests.spark.router.conftest import HEAD

JIT_BYTES = 8000
"""The JVM's limit of a method's size, above which it does not compile the method by default."""
CONDITIONS = (
    "amount > {n}",
    "code LIKE 'c{n}-%'",
    "amount BETWEEN {n} AND {n}.5",
    "amount * 2 + {n} = price - 1",
    "code LIKE '%-{n}'",
    "amount <> {n}",
)


def journal_frame(spark: SparkSession) -> DataFrame:
    return spark.range(1).selectExpr(
        *("CAST(id || '' AS binary) AS key", "CAST(id || '' AS binary) AS value", "timestamp_millis(id) AS timestamp"),
        *("'journal' AS topic", "1 AS partition", "id AS offset"),
        "array(named_struct('key', id || '', 'value', CAST(id || '' AS binary))) AS headers",
    )


EDITS = (
    "out.header.x=${{msg.header.a{n}}}",
    "out.header.y=c{n} ${{msg.body.b{n}}}",
    "out.rename-header.p{n}=q",
    "out.remove-headers=s{n}-*",
)


def largest_method(spark: SparkSession, folder: Path, routes: int, edits: tuple[str, ...] = ()) -> int:
    """Size in bytes of bytecode; -1 if the code does not compile, as from 64 KB in a method on."""
    text = "".join(
        f"routes.r{n}.in.include={CONDITIONS[n % len(CONDITIONS)].format(n=n)}\nroutes.r{n}.out.topic=t{n}\n"
        + "".join(f"routes.r{n}.{edit.format(n=n)}\n" for edit in edits)
        for n in range(routes)
    )
    config = loads(HEAD + text, base=folder)
    rows = KafkaIO(spark, config).published(route(journal_frame(spark), config))
    jvm: Any = spark._jvm
    debug = getattr(getattr(jvm.org.apache.spark.sql.execution.debug, "package$"), "MODULE$")
    stages = debug.codegenStringSeq(rows._jdf.queryExecution().executedPlan())
    sizes = [int(stages.apply(index)._3().maxMethodCodeSize()) for index in range(stages.size())]
    return -1 if min(sizes) < 0 else max(sizes)


@pytest.mark.parametrize("routes", [6, 600])
def test_no_method_is_too_large_for_the_jit(spark: SparkSession, tmp_path: Path, routes: int) -> None:
    assert 0 < largest_method(spark, tmp_path, routes) <= JIT_BYTES


def test_hundreds_of_routes_that_edit_headers_make_no_more_code_than_a_few(spark: SparkSession, tmp_path: Path) -> None:
    few, many = (largest_method(spark, tmp_path, routes, EDITS) for routes in (6, 600))
    assert 0 < few <= JIT_BYTES
    assert abs(many - few) < 200


@pytest.mark.parametrize(
    "destinations", ["n:a.${{msg.header.x{n}}}", "t, n:a.${{msg.header.x{n}}}, jms:queue/${{msg.body.y{n}}}"]
)
def test_hundreds_of_templates_of_destinations_make_no_more_code_than_a_few(
    spark: SparkSession, tmp_path: Path, destinations: str
) -> None:
    topic = (f"out.topic={destinations}",)
    few, many = (largest_method(spark, tmp_path, routes, topic) for routes in (6, 300))
    assert 0 < few <= JIT_BYTES
    assert abs(many - few) < 200


def test_hundreds_of_conditions_make_no_more_code_than_a_few(spark: SparkSession, tmp_path: Path) -> None:
    few, many = (largest_method(spark, tmp_path, routes) for routes in (6, 600))
    # Constants of other lengths may change some bytes.
    assert abs(many - few) < 200


def test_the_plan_of_a_stream_is_optimised_once_unless_it_reads_the_clock(spark: SparkSession, tmp_path: Path) -> None:
    frame = journal_frame(spark)
    text = "routing.on-unmatched=dead-letter\nroutes.r.in.include=TRUE\nroutes.r.out.topic=t\n"
    config = loads(HEAD + text, base=tmp_path)
    jvm: Any = spark._jvm
    optimised = jvm.jmsbridge.kafka.StreamPlan.optimised
    rows = KafkaIO(spark, config).published(route(frame, config, now=F.lit(1_000)))
    assert not optimised(rows._jdf).equals(rows._jdf)
    for clock in (
        F.current_timestamp(),
        F.current_time(),
        F.unix_timestamp(),
        F.concat(F.current_date().cast("string"), F.lit("x")),
    ):
        rows = frame.select("key", clock)
        assert optimised(rows._jdf).equals(rows._jdf)
