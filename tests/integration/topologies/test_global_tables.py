"""Records of a global table that cannot be read, which each start reads again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.waiting import until

if TYPE_CHECKING:
    from tests.integration.topologies.conftest import TopologyBench


def send(bench: TopologyBench, value: bytes) -> None:
    producer = bench._producer()
    producer.produce(f"{bench.prefix}-pages", value, "p3", timestamp=1)
    assert producer.flush(30) == 0


def letters(bench: TopologyBench) -> list[tuple[bytes | None, bytes | None]]:
    """Values of the dead letters, and what they say of their node."""
    found = list(bench.records("counts-dead-letters"))
    assert len({dict(each.headers() or [])["jmsbridge.position"] for each in found}) == len(found)
    return [(each.value(), dict(each.headers() or [])["jmsbridge.reason"]) for each in found]


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_a_row_that_cannot_be_read_is_one_dead_letter_in_all_runs(bench: TopologyBench, guarantee: str) -> None:
    options = ("--mode", "batch", "--guarantee", guarantee)
    bench.send_pages()
    send(bench, b"{first")
    run = bench.start("counts", *options)
    bench.send_clicks(50)
    bench.comes_to("counts-out", 50)
    assert letters(bench) == [(b"{first", b"value")]
    send(bench, b"{second")
    until(lambda: len(letters(bench)) == 2, 60, "the letter of a record that came later")
    bench.stop(run)

    send(bench, b"{third")
    run = bench.start("counts", *options)
    bench.send_clicks(50)
    bench.comes_to("counts-out", 100)
    assert letters(bench) == [(b"{first", b"value"), (b"{second", b"value"), (b"{third", b"value")]
    bench.stop(run)
    # The row is still the one that could be read.
    assert {value["title"] for key, value in bench.published("counts-out") if key == "p3"} == {"T3"}
