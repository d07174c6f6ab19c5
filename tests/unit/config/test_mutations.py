"""Typing errors: hundreds of them, made from a valid file, each refused at its own line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from routes.config import lint, load
from routes.errors import Level

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VALID = """\
bridge.id=bridge-1
journal.partitions=4
journal.retention=7d
router.mode=batch
router.interval=2s
router.outage-timeout=5m
http.address=127.0.0.1:8480
source.jms.type=stomp
source.jms.url=stomp://127.0.0.1:61613
source.jms.destinations=queue:orders, topic:prices
source.jms.workers=2
source.jms.heartbeat=10s
source.jms.acknowledge=individual
sink.events.type=nats
sink.events.url=nats://127.0.0.1:4222
routes.orders.in.include=msg.address==orders AND (amount > 10 OR region IN ('emea', 'apac'))
routes.orders.in.exclude=msg.header.Type==test
routes.orders.out.topic=orders
routes.orders.conv.key=msg.header.CorrelationId
routes.prices.in.include=msg.address==prices
routes.prices.out.topic=nats:prices.${msg.header.symbol}
routing.dead-letter-topic=dead
routing.on-soft-failure=dead-letter
routing.on-unmatched=skip
routing.max-replays=3
"""
NAMES = {"jms", "events", "orders", "prices"}
"""Parts of keys that are up to the user."""
WRONG = {
    "journal.partitions": ("0", "-1", "four", "4.5", "4 5", "1e3"),
    "journal.retention": ("7", "7 days", "d7", "-7d"),
    "router.mode": ("bach", "BATCH MODE", "", "real time"),
    "router.interval": ("2", "2sec", "-2s", "2 s s"),
    "router.outage-timeout": ("5", "five", "5mm"),
    "http.address": ("127.0.0.1", "127.0.0.1:99999", "127.0.0.1:port"),
    "source.jms.type": ("stmop", "jms", ""),
    "source.jms.url": ("stomp:/127.0.0.1", "http://127.0.0.1:1", "stomp://:61613", "stomp://127.0.0.1:sixty"),
    "source.jms.destinations": ("orders;prices queue", "queue:", "que:orders", ""),
    "source.jms.workers": ("0", "two", "-1", "1.5"),
    "source.jms.heartbeat": ("10", "ten", "-10s"),
    "source.jms.acknowledge": ("individually", "auto"),
    "sink.events.type": ("natz", "kafka "),
    "sink.events.url": ("nats//127.0.0.1", "stomp://127.0.0.1:4222"),
    "routes.orders.in.include": (
        "msg.address==orders AND",
        "msg.address==orders AND (amount > 10",
        "amount > ",
        "amount => 10",
        "amount > 10)",
        "region IN ('emea', )",
        "region IN 'emea'",
        "region LIKE 10",
        "region LIKE 'a' ESCAPE 'ab'",
        "NOT",
        "amount BETWEEN 1 OR 2",
        "'unended",
        "amount > 10 region = 'x'",
        "msg.adress==orders",
        "region IS NUL",
    ),
    "routes.orders.in.exclude": ("msg.header.Type=", "== test", "AND", "(((", "msg.header.==x"),
    "routes.orders.out.topic": ("two words", "a/b", "kafka:", "nope:x/y", "${msg.header.x"),
    "routes.orders.conv.key": ("msg.header.", "msg.body", "header.x y"),
    "routes.prices.out.topic": ("nats:prices.${msg.header.}", "nats:prices.${msg.symbol}", "nats:", "elsewhere:x y"),
    "routing.on-soft-failure": ("deadletter", "retry", "stop it"),
    "routing.on-unmatched": ("drop", "Skip it"),
    "routing.max-replays": ("-1", "three", "1.5"),
}


def mutations() -> Iterator[tuple[str, int, str]]:
    """What was done, at which line (from 1), and the text then."""
    lines = VALID.splitlines()
    for number, line in enumerate(lines):
        key, value = line.split("=", 1)
        for wrong in misspelt(key):
            yield f"{key} as {wrong}", number + 1, changed(lines, number, f"{wrong}={value}")
        for wrong in WRONG.get(key, ()):
            yield f"{key} = {wrong}", number + 1, changed(lines, number, f"{key}={wrong}")


def misspelt(key: str) -> Iterator[str]:
    """Each part that is not up to the user with a letter too few, and with two in the wrong order."""
    parts = key.split(".")
    for index, part in enumerate(parts):
        if part in NAMES:
            continue
        middle = len(part) // 2
        fewer = part[:middle] + part[middle + 1 :]
        swapped = part[: middle - 1] + part[middle] + part[middle - 1] + part[middle + 1 :]
        # Not as a set: parallel runs of the tests must agree on their order.
        for wrong in dict.fromkeys((fewer, swapped)):
            if wrong == part:
                continue
            yield ".".join([*parts[:index], wrong, *parts[index + 1 :]])


def changed(lines: list[str], number: int, line: str) -> str:
    return "\n".join([*lines[:number], line, *lines[number + 1 :]])


MUTATIONS = list(mutations())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "jms-bridge.properties"


def test_the_file_itself_is_right(file: Path) -> None:
    file.write_text(VALID)
    assert load(file).bridge_id == "bridge-1"


@pytest.mark.parametrize(("line", "text"), [each[1:] for each in MUTATIONS], ids=[each[0] for each in MUTATIONS])
def test_a_typing_error_is_refused_at_its_line(file: Path, line: int, text: str) -> None:
    file.write_text(text)
    linted = lint(file)
    assert linted.config is None
    assert line in {fault.line for fault in linted.faults}


@pytest.mark.parametrize("line", VALID.splitlines())
def test_a_key_that_is_there_twice_is_told_at_the_second_line(file: Path, line: str) -> None:
    file.write_text(f"{VALID}{line}\n")
    # The last one counts, as in all properties files.
    (fault,) = lint(file).faults
    assert (fault.line, fault.level) == (len(VALID.splitlines()) + 1, Level.WARNING)
