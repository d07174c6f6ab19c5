"""A sink beside folders: files that are whole, once, and on disk before they count; and topics, given to everybody."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from engine.connectors.base import NotConnectedError, Outcome
from engine.connectors.dropbox import folder as folder_module
from engine.connectors.dropbox import topic as topic_module
from engine.connectors.dropbox.box import OpenBox, Slot, locate
from engine.connectors.dropbox.folder import Folder, open_root
from engine.connectors.dropbox.topic import distribute
from tests.dropboxes import FOLDERS, files, headers
from tests.unit.connectors.dropbox_bridge import Bridge, numbered, outcomes, taken


@pytest.fixture
def queue(bridge: Bridge) -> Path:
    return bridge.boxes.queue("q")


def bodies(box: Path, folder: str = "target") -> list[int]:
    return [int((box / folder / name).read_bytes()) for name in files(box / folder)]


def test_messages_are_files_in_target_in_their_order(bridge: Bridge, queue: Path) -> None:
    sink = bridge.sink()
    assert outcomes(sink, numbered(1000)) == [Outcome(n) for n in range(1000)]
    assert bodies(queue) == list(range(1000))
    assert [folder for folder in FOLDERS if files(queue / folder)] == ["target"]
    assert headers(files(queue / "target")[0])["class"] == "T"


@pytest.mark.parametrize("address", ["queue/new", "queue:new", "new", "/queue/new"])
def test_a_queue_is_made_where_it_is_missing(bridge: Bridge, address: str) -> None:
    outcomes(bridge.sink(), numbered(1, address))
    assert bodies(bridge.boxes.root / "new" / "incoming") == [0]


def test_a_queue_without_incoming_is_used_as_it_is(bridge: Bridge) -> None:
    (bridge.boxes.root / "flat" / "target").mkdir(parents=True)
    outcomes(bridge.sink(), numbered(1, "queue/flat"))
    assert bodies(bridge.boxes.root / "flat") == [0]


@pytest.mark.parametrize("folder", ["target", "processing", "processing/consumer", "processed", "expired", "error"])
def test_a_message_that_comes_again_is_known_wherever_it_went(bridge: Bridge, queue: Path, folder: str) -> None:
    outcomes(bridge.sink(), numbered(3))
    (queue / "processing" / "consumer").mkdir()
    for name in files(queue / "target"):
        (queue / "target" / name).rename(queue / folder / name)
    assert outcomes(bridge.sink(), numbered(4)) == [Outcome(n) for n in range(4)]
    assert len(files(queue)) == 4


def test_a_message_that_comes_again_stays_the_one_that_a_source_has_taken(bridge: Bridge, queue: Path) -> None:
    sink, source = bridge.sink(), bridge.source()
    outcomes(sink, numbered(2))
    deliveries = taken(source, 2)
    outcomes(sink, numbered(2))
    source.acknowledge([delivery.token for delivery in deliveries])
    outcomes(sink, numbered(2))
    assert taken(source) == []
    assert len(files(queue)) == 2


@pytest.mark.parametrize(
    "address",
    [
        *("", "..", "queue/../x", "queue/a/b", "/etc/passwd", "queue//etc", "queue/a\0b", "topic/.x", "topic/a..b"),
        *("queue/topic-root", "queue/global-read-lock", "queue/dropboxmq", "queue/.hidden", "topic/a/b", "queue/a\n"),
    ],
)
def test_an_address_that_is_no_folder_is_refused(bridge: Bridge, address: str) -> None:
    (refused,) = outcomes(bridge.sink(), numbered(1, address))
    assert refused.refusal == f"{address!r} is not a dropbox; expected queue/NAME, topic/NAME or the NAME of a queue"
    assert list(bridge.boxes.root.iterdir()) == []


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("queue/" + "é" * 200, "File name too long"),
        ("topic/" + ".".join(["n" * 200] * 30), "File name too long"),
        ("queue/file", "Not a directory"),
        ("queue/loop", "a link is not followed, put a folder in its place"),
    ],
)
def test_an_address_that_can_never_be_a_folder_is_refused_and_holds_up_no_other(
    bridge: Bridge, queue: Path, address: str, why: str
) -> None:
    (bridge.boxes.root / "file").touch()
    (bridge.boxes.root / "loop").symlink_to("loop")
    sink = bridge.sink()
    (refused,) = outcomes(sink, numbered(1, address))
    assert refused.refusal == f"{address[:100]!r} cannot be a dropbox: {why}"
    assert outcomes(sink, numbered(1)) == [Outcome(0)]
    assert bodies(queue) == [0]


def test_a_full_disk_leaves_nothing_behind_and_all_comes_again(
    bridge: Bridge, queue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = bridge.sink()
    write = os.write
    calls = 0

    def full(handle: int, data: memoryview) -> int:
        nonlocal calls
        calls += 1
        if calls > 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(handle, data)

    with monkeypatch.context() as patch:
        patch.setattr(folder_module.os, "write", full)
        with pytest.raises(NotConnectedError, match=r"^No space left on device$"):
            sink.send(numbered(10))
    assert files(queue) == []
    assert sink.outcomes(0) == []
    sink.connect()
    assert len(outcomes(sink, numbered(10))) == 10
    assert bodies(queue) == list(range(10))


def test_nothing_counts_before_it_is_on_disk(bridge: Bridge, queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = bridge.sink()
    outcomes(sink, [])
    synced: list[str] = []
    fsync, rename = os.fsync, os.rename

    def noted_sync(handle: int) -> None:
        fsync(handle)
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))  # noqa: PTH115 # it has no other name

    def noted_move(origin: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        assert str(queue / "working" / origin) in synced
        assert sink.outcomes(0) == []
        rename(origin, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(folder_module.os, "fsync", noted_sync)
    monkeypatch.setattr(folder_module.os, "rename", noted_move)
    assert len(outcomes(sink, numbered(3))) == 3
    assert synced[-1] == str(queue / "target")


def test_what_a_process_that_died_was_writing_goes_after_an_hour(bridge: Bridge, queue: Path) -> None:
    old, new, other = (queue / "working" / name for name in ("jms-bridge.b1.out.x.1", "jms-bridge.b1.out.y.1", "z"))
    for path in (old, new, other):
        path.touch()
    for path in (old, other):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    outcomes(bridge.sink(), numbered(1))
    assert set(files(queue / "working")) == {new.name, other.name}


def test_a_root_that_is_not_there_is_waited_for_and_not_made(bridge: Bridge) -> None:
    sink = bridge.sink()
    outcomes(sink, numbered(1))
    bridge.boxes.unmount()
    with pytest.raises(NotConnectedError, match=r"moved, removed or replaced .*: .*/spool$"):
        sink.send(numbered(1, begin=1))
    with pytest.raises(NotConnectedError, match=r"there is no folder .*/spool; is its disk mounted\?"):
        sink.connect()
    bridge.boxes.mount()
    sink.connect()
    assert len(outcomes(sink, numbered(2))) == 2
    assert bodies(bridge.boxes.queue("q")) == [0, 1]


# Topics


@pytest.fixture
def topic(bridge: Bridge) -> Path:
    return bridge.boxes.topic("prices")


@pytest.fixture
def subscribed(bridge: Bridge, topic: Path) -> tuple[Path, Path]:
    return bridge.boxes.subscription("prices", "sub1.c1"), bridge.boxes.subscription("prices", "sub2.c2")


def test_a_topic_gives_each_message_to_each_subscription(
    bridge: Bridge, topic: Path, subscribed: tuple[Path, Path]
) -> None:
    deleted = bridge.boxes.subscription("prices", "gone.c.deleted-1")
    assert len(outcomes(bridge.sink(), numbered(300, "topic/prices"))) == 300
    for box in subscribed:
        assert bodies(box) == list(range(300))
        assert files(box / "working") == []
    assert bodies(topic, "processed") == list(range(300))
    assert files(topic / "target") == files(topic / "processing") == files(deleted) == []


def test_without_a_subscription_a_topic_keeps_nothing_for_later(bridge: Bridge, topic: Path) -> None:
    sink = bridge.sink()
    outcomes(sink, numbered(1, "topic/prices"))
    box = bridge.boxes.subscription("prices", "late.c")
    outcomes(sink, numbered(2, "topic/prices"))
    assert bodies(box) == [1]


def test_sources_of_a_topic_are_subscriptions_and_give_to_all_what_producers_bring(
    bridge: Bridge, topic: Path, subscribed: tuple[Path, Path]
) -> None:
    first = bridge.source("topic:prices")
    second = bridge.source("topic:prices", subscription="other.sub", client_id="c-9")
    bridge.boxes.put(topic, {f"4.114042920129500{n}-1.T": str(n).encode() for n in range(5)})
    for source in (first, second):
        found = taken(source, 5)
        assert [delivery.message.body for delivery in found] == [b"0", b"1", b"2", b"3", b"4"]
        assert {delivery.message.headers["JMSDestination"] for delivery in found} == {"topic:prices"}
        source.acknowledge([delivery.token for delivery in found])
    assert bodies(subscribed[0]) == bodies(subscribed[1]) == list(range(5))
    assert bodies(topic.parent / ".subscriptions" / "other%2Esub.c-9", "processed") == list(range(5))
    first.close()
    bridge.boxes.put(topic, {"late": b"9"})
    taken(second, 1)
    assert len(taken(bridge.source("topic:prices"), 1)) == 1


def test_workers_of_a_source_share_its_subscription(bridge: Bridge, topic: Path) -> None:
    workers = [bridge.source("topic:prices"), bridge.source("topic:prices")]
    bridge.boxes.put(topic, {str(n): b"" for n in range(20)})
    found = [delivery for _ in range(10) for worker in workers for delivery in taken(worker, 1)]
    assert len({delivery.message.headers["JMSMessageID"] for delivery in found}) == 20


@contextmanager
def opened(bridge: Bridge) -> Iterator[OpenBox]:
    with open_root(str(bridge.boxes.root)) as root, OpenBox(root, locate(bridge.boxes.root, "topic/prices")) as box:
        yield box


def given(bridge: Bridge) -> bool:
    """Distributes the topic once."""
    with opened(bridge) as box:
        return distribute(box)


@pytest.mark.parametrize("step", range(1, 32))
def test_a_crash_at_any_step_loses_and_doubles_nothing(
    bridge: Bridge, topic: Path, subscribed: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    bridge.boxes.put(topic, {f"4.114042920129500{n}-1.T": str(n).encode() for n in range(3)})
    calls = 0

    def crashing(real: object) -> object:
        def call(*arguments: object) -> object:
            nonlocal calls
            calls += 1
            if calls == step:
                raise KeyboardInterrupt
            assert callable(real)
            return real(*arguments)

        return call

    with monkeypatch.context() as patch:
        for name in ("move", "sync"):
            patch.setattr(Folder, name, crashing(getattr(Folder, name)))
        patch.setattr(topic_module, "_link", crashing(topic_module._link))
        try:
            given(bridge)
        except KeyboardInterrupt:
            crashed = True
        else:
            crashed = False
    assert crashed is (step <= 29)
    # One consumer has been faster than the recovery, and deletes what it has read.
    seen = bodies(subscribed[0])
    for name in files(subscribed[0] / "target"):
        (subscribed[0] / "target" / name).unlink()

    assert given(bridge)

    assert sorted(seen + bodies(subscribed[0])) == [0, 1, 2]
    assert bodies(subscribed[1]) == [0, 1, 2]
    assert bodies(topic, "processed") == [0, 1, 2]
    for each in (topic, *subscribed):
        assert files(each / "working") == files(each / "processing") == []


@pytest.mark.parametrize("number", [errno.EPERM, errno.EXDEV, errno.EMLINK])
def test_where_there_are_no_links_it_copies(
    bridge: Bridge, topic: Path, subscribed: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(topic_module.os, "link", refused)
    outcomes(bridge.sink(), numbered(3, "topic/prices"))
    assert bodies(subscribed[0]) == bodies(subscribed[1]) == [0, 1, 2]
    assert files(subscribed[0] / "working") == []


def test_one_process_at_a_time_distributes_and_others_wait_for_it(
    bridge: Bridge, topic: Path, subscribed: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = bridge.sink()
    with opened(bridge) as box:
        slot = Slot.only(box, "jms-bridge")
        assert slot is not None
        monkeypatch.setattr(topic_module, "_WAIT_SECONDS", 0.05)
        with pytest.raises(
            NotConnectedError, match=r"another process has distributed topic:prices for 0 s; see .*/\.inc"
        ):
            sink.send(numbered(1, "topic/prices"))
        monkeypatch.undo()
        sink.connect()
        thread = Thread(target=sink.send, args=(numbered(1, "topic/prices"),))
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        slot.close()
    thread.join(10)
    assert sink.outcomes(0) == [Outcome(0)]
    assert bodies(subscribed[0]) == bodies(subscribed[1]) == [0]
