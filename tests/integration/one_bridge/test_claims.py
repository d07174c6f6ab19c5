"""Bodies that are too large for topics: kept as files, and put back by a sink, by `receive` and by a replay."""

from __future__ import annotations

import base64
import json
import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import stomp

from engine.claims.bodies import KeptBodies
from engine.claims.claim import CLAIM, Claim
from engine.message import Record
from tests.integration.bridge_process import wait
from tests.integration.commands import printed, run
from tests.topic_records import committed_records, ordered_producer

if TYPE_CHECKING:
    from tests.integration.bridge_process import Bridge

SINK_TOPIC = "jms-bridge.sink.jms"
LARGE = b"\xff" + os.urandom(5 << 20)


def send(bridge: Bridge, *bodies: bytes) -> None:
    connection = stomp.Connection12(
        [("127.0.0.1", int(bridge.settings["embedded.stomp.port"]))], auto_content_length=True
    )
    connection.connect(wait=True)
    for body in bodies:
        connection.send("scans", body, headers={"destination-type": "ANYCAST", "persistent": "true"})
    connection.disconnect(receipt="done")


def received(bridge: Bridge, destination: str, count: int) -> list[bytes]:
    lines = printed(bridge.file, "receive", destination, "--count", str(count), "--timeout", "60s", "--json")
    return sorted(body(json.loads(line)) for line in lines.splitlines())


def body(shown: dict[str, Any]) -> bytes:
    return base64.b64decode(shown["body_base64"]) if "body_base64" in shown else str(shown["body"]).encode()


def records(bridge: Bridge, topic: str) -> list[Record]:
    found = committed_records(bridge.bootstrap, topic)
    return [Record(each.key(), each.value(), tuple(each.headers() or ())) for each in found]  # type: ignore[arg-type]


def letters(bridge: Bridge) -> list[dict[str, Any]]:
    lines = printed(bridge.file, "dlt", "list", "--route", "scans", "--json")
    return [json.loads(line) for line in lines.splitlines()]


def test_a_large_body_comes_back_byte_for_byte_and_one_that_is_lost_is_refused(bridge: Bridge) -> None:
    folder = bridge.file.parent / "var" / "bodies"
    send(bridge, LARGE, b"small")
    assert received(bridge, "jms:queue/scans.out", 2) == [b"small", LARGE]
    assert received(bridge, "kafka:scans", 2) == [b"small", LARGE]
    large, small = sorted(records(bridge, "scans"), key=lambda record: record.value or b"")
    claim = Claim.on(LARGE)
    assert Claim.of(large.headers) == claim
    assert (large.value, small.value) == (b"", b"small")
    file = folder / claim.file
    assert [path for path in folder.rglob("*") if path.is_file()] == [file]
    with closing(KeptBodies(folder)) as bodies:
        assert bodies.body(large.value, large.headers) == LARGE

    # The sink reads the record again, and by then the file is another one, or gone.
    sent = next(each for each in records(bridge, SINK_TOPIC) if Claim.of(each.headers) == claim)
    altered = LARGE[:-1] + b"?"
    file.write_bytes(altered)
    again(bridge, sent)
    wait(lambda: len(letters(bridge)) == 1, lambda: bridge.output)
    done = run(bridge.file, "receive", "kafka:scans")
    assert done.code == 1
    assert "scans:" in done.err
    assert f"its body was altered: the file {file} does not have {len(LARGE)} bytes" in done.err
    file.unlink()
    again(bridge, sent)
    wait(lambda: len(letters(bridge)) == 2, lambda: bridge.output)
    assert [letter["reason"] for letter in letters(bridge)] == ["refused"] * 2
    whys = [str(letter["detail"]) for letter in letters(bridge)]
    assert whys[0].startswith(f"its body was altered: the file {file}")
    assert whys[1].startswith(f"its body is gone: there is no file {file}")
    done = run(bridge.file, "receive", "kafka:scans")
    assert (done.code, f"its body is gone: there is no file {file}" in done.err) == (1, True)
    # The sink goes on, and the letters can wait for the file.
    send(bridge, b"next")
    assert received(bridge, "jms:queue/scans.out", 1) == [b"next"]
    done = run(bridge.file, "dlt", "replay", "--all", "--route", "scans")
    assert "its body is gone" in done.out + done.err
    file.write_bytes(LARGE)
    printed(bridge.file, "dlt", "replay", "--all", "--route", "scans")
    assert received(bridge, "jms:queue/scans.out", 1) == [LARGE]


def again(bridge: Bridge, record: Record) -> None:
    producer = ordered_producer(bridge.bootstrap)
    headers: Any = list(record.headers)
    producer.produce(SINK_TOPIC, record.value, record.key, headers=headers)
    assert producer.flush(30) == 0


def test_a_folder_that_is_away_is_waited_for(bridge: Bridge) -> None:
    folder: Path = bridge.file.parent / "var" / "bodies"
    send(bridge, LARGE)
    assert received(bridge, "jms:queue/scans.out", 1) == [LARGE]
    sent = [each for each in records(bridge, SINK_TOPIC) if each.header(CLAIM)][-1]
    folder.rename(folder.with_name("away"))
    before = len(letters(bridge))
    again(bridge, sent)
    wait(lambda: "there is no such folder" in bridge.get("/ready")[1], lambda: bridge.get("/ready"))
    folder.with_name("away").rename(folder)
    assert received(bridge, "jms:queue/scans.out", 1) == [LARGE]
    wait(lambda: bridge.get("/ready")[0] == 200 and "there is no such folder" not in bridge.get("/ready")[1])
    assert len(letters(bridge)) == before
