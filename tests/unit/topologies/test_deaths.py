"""Records that were under way when the JVM of a topology ended."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from engine.topologies.runtime.deaths import Deaths
from routes.config import loads
from routes.model import Config


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return loads(
        f"bridge.id=b\nembedded.data={tmp_path}\nroutes.r.in.include=TRUE\nroutes.r.out.topic=o\n"
        f"source.box.type=dropbox\nsource.box.root={tmp_path}/in\nsource.box.destinations=queue:a\n"
    )


def mark(deaths: Deaths, share: int, topic: str, offset: int) -> None:
    deaths.marks.mkdir(parents=True, exist_ok=True)
    data = struct.pack(">qi", offset, len(topic)) + topic.encode()
    (deaths.marks / str(share)).write_bytes(data.ljust(512, b"\0"))


def test_an_end_between_records_says_nothing(config: Config) -> None:
    deaths = Deaths(config.embedded.data, "totals")
    assert deaths.note() == ""
    mark(deaths, 0, "orders", -1)
    assert deaths.note() == ""


def test_the_record_under_way_is_told_and_at_the_second_time_how_to_set_it_aside(config: Config) -> None:
    mark(Deaths(config.embedded.data, "totals"), 0, "orders", 17)
    mark(Deaths(config.embedded.data, "totals"), 1, "orders", 5)
    assert Deaths(config.embedded.data, "totals").note() == "it was processing orders:0:17, orders:1:5"
    assert Deaths(config.embedded.data, "totals").note() == "", "a death counts once"
    mark(Deaths(config.embedded.data, "totals"), 0, "orders", 17)
    mark(Deaths(config.embedded.data, "totals"), 1, "orders", 6)
    said = Deaths(config.embedded.data, "totals").note()
    assert said.startswith("it has ended 2 times while it was processing orders:0:17. ")
    assert said.endswith("`jms-bridge topology skip totals orders:0:17`")


def test_another_record_or_an_orderly_end_begins_anew(config: Config) -> None:
    deaths = Deaths(config.embedded.data, "totals")
    for offset in (17, 18, 17):
        mark(deaths, 0, "orders", offset)
        assert deaths.note() == f"it was processing orders:0:{offset}"
    deaths.forget()
    mark(deaths, 0, "orders", 17)
    assert deaths.note() == "it was processing orders:0:17"
