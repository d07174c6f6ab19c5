"""Writers to the topics of a bridge, who decide nothing: after a crash each message is published once, all the same."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from engine.message import ORIGIN, POSITION, Record
from engine.record import SEAL
from tests.integration.router.bench import wait_for
from tests.topic_records import ordered_producer

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from tests.integration.router.bench import Bench

NONE = -1
"""Number of the records of others, which have no value."""


def numbers(bench: Bench) -> Counter[int]:
    found = bench.numbers()
    del found[NONE]
    return found


def check(bench: Bench, count: int) -> None:
    """Each of the first numbers arrives once, and none of them a second time."""
    wait_for(lambda: len(numbers(bench)) >= count, 90)
    assert numbers(bench) == dict.fromkeys(range(count), 1)


def ends(bench: Bench) -> dict[int, int]:
    """Offset behind the last record of each partition of the journal."""
    found = {0: 0, 1: 0}
    for _, partition, offset in bench.records(bench.journal):
        found[partition] = max(found[partition], offset + 1)
    return found


def claims(bench: Bench) -> Iterator[Record]:
    """Records that say they were made from records of the journal."""
    forged = [
        *(f"{bench.journal}:{each}:{end + at}" for each, end in ends(bench).items() for at in (*range(40), 160, 170)),
        *(f"{bench.journal}:{each}:{2**63 - 1}" for each in (0, 1, 7)),
        *(
            f"{bench.journal}:{text}"
            for text in ("0", "", "0:x", "0:1:2", "-1:5", "0:-5", f"0:{2**64}", "99999999999:1")
        ),
    ]
    for position in forged:
        headers: list[tuple[str, bytes | None]] = [(ORIGIN, b"bench"), (POSITION, position.encode())]
        yield Record(None, None, tuple(headers))
        for seal in (secrets.token_hex(10)[:19].encode(), b"", b"\xff" * 19, None):
            yield Record(None, None, (*headers, (SEAL, seal)))


def copies(bench: Bench, of: str) -> Iterator[Record]:
    """The last records of a topic, without their values, as MirrorMaker would copy them; and with a later position."""
    for (_, _, _), record in list(bench.records(of).items())[-20:]:
        yield replace(record, value=None)
        position = record.header(POSITION) or ""
        place, _, offset = position.rpartition(":")
        later = f"{place}:{int(offset or 0) + 5}".encode()
        changed = tuple((name, later if name == POSITION else value) for name, value in record.headers)
        yield replace(record, value=None, headers=changed)


def is_note(record: Record) -> bool:
    if not (record.key or b"").endswith((b" start", b" place")):
        return False
    try:
        return "seal of note" in json.loads(record.value or b"")
    except (ValueError, RecursionError, TypeError):
        return False


def write_state(bench: Bench, *, last_is_malformed: bool) -> None:
    """Notes that move the router to the end of the journal and beyond, made of its own; and some that are none."""
    topic = f"{bench.journal}.state"
    own = [record for record in bench.records(topic).values() if is_note(record)][-40:]
    producer = ordered_producer(bench.bootstrap)
    for record in own:
        note: dict[str, Any] = json.loads(record.value or b"{}")
        far = {"0": ends(bench)[0] + 30, "1": ends(bench)[1] + 30}
        for change in (
            {"stopped": far},
            {"positions": far},
            {"positions": far, "run": "x", "host": "elsewhere", "sequence": 10**9},
            {"positions": {"0": 1e999}, "run": "x"},
            {"committed": {"positions": far, "time_ms": 2**62}},
        ):
            for seal in ({}, {"seal of note": "0" * 64}):
                forged = {**note, **change, **seal}
                producer.produce(topic, json.dumps(forged), record.key)
        for text in (b"", b"{", b"[]", b"\xff", b"1", b"[" * 10_000, json.dumps({"version": 2}).encode()):
            producer.produce(topic, text, record.key)
        producer.produce(topic, record.value, record.key, headers=[("parts", b"x")])
        if not last_is_malformed:
            producer.produce(topic, json.dumps({**note, "positions": far, "stopped": far}), record.key)
    assert producer.flush(30) == 0


def attack(bench: Bench, *, last_is_malformed: bool) -> None:
    claimed, copied = list(claims(bench)), {each: list(copies(bench, each)) for each in (bench.red, bench.blue)}
    producer = ordered_producer(bench.bootstrap)
    for topic, other in ((bench.red, bench.blue), (bench.blue, bench.red), (bench.dead, bench.red)):
        for record in (*claimed, *copied[other]):
            headers: Any = list(record.headers)
            producer.produce(topic, record.value, record.key, headers=headers)
    assert producer.flush(60) == 0
    write_state(bench, last_is_malformed=last_is_malformed)


@pytest.mark.kills
def test_records_of_others_in_every_topic_neither_lose_nor_double_a_message(bench: Bench) -> None:
    bench.send(100)
    router = bench.start().wait_ready(240)
    check(bench, 100)
    bench.send(200)
    router.kill()
    attack(bench, last_is_malformed=False)
    bench.send(100)

    router = bench.start("batch").wait_ready(240)
    check(bench, 400)
    assert router.metric("jmsbridge_recovery_foreign_records_total") > 300
    bench.send(2000)
    router.kill()
    attack(bench, last_is_malformed=True)

    router = bench.start().wait_ready(240)
    check(bench, 2400)
    bench.send(10)
    check(bench, 2410)
    assert router.stop() == 0
    stderr = (bench.folder / "stderr.log").read_text()
    assert f"topic={bench.blue}" in stderr or bench.blue in stderr
    assert "name this bridge and its journal" in stderr
    assert (bench.checkpoint / "secret").stat().st_mode & 0o777 == 0o600
    secret = (bench.checkpoint / "secret").read_text()
    assert secret not in stderr
    assert secret not in (bench.folder / "var/log/spark.log").read_text()
