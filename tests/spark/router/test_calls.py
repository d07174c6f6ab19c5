"""Calls into the JVM that it takes to make a plan; each of them is slow in a JVM that has just started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import GatewayClient
from pyspark.sql import SparkSession

from engine.router import route
from engine.router.plan.records import records_frame
from routes.config import loads
from tests.spark.router.conftest import HEAD

ROUTES = "".join(
    f"routes.r{number}.in.include=msg.address==orders && msg.header.region==r{number}\n"
    f"routes.r{number}.out.topic=out.{number}\n"
    f"routes.r{number}.conv.key=msg.header.CorrelationId\n"
    for number in range(5)
)


def test_a_plan_takes_few_calls_into_the_jvm(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config, frame = loads(HEAD + ROUTES, base=tmp_path), records_frame(spark, {})
    calls: list[str] = []
    send: Any = GatewayClient.send_command

    def counted(self: GatewayClient, command: str, *more: Any, **named: Any) -> Any:
        calls.append(command)
        return send(self, command, *more, **named)

    monkeypatch.setattr(GatewayClient, "send_command", counted)
    route(frame, config)

    # 1,300 and more or fewer that free objects; Spark's look-up of the place of each call alone would be thousands.
    assert len(calls) < 2000
    assert not [command for command in calls if "parseDataType" in command]
