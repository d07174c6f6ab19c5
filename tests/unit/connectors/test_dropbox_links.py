"""Folders of a dropbox that others exchange for links: nothing outside the root is read, moved or made."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.connectors.base import Delivery, NotConnectedError, Outcome
from engine.connectors.dropbox import topic as topic_module
from engine.connectors.dropbox.source import DropboxSource
from tests.dropboxes import FOLDERS, files
from tests.unit.connectors.dropbox_bridge import Bridge, numbered, outcomes, taken

WAYS = (".", "..")
"""The folder `incoming` of a queue, and the queue itself."""
LINK = "a link is not followed, put a folder in its place"
CHANGED = "the folder was moved, removed or replaced while the bridge used it"


class Outside:
    """A place beside the root that looks like a dropbox, with a file in each folder that nobody may touch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for inner in ("", "incoming"):
            for name in FOLDERS:
                (folder / inner / name).mkdir(parents=True)
                (folder / inner / name / "4.secret.T").write_text("secret")
        self._before = self._files()

    def swap(self, folder: Path) -> Path:
        """Puts a link in the place of a folder, which is moved aside; gives where it is."""
        folder = folder.resolve()
        aside = folder.with_name(f"{folder.name}.aside")
        folder.rename(aside)
        folder.symlink_to(self.folder / folder.name if folder.name in FOLDERS else self.folder)
        return aside

    def restore(self, folder: Path, aside: Path) -> None:
        """Undoes `swap`."""
        place = aside.with_name(aside.name.removesuffix(".aside"))
        place.unlink()
        aside.rename(place)

    def assert_untouched(self) -> None:
        assert self._files() == self._before

    def _files(self) -> dict[str, str]:
        return {
            str(path): path.read_text() if path.is_file() else str(path.is_symlink())
            for path in sorted(self.folder.rglob("*"))
        }


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    made = Outside(tmp_path / "outside")
    yield made
    made.assert_untouched()


@pytest.fixture
def queue(bridge: Bridge) -> Path:
    return bridge.boxes.queue("q")


@pytest.fixture
def topic(bridge: Bridge) -> Path:
    return bridge.boxes.topic("prices")


@pytest.fixture
def subscribed(bridge: Bridge) -> Path:
    """The subscription of the source."""
    return bridge.boxes.subscription("prices", "src.b1")


# Before the start


@pytest.mark.parametrize("folder", [*FOLDERS, *WAYS])
def test_a_source_of_a_queue_does_not_start_on_a_link(
    bridge: Bridge, outside: Outside, queue: Path, folder: str
) -> None:
    aside = outside.swap(queue / folder)
    place = str(aside).removesuffix(".aside")
    with pytest.raises(NotConnectedError, match=f"^{LINK}: {re.escape(place)}$"):
        bridge.source()
    outside.restore(queue / folder, aside)
    bridge.boxes.put(queue, {"a": b"1"})
    assert len(taken(bridge.source(), 1)) == 1


@pytest.mark.parametrize("box", ["topic", "subscribed"])
@pytest.mark.parametrize("folder", [*FOLDERS, *WAYS])
def test_a_source_of_a_topic_does_not_start_on_a_link(
    bridge: Bridge,
    outside: Outside,
    request: pytest.FixtureRequest,
    topic: Path,
    subscribed: Path,
    box: str,
    folder: str,
) -> None:
    outside.swap({"topic": topic, "subscribed": subscribed}[box] / folder)
    with pytest.raises(NotConnectedError, match=LINK):
        bridge.source("topic:prices")


@pytest.mark.parametrize("folder", [*FOLDERS, *WAYS])
@pytest.mark.parametrize("address", ["queue/q", "topic/prices"])
def test_a_sink_refuses_a_message_to_a_link_and_holds_up_no_other(
    bridge: Bridge, outside: Outside, queue: Path, topic: Path, address: str, folder: str
) -> None:
    box = queue if address == "queue/q" else topic
    outside.swap(box / folder)
    sink = bridge.sink()
    assert outcomes(sink, numbered(1, address)) == [Outcome(0, f"'{address}' cannot be a dropbox: {LINK}")]
    assert outcomes(sink, numbered(1, "queue/other")) == [Outcome(0)]


@pytest.mark.parametrize("folder", ["working", "target", *WAYS])
def test_a_link_in_a_subscription_stops_its_topic_and_loses_nothing(
    bridge: Bridge, outside: Outside, topic: Path, subscribed: Path, folder: str
) -> None:
    aside = outside.swap(subscribed / folder)
    sink = bridge.sink()
    with pytest.raises(NotConnectedError, match=LINK):
        sink.send(numbered(1, "topic/prices"))
    outside.restore(subscribed / folder, aside)
    sink.connect()
    assert outcomes(sink, numbered(1, "topic/prices")) == [Outcome(0)]
    assert len(files(subscribed / "target")) == 1
    assert len(files(topic / "processed")) == 1


@pytest.mark.parametrize("maker", ["source", "sink"])
def test_a_root_that_is_a_link_is_refused_with_what_to_do(bridge: Bridge, outside: Outside, maker: str) -> None:
    outside.swap(bridge.boxes.root)
    with pytest.raises(
        NotConnectedError, match=r"/spool is a link, which is not followed; set root to the folder that"
    ):
        getattr(bridge, maker)()


# While it runs


@pytest.mark.parametrize("folder", ["target", "processing", "processed", "error", "expired", *WAYS])
def test_a_running_source_leaves_a_queue_that_is_exchanged(
    bridge: Bridge, outside: Outside, queue: Path, folder: str
) -> None:
    source = bridge.source(**{"max-message-bytes": "64KiB"})
    bridge.boxes.put(queue, {"2.a.B": b"1", "1.b.B": b"x" * 70_000})
    found = taken(source, 2)
    aside = outside.swap(queue / folder)

    with pytest.raises(NotConnectedError, match=f"{CHANGED}|{LINK}"):
        use(source, bridge, aside, found)
    with pytest.raises(NotConnectedError, match=LINK):
        source.connect()

    outside.restore(queue / folder, aside)
    source.connect()
    again = taken(source)
    source.acknowledge([delivery.token for delivery in again])
    assert sorted([*files(queue / "processed"), *files(queue / "error")])[-2:] == ["1.b.B", "2.a.B"]


def use(source: DropboxSource, bridge: Bridge, aside: Path, found: list[Delivery]) -> None:
    """Takes what comes, acknowledges it, and meets a message that has expired."""
    if aside.name == "expired.aside":
        bridge.boxes.put(bridge.boxes.root / "q" / "incoming", {f"4.late.T.{int(time.time() * 1000) - 1}": b""})
    taken(source)
    source.acknowledge([delivery.token for delivery in found])


@pytest.mark.parametrize("box", ["topic", "subscribed"])
@pytest.mark.parametrize("folder", ["working", "target", "processing", "processed", *WAYS])
def test_a_running_source_leaves_a_topic_that_is_exchanged(
    bridge: Bridge, outside: Outside, topic: Path, subscribed: Path, box: str, folder: str
) -> None:
    source = bridge.source("topic:prices")
    bridge.boxes.put(topic, {"a": b"1"})
    found = taken(source, 1)
    bridge.boxes.put(topic, {"b": b"2"})
    place = {"topic": topic, "subscribed": subscribed}[box] / folder
    outside.swap(place)
    if (box, folder) == ("topic", "working"):
        # A source writes nothing there.
        assert len(taken(source, 1)) == 1
        return
    with pytest.raises(NotConnectedError, match=f"{CHANGED}|{LINK}"):
        use(source, bridge, place, found)


@pytest.mark.parametrize("folder", ["working", "target", "processing", "processed", "error", "expired", *WAYS])
@pytest.mark.parametrize("address", ["queue/q", "topic/prices"])
def test_a_running_sink_leaves_a_dropbox_that_is_exchanged(
    bridge: Bridge, outside: Outside, queue: Path, topic: Path, address: str, folder: str
) -> None:
    box = queue if address == "queue/q" else topic
    sink = bridge.sink()
    outcomes(sink, numbered(1, address))
    aside = outside.swap(box / folder)

    with pytest.raises(NotConnectedError, match=CHANGED):
        sink.send(numbered(1, address, begin=1))
    sink.connect()
    (refused,) = outcomes(sink, numbered(1, address, begin=1))
    assert refused.refusal is not None
    assert LINK in refused.refusal

    outside.restore(box / folder, aside)
    assert outcomes(sink, numbered(1, address, begin=1)) == [Outcome(1)]
    assert len(files(box)) == 2


@pytest.mark.parametrize("maker", ["source", "sink"])
def test_a_root_that_is_exchanged_is_left(bridge: Bridge, outside: Outside, queue: Path, maker: str) -> None:
    source, sink = bridge.source(), bridge.sink()
    outcomes(sink, numbered(1))
    found = taken(source, 1)
    outside.swap(bridge.boxes.root)
    tokens = [delivery.token for delivery in found]
    with pytest.raises(NotConnectedError, match=CHANGED):
        sink.send(numbered(1, begin=1)) if maker == "sink" else source.acknowledge(tokens)


def test_another_real_folder_is_a_change_too_and_used_after_connecting_again(bridge: Bridge, queue: Path) -> None:
    sink = bridge.sink()
    outcomes(sink, numbered(1))
    (queue / "target").rename(queue / "old")
    (queue / "target").mkdir()
    with pytest.raises(NotConnectedError, match=f"{CHANGED}: .*/q/incoming/target$"):
        sink.send(numbered(1, begin=1))
    sink.connect()
    outcomes(sink, numbered(1, begin=1))
    assert len(files(queue / "target")) == len(files(queue / "old")) == 1


# What is in the folders


@pytest.mark.parametrize("name", ["jms-bridge", "jms-bridge.copy"])
def test_links_among_files_that_are_being_written_are_not_written_to(
    bridge: Bridge, outside: Outside, topic: Path, subscribed: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(topic_module.os, "link", refused)
    secret = outside.folder / "target"
    (subscribed / "working" / name).symlink_to(secret / "4.secret.T" if name.endswith("copy") else secret)
    sink = bridge.sink()
    if name.endswith("copy"):
        outcomes(sink, numbered(1, "topic/prices"))
        assert [file.read_bytes() for file in (subscribed / "target").iterdir()] == [b"0"]
    else:
        with pytest.raises(NotConnectedError, match=f"{LINK}: .*/working/jms-bridge$"):
            sink.send(numbered(1, "topic/prices"))


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_takes_the_place_of_a_file_of_a_topic_goes_to_error(
    bridge: Bridge, outside: Outside, topic: Path, subscribed: Path, kind: str
) -> None:
    slot = topic / "processing" / "jms-bridge"
    slot.mkdir()
    if kind == "link":
        (slot / "a").symlink_to(outside.folder / "target" / "4.secret.T")
    else:
        os.mkfifo(slot / "a")
    assert outcomes(bridge.sink(), numbered(1, "topic/prices")) == [Outcome(0)]
    assert [entry.name for entry in (topic / "error").iterdir()] == ["a"]
    assert len(list((subscribed / "target").iterdir())) == 1


def test_a_lock_that_is_a_link_is_not_made_elsewhere(bridge: Bridge, outside: Outside, queue: Path) -> None:
    slot = queue / "processing" / "jms-bridge.b1.src.1"
    slot.mkdir()
    (slot / ".lock").symlink_to(outside.folder / "made")
    with pytest.raises(
        NotConnectedError, match=r"Too many levels of symbolic links: .*/jms-bridge\.b1\.src\.1/\.lock$"
    ):
        bridge.source()


def test_no_descriptor_is_left_open(bridge: Bridge, queue: Path, topic: Path, subscribed: Path) -> None:
    def used() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    before = used()
    for _ in range(3):
        source, sink = bridge.source("queue:q, topic:prices"), bridge.sink()
        outcomes(sink, [*numbered(40, "topic/prices"), *(numbered(1, f"queue/many{n}", n)[0] for n in range(40, 80))])
        taken(source)
        assert used() < before + 280
        source.close()
        sink.close()
        sink.connect()
        (queue / "target").rename(queue / "aside")
        (queue / "target").symlink_to("aside")
        with pytest.raises(NotConnectedError):
            source.connect()
        source.close()
        assert outcomes(sink, numbered(1))[0].refusal is not None
        sink.close()
        (queue / "target").unlink()
        (queue / "aside").rename(queue / "target")
    assert used() == before
