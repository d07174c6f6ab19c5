"""A router over a configuration text and a list of messages, without any broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from engine.explain import explain
from engine.message import Message, Record
from engine.router import route
from engine.router.plan.records import records_frame
from engine.router.plan.refusals import NO_REFUSALS, Refusals
from engine.schemas.documents import documents_of
from engine.schemas.route_schemas import route_schemas
from routes.config import loads
from routes.model import Config, Route
from tests.spark.router.harness import Result, Router

HEAD = """\
bridge.id=b1
journal.topic=journal
source.s.type=stomp
source.s.url=stomp://127.0.0.1:1
source.s.destinations=queue:orders
routing.dead-letter-topic=dlt
sink.n.type=nats
sink.n.url=nats://127.0.0.1:1
sink.jms.type=stomp
sink.jms.url=stomp://127.0.0.1:1
"""


def known(config: Config) -> Config:
    """With the topics that routes may choose: `chosen.emea` is one that is there."""

    def resolved(route: Route) -> Route:
        there = ("chosen.emea", "x")
        targets = (target if target.topic else replace(target, topics=there) for target in route.targets)
        return replace(route, targets=tuple(targets))

    return replace(config, routes=tuple(map(resolved, config.routes)))


NOW_MS = 1_700_000_000_000
"""The same in all tests: times are constants in the code that Spark makes, and it makes no code twice."""


@pytest.fixture(scope="session")
def router(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Router:
    """`router(configuration, messages, limits=…, now_ms=…, refusals=…)`: the results in the order of the messages."""
    folder = tmp_path_factory.mktemp("router")

    def run(
        text: str,
        messages: Sequence[Message | Record],
        limits: Mapping[str, int] | None = None,
        now_ms: int = NOW_MS,
        refusals: Refusals = NO_REFUSALS,
    ) -> list[Result]:
        config = known(loads(HEAD + text, base=folder))
        records = [message.to_record() if isinstance(message, Message) else message for message in messages]
        journaled = F.timestamp_millis(F.lit(NOW_MS))
        frame = records_frame(spark, {"journal": records}).withColumn("timestamp", journaled)
        routed = route(frame, config, limits, F.lit(now_ms), refusals)
        rows = sorted(routed.frame.collect(), key=lambda row: (int(row.journal_offset), int(row.copy)))
        return [
            Result(
                row.topic,
                Record(
                    None if row.key is None else bytes(row.key),
                    None if row.value is None else bytes(row.value),
                    tuple((item.key, None if item.value is None else bytes(item.value)) for item in row.headers or ()),
                ),
                str(routed.outcomes[row.outcome]),
                row.publication,
                row.failed_message,
                row.journal_offset,
            )
            for row in rows
        ]

    return run


def agree(text: str, given: Message, result: Result, base: Path) -> None:
    """The explanation of a message has the router's outcome, reason and sentence, and the body that left."""
    config = loads(HEAD + text, base=base)
    found = explain(
        given.to_record(), config, documents=documents_of(config), schemas=route_schemas(config), now_ms=NOW_MS
    )
    outcome = f"{found.ending}.{found.reason}" if found.reason else "routed"
    assert outcome == result.outcome
    if found.failures:
        assert found.failures[0].detail == result.header("__connect.errors.exception.message")
    elif found.changed_body is not None:
        assert found.changed_body == result.record.value
