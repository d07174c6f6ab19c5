"""Dropboxes in the conformance suites.

A folder has no connection that could be cut or slowed down: tests that need one are skipped. What stands for a broker
that is killed and comes back is a disk that is unmounted and mounted again: the root is renamed away and back.
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import quote_plus

import pytest

from tests.dropboxes import files, headers
from tests.integration.connectors.sinks import Arrived
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.message import Message
    from tests.dropboxes import Dropboxes
    from tests.integration.connectors.harness import Outgoing

_numbers = itertools.count(1)


def filename(message: Outgoing) -> str:
    """The name of a message file, by the documentation of DropboxMQ."""
    fields = dict(message.fields)
    group = {"JMSXGroupID": fields["JMSXGroupID"]} if "JMSXGroupID" in fields else {}
    pairs = {**message.properties, **group}
    return ".".join(
        [
            fields.get("JMSPriority", "4"),
            f"{time.time_ns() // 1000:016}-{next(_numbers):09}",
            "T" if message.text else "B",
            fields.get("JMSExpiration", ""),
            *(_escaped(fields.get(name, "")) for name in ("JMSCorrelationID", "JMSReplyTo", "JMSType")),
            "&".join(f"{_escaped(name)}S={_escaped(value)}" for name, value in pairs.items()),
        ]
    ).rstrip(".")


class DropboxHarness:
    """Queues below a root."""

    settable = frozenset({"JMSCorrelationID", "JMSType", "JMSPriority", "JMSExpiration", "JMSReplyTo", "JMSXGroupID"})
    odd: Mapping[str, str] = {"a.b": "dots", "é &": "☃=+", "empty": "", "x/y": "\n\0%"}
    delivery_mode = None
    kind = "queue"
    largest_bytes = 512 * 1024 * 1024
    most_properties = 0
    unreachable = "Connection refused"

    def __init__(self, boxes: Dropboxes) -> None:
        self.boxes = boxes

    @property
    def port(self) -> NoReturn:
        pytest.skip("a folder has no connection to cut")

    def settings(self, queue: str, port: int | None = None) -> Mapping[str, str]:
        if port is not None:
            pytest.skip("a folder has no port at which nobody listens")
        return {
            ".type": "dropbox",
            ".root": str(self.boxes.root),
            ".destinations": f"queue:{queue}",
            ".scan-interval": "200ms",
        }

    def create(self, queue: str) -> None:
        self.boxes.queue(queue)

    def send(self, queue: str, messages: Sequence[Outgoing]) -> None:
        self.boxes.put(self.boxes.queue(queue), {filename(message): message.body for message in messages})

    def waiting(self, queue: str) -> int:
        box = self.boxes.queue(queue)
        return len(files(box / "target")) + len(files(box / "processing"))

    def kill(self) -> None:
        self.boxes.unmount()

    def start(self) -> None:
        self.boxes.mount()


class DropboxSinkHarness:
    """The same for sinks."""

    def __init__(self, boxes: Dropboxes) -> None:
        self.boxes = boxes
        self.kill, self.start = boxes.unmount, boxes.mount

    @property
    def port(self) -> NoReturn:
        pytest.skip("a folder has no connection to cut")

    def settings(self, port: int | None = None) -> Mapping[str, str]:
        return {".type": "dropbox", ".root": str(self.boxes.root)}

    def address(self, name: str) -> str:
        return f"queue/{name}"

    def refused(self, message: Message) -> tuple[str, Message]:
        # A link in the place of a folder is never followed.
        link = self.boxes.root / "linked"
        if not link.is_symlink():
            link.symlink_to(self.boxes.root.parent)
        return "queue/linked", message

    def create(self, name: str) -> None:
        self.boxes.queue(name)

    def arrived(self, name: str, count: int) -> list[Arrived]:
        target = self.boxes.queue(name) / "target"
        until(lambda: len(files(target)) >= count, 60, f"{count} in {name}")
        time.sleep(0.3)
        return [Arrived((target / found).read_bytes(), headers(found)) for found in files(target)]


def _escaped(text: str) -> str:
    return quote_plus(text).replace(".", "%2E")
