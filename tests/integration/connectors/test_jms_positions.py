"""Sinks of type `jms` that keep their position at the broker: what the broker has is not sent to it again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from engine.connectors.base import Outgoing
from engine.message import BodyType, Message
from routes.properties import Property
from tests.integration.connectors.jms_ends import Ends, ends_of
from tests.integration.connectors.jms_harness import client
from tests.waiting import patience

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from engine.embedded import EmbeddedArtemis

BEGUN_MS = 1_700_000_000_000
NAMELESS = b'{"": "x"}'
"""Body of a map whose entry no client of JMS takes."""


@pytest.fixture
def ends(tmp_path: Path, queue: str, artemis: EmbeddedArtemis, fast_core: None) -> Iterator[Callable[[], Ends]]:
    """Makes a source and a sink with positions; each message has another id, so Artemis itself recognises nothing."""
    made: list[Ends] = []

    def make() -> Ends:
        own = {"sink.out.position-queue": f"{queue}.positions", "bridge.secret": "s" * 40}
        made.append(ends_of(tmp_path, client(artemis.core_url), f"queue:{queue}", own))
        made[-1].sink.connect()
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def give(queue: str) -> Callable[..., dict[int, str | None]]:
    """Sends the records of some offsets, and returns the refusals by them."""

    def send(
        both: Ends, offsets: Sequence[int], partition: int = 0, later_ms: int = 0, body: bytes | None = None
    ) -> object:
        both.sink.send(
            [
                Outgoing(
                    offset,
                    Message(f"{partition}:{offset}".encode()) if body is None else Message(body, BodyType.MAP),
                    f"queue/{queue}",
                    f"{time.monotonic()}/{offset}",
                    timestamp_ms=BEGUN_MS + offset + later_ms,
                    partition=partition,
                    offset=offset,
                    end=10,
                )
                for offset in offsets
            ]
        )
        found: dict[int, str | None] = {}
        deadline = time.monotonic() + patience(60)
        while len(found) < len(offsets) and time.monotonic() < deadline:
            found |= {outcome.number: outcome.refusal for outcome in both.sink.outcomes(1)}
        assert len(found) == len(offsets)
        return found

    return send


def arrived(both: Ends, count: int) -> list[str]:
    """The bodies that arrive, of which there are to be so many."""
    both.source.connect()
    found = [message.body.decode() for message in both.receive(count)]
    assert both.source.receive(1) is None
    both.source.close()
    return found


def test_what_one_connection_has_sent_the_next_one_leaves_out(
    ends: Callable[[], Ends], give: Callable[..., dict[int, str | None]]
) -> None:
    first = ends()
    give(first, range(5))
    give(first, range(3), partition=1)
    first.sink.close()
    second = ends()
    assert give(second, range(3, 8)) == dict.fromkeys(range(3, 8))
    give(second, range(5), partition=1)
    assert sorted(arrived(second, 13)) == [f"0:{n}" for n in range(8)] + [f"1:{n}" for n in range(5)]


def test_a_topic_that_was_made_anew_is_sent_though_its_offsets_are_small(
    ends: Callable[[], Ends], give: Callable[..., dict[int, str | None]]
) -> None:
    first = ends()
    give(first, range(5))
    first.sink.close()
    second = ends()
    give(second, range(3), later_ms=1000)
    assert len(arrived(second, 8)) == 8


def test_a_message_that_was_refused_is_tried_again_when_it_comes_again(
    ends: Callable[[], Ends], give: Callable[..., dict[int, str | None]]
) -> None:
    first = ends()
    give(first, [0])
    assert "cannot be empty" in str(give(first, [1], body=NAMELESS)[1])
    assert give(first, [2]) == {2: None}
    first.sink.close()
    second = ends()
    assert "cannot be empty" in str(give(second, [1], body=NAMELESS)[1])
    assert give(second, [1, 2, 3]) == {1: None, 2: None, 3: None}
    assert sorted(arrived(second, 4)) == ["0:0", "0:1", "0:2", "0:3"]


def test_a_message_that_is_from_no_topic_leaves_the_positions_alone(
    ends: Callable[[], Ends], give: Callable[..., dict[int, str | None]], queue: str
) -> None:
    working, tool = ends(), ends()
    give(working, [0])
    assert tool.send(f"queue/{queue}", Message(b"by hand")) == {0: None}
    give(working, [1])
    assert sorted(arrived(working, 3)) == ["0:0", "0:1", "by hand"]


@pytest.mark.parametrize("seal", ["", " #" + "0" * 32])
def test_a_forged_position_in_the_range_of_the_topic_loses_nothing(
    ends: Callable[[], Ends], give: Callable[..., dict[int, str | None]], queue: str, seal: str
) -> None:
    forged = Message(
        f"7 {BEGUN_MS + 1_000_000}{seal}".encode(), properties={"jmsbridge_position": Property("b1/out/0")}
    )
    first = ends()
    assert first.send(f"queue/{queue}.positions", forged) == {0: None}
    give(first, range(2))
    assert first.send(f"queue/{queue}.positions", forged) == {0: None}
    give(first, [2])
    first.sink.close()
    second = ends()
    assert second.send(f"queue/{queue}.positions", forged) == {0: None}
    give(second, range(1, 6))
    assert sorted(arrived(second, 6)) == [f"0:{n}" for n in range(6)]
