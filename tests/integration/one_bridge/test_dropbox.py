"""Folders at both ends of a whole bridge: what scripts and JMS applications exchange, requests and replies included."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import stomp

from tests.dropboxes import Dropboxes, files, headers
from tests.integration.bridge_process import Bridge, wait
from tests.integration.commands import printed


@pytest.fixture
def boxes(bridge: Bridge) -> Dropboxes:
    """At the place that nobody has to configure."""
    return Dropboxes(bridge.file.parent / "var" / "dropbox")


def arrived(box: Path) -> tuple[dict[str, str], bytes]:
    """What the only file that comes says, and what is in it."""
    wait(lambda: bool(files(box / "target")))
    (name,) = files(box / "target")
    return headers(name), (box / "target" / name).read_bytes()


def files_of(bridge: Bridge, size: int) -> Iterator[Path]:
    """The files of so many bytes in the bridge's folder, apart from those that a source has processed."""
    for path in bridge.file.parent.rglob("*"):
        # The router's and Kafka's come and go.
        with suppress(FileNotFoundError):
            if path.is_file() and path.stat().st_size == size and "processed" not in path.parts:
                yield path


def ask(bridge: Bridge, destination: str, *options: str) -> str:
    return printed(bridge.file, "request", destination, "how many?", "--timeout", "60s", *options)


def test_a_file_of_a_script_is_routed_by_its_name(bridge: Bridge, boxes: Dropboxes) -> None:
    boxes.put(boxes.queue("inbox"), {"7.1140429201295000-1.T..corr..order.regionS=emea&amountI=5": b"hello"})
    found, body = arrived(boxes.queue("outbox-emea"))
    assert body == b"hello"
    assert {name: found[name] for name in ("priority", "class", "correlation-id", "type", "region", "amount")} == {
        "priority": "7",
        "class": "T",
        "correlation-id": "corr",
        "type": "order",
        "region": "emea",
        "amount": "5",
    }
    assert "amountI=5" in files(boxes.queue("outbox-emea") / "target")[0]


def test_a_header_cannot_lead_out_of_the_root(bridge: Bridge, boxes: Dropboxes) -> None:
    before = len(bridge.records("dead"))
    boxes.put(boxes.queue("inbox"), {"4.1140429201295000-2.T.....regionS=%2F..%2F..%2Fx": b"escape"})
    wait(lambda: len(bridge.records("dead")) == before + 1)
    assert not [path for path in files_of(bridge, len(b"escape")) if path.read_bytes() == b"escape"]


def test_a_topic_goes_to_a_topic_and_to_everybody_there(bridge: Bridge, boxes: Dropboxes) -> None:
    subscribed = [boxes.subscription("copies", name) for name in ("a.1", "b.2")]
    boxes.put(boxes.topic("news"), {"news.txt": b"it rains"})
    for each in subscribed:
        assert arrived(each)[1] == b"it rains"


def test_a_jms_message_becomes_a_file(bridge: Bridge, boxes: Dropboxes) -> None:
    bridge.send([42], "to.files", type="order", **{"correlation-id": "c.1"})
    found, body = arrived(boxes.queue("from-jms"))
    assert body == b"order 42"
    assert (found["type"], found["correlation-id"], found["number"]) == ("order", "c.1", "42")


@pytest.mark.parametrize("options", [(), ("--property", f"note={'x' * 300}")], ids=["short name", "long name"])
def test_jms_asks_and_a_script_answers(bridge: Bridge, boxes: Dropboxes, options: tuple[str, ...]) -> None:
    service = boxes.queue("service")
    for file in (service / "target").iterdir():
        file.unlink()

    def answer() -> None:
        asked, body = arrived(service)
        reply = asked["reply-to"]
        name = f"4.1140429201295000-3.T..{asked['correlation-id']}"
        boxes.put(boxes.queue(reply), {name: body.upper()})

    thread = Thread(target=answer)
    thread.start()
    assert ask(bridge, "queue:ask.files", *options) == "HOW MANY?\n"
    thread.join()
    assert len(list(boxes.root.glob(".long-names/*"))) == (1 if options else 0)


def test_a_script_asks_and_jms_answers(bridge: Bridge, boxes: Dropboxes) -> None:
    with serving(int(bridge.settings["embedded.stomp.port"]), "files.service"):
        assert ask(bridge, "files:queue/files.ask") == "HOW MANY?\n"
    assert not list(boxes.root.glob("jms-bridge.reply.*"))


@contextmanager
def serving(port: int, queue: str) -> Iterator[None]:
    """Answers each request with its body in capitals."""
    connection = stomp.Connection12([("127.0.0.1", port)])
    ready = Event()

    class Answers(stomp.ConnectionListener):  # type: ignore[misc] # stomp.py has no types
        def on_receipt(self, frame: Any) -> None:
            ready.set()

        def on_message(self, frame: Any) -> None:
            reply_to = frame.headers["reply-to"].partition("://")[2]
            kept = {"correlation-id": frame.headers["correlation-id"], "destination-type": "ANYCAST"}
            connection.send(reply_to, frame.body.upper(), headers=kept)

    connection.set_listener("", Answers())
    connection.connect(wait=True)
    connection.subscribe(queue, "1", headers={"subscription-type": "ANYCAST", "receipt": "subscribed"})
    assert ready.wait(30)
    try:
        yield
    finally:
        connection.disconnect()
