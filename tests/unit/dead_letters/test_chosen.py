"""How dead letters that are chosen by their positions are read."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer

from engine.dead_letters.replay import discard, replay
from engine.dead_letters.store import DeadLetterStore
from engine.kafka import clients
from engine.kafka.reader import Position
from routes.config import loads

# What suits those who follow a topic does not suit those who go from record to record.
CONFIG = loads(
    "bridge.id=b\nkafka.bootstrap.servers=127.0.0.1:1\nkafka.consumer.fetch.max.wait.ms=400\n"
    "source.s.type=stomp\nsource.s.url=stomp://127.0.0.1:1\nsource.s.destinations=queue:q\n"
    "routes.r.in.include=TRUE\nroutes.r.out.topic=t\nrouting.dead-letter-topic=dead\n"
)


class Made(Exception):  # noqa: N818 # no error
    """A client was asked for."""


@pytest.mark.parametrize("settle", [replay, discard])
@pytest.mark.parametrize(("positions", "wait_ms"), [([Position("dead", 0, 7)], 5), (None, 400)])
def test_only_what_is_read_record_by_record_does_not_wait_for_more(
    settle: Any, positions: list[Position] | None, wait_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(settings: dict[str, Any], **more: Any) -> Consumer:
        Consumer(settings, **more).close()  # type: ignore[no-untyped-call] # fails on what it does not know
        raise Made(settings)

    monkeypatch.setattr(clients, "Consumer", make)
    with pytest.raises(Made) as made:
        list(settle(DeadLetterStore.of(CONFIG), positions, dry_run=True))
    (settings,) = made.value.args
    assert int(settings["fetch.wait.max.ms"]) == wait_ms
    assert int(settings.get("fetch.queue.backoff.ms", 1000)) == (5 if positions else 1000)
