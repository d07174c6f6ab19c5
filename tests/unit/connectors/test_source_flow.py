"""The order in which deliveries are taken and acknowledged, with a source and a journal that are lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from engine.connectors.base import Delivery
from engine.delivery.ingress_pipeline import IngressPipeline
from engine.kafka.retry import StoppedError
from engine.message import Message
from engine.telemetry.meters import SourceMetrics
from routes import config as configuration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

CONFIGURATION = """\
bridge.id=b1
source.s.type=stomp
source.s.destinations=queue:x
routes.a.in.include=TRUE
routes.a.out.topic=out
"""


class Three:
    """A source of three messages."""

    address = "three"
    redelivery = None

    def __init__(self) -> None:
        self.acknowledged: list[object] = []
        self._deliveries = [Delivery(Message(str(number).encode()), number) for number in (3, 2, 1)]

    def receive(self, timeout_seconds: float) -> Delivery | None:
        return self._deliveries.pop() if self._deliveries else None

    def acknowledge(self, tokens: Sequence[object]) -> None:
        self.acknowledged += tokens

    def tend(self) -> None: ...


class Full:
    """A journal that is asked to stop and has no room for the second one, which is large, but for the third one."""

    def __init__(self) -> None:
        self._open: list[Callable[[Exception | None], None]] = []

    def append(self, message: Message, done: Callable[[Exception | None], None]) -> bool:
        if message.body == b"2":
            return False
        self._open.append(done)
        return True

    def poll(self, timeout_seconds: float = 0) -> None: ...

    def hurry(self) -> None: ...

    def flush(self, timeout_seconds: float) -> bool:
        for done in self._open:
            done(None)
        return True


def test_nothing_is_taken_behind_a_message_that_stays_with_the_broker(tmp_path: Path) -> None:
    file = tmp_path / "b.properties"
    file.write_text(CONFIGURATION)
    source, metrics = Three(), SourceMetrics(CollectorRegistry(), "s", "source:s")
    flow = IngressPipeline(configuration.load(file), source, Full(), None, metrics)  # type: ignore[arg-type]
    with pytest.raises(StoppedError):
        flow.step()
    flow.settle()
    assert source.acknowledged == [1]
