"""A router over a configuration text and a list of messages, without any broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from engine.message import Message, Record
from engine.router import route
from engine.streams.driver import records_frame
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
        return (
            route if route.target.topic else replace(route, target=replace(route.target, topics=("chosen.emea", "x")))
        )

    return replace(config, routes=tuple(map(resolved, config.routes)))


@pytest.fixture
def router(spark: SparkSession, tmp_path: Path) -> Router:
    """`router(configuration, messages, limits=…, now_ms=…)`: the results in the order of the messages."""

    def run(
        text: str,
        messages: Sequence[Message | Record],
        limits: Mapping[str, int] | None = None,
        now_ms: int | None = None,
    ) -> list[Result]:
        config = known(loads(HEAD + text, base=tmp_path))
        records = [message.to_record() if isinstance(message, Message) else message for message in messages]
        frame = records_frame(spark, {"journal": records})
        routed = route(frame, config, limits, None if now_ms is None else F.lit(now_ms))
        rows = routed.frame.orderBy("journal_offset").collect()
        return [
            Result(
                row.topic,
                Record(
                    None if row.key is None else bytes(row.key),
                    None if row.value is None else bytes(row.value),
                    tuple((item.key, None if item.value is None else bytes(item.value)) for item in row.headers or ()),
                ),
                str(routed.outcomes[row.outcome]),
                row.route,
                row.failed_message,
            )
            for row in rows
        ]

    return run
