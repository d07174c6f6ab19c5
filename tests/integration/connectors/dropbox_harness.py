"""Folders as a producer and a consumer without a line of the bridge's own code see them.

A folder has no connection that could be cut or slowed down: tests that need one are skipped. What stands for a broker
that is killed and comes back is a disk that is unmounted and mounted again: the root is renamed away and back.
"""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import quote_plus, unquote_plus

import pytest

from routes.properties import Property
from tests.integration.connectors.running import until
from tests.integration.connectors.sinks import Arrived

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from engine.message import Message
    from tests.integration.connectors.harness import Outgoing

FOLDERS = ("working", "target", "processing", "processed", "routing", "expired", "error")
_numbers = itertools.count(1)


class Dropboxes:
    """A root with what is in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(exist_ok=True)

    def queue(self, name: str) -> Path:
        """The seven folders of a queue, which are made where they are missing."""
        return self._made(self.root / name / "incoming")

    def topic(self, name: str) -> Path:
        """Those in which producers put messages of a topic."""
        return self._made(self.root / "topic-root" / name / ".incoming")

    def subscription(self, topic: str, name: str) -> Path:
        """Those of a subscription, `SUB.CLIENT`."""
        return self._made(self.root / "topic-root" / topic / ".subscriptions" / name)

    def put(self, box: Path, files: Mapping[str, bytes]) -> None:
        """As a producer does."""
        for name, body in files.items():
            (box / "working" / name).write_bytes(body)
            (box / "working" / name).rename(box / "target" / name)

    def unmount(self) -> None:
        self.root.rename(f"{self.root}.away")

    def mount(self) -> None:
        os.rename(f"{self.root}.away", self.root)  # noqa: PTH104 # its Path is that of where it will be

    @staticmethod
    def _made(box: Path) -> Path:
        for folder in FOLDERS:
            (box / folder).mkdir(parents=True, exist_ok=True)
        return box


def files(folder: Path) -> list[str]:
    """The files in a folder and in those below it, in the order in which consumers take them."""
    found = [entry.name for entry in folder.rglob("*") if entry.is_file() and entry.name != ".lock"]
    return sorted(
        found, key=lambda name: (-int(name.split(".")[0]) if name[:1].isdigit() else -4, name.split(".")[1:2])
    )


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
        # A file name has 255 bytes.
        return "queue/any", replace(message, properties={"x": Property("y" * 300)})

    def create(self, name: str) -> None:
        self.boxes.queue(name)

    def arrived(self, name: str, count: int) -> list[Arrived]:
        target = self.boxes.queue(name) / "target"
        until(lambda: len(files(target)) >= count, 60, f"{count} in {name}")
        time.sleep(0.3)
        return [Arrived((target / found).read_bytes(), headers(found)) for found in files(target)]


def headers(name: str) -> dict[str, str]:
    """What a file name says, properties under their names."""
    fields = name.split(".", 7) + [""] * 8
    names = ("priority", "id", "class", "expiration", "correlation-id", "reply-to", "type")
    found = {name: unquote_plus(value) for name, value in zip(names, fields, strict=False)}
    for pair in fields[7].split("&") if fields[7] else ():
        key, _, value = pair.partition("=")
        found[unquote_plus(key)[:-1]] = unquote_plus(value)
    return found


def _escaped(text: str) -> str:
    return quote_plus(text).replace(".", "%2E")
