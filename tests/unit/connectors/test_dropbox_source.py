"""A source beside folders: what is taken, by whom, in which order, and what becomes of the files."""

from __future__ import annotations

import errno
import itertools
import os
import time
from pathlib import Path
from threading import Thread

import pytest

from engine.connectors.base import NotConnectedError
from engine.connectors.dropbox import folder as folder_module
from engine.connectors.dropbox import folder_reader, pending_files
from engine.connectors.dropbox.folder import Folder
from tests.dropboxes import FOLDERS, files
from tests.unit.connectors.dropbox_bridge import Bridge, taken


@pytest.fixture
def queue(bridge: Bridge) -> Path:
    return bridge.boxes.queue("q")


def test_a_file_is_in_processing_until_the_journal_has_it_and_then_in_processed(bridge: Bridge, queue: Path) -> None:
    source = bridge.source()
    bridge.boxes.put(queue, {"4.1140429201295000-1.T": b"hello"})

    (delivery,) = taken(source, 1)
    assert delivery.message.body == b"hello"
    assert delivery.message.headers["JMSDestination"] == "queue:q"
    assert [files(queue / folder) for folder in FOLDERS] == [[], [], ["4.1140429201295000-1.T"], [], [], [], []]

    source.acknowledge([delivery.token])
    assert [files(queue / folder) for folder in FOLDERS] == [[], [], [], ["4.1140429201295000-1.T"], [], [], []]
    source.close()
    assert list((queue / "processing").iterdir()) == []


def test_processed_files_are_deleted_if_so_configured(bridge: Bridge, queue: Path) -> None:
    source = bridge.source(processed="delete")
    bridge.boxes.put(queue, {"a": b"1", "b": b"2"})
    source.acknowledge([delivery.token for delivery in taken(source, 2)])
    assert files(queue) == []


def test_what_is_not_acknowledged_goes_back_to_target(bridge: Bridge, queue: Path) -> None:
    bridge.boxes.put(queue, {"a": b"1", "b": b"2", "c": b"3"})
    source = bridge.source()
    first, _ = taken(source, 2)
    source.acknowledge([first.token])
    source.close()
    assert files(queue / "target") == ["b", "c"]
    assert [delivery.message.body for delivery in taken(bridge.source())] == [b"2", b"3"]


def test_dropboxes_are_made_below_the_root(bridge: Bridge) -> None:
    bridge.source("queue:new, topic:prices.eu")
    made = bridge.boxes.root
    assert all((made / "new" / "incoming" / folder).is_dir() for folder in FOLDERS)
    topic = made / "topic-root" / "prices" / "eu"
    assert all((topic / ".incoming" / folder).is_dir() for folder in FOLDERS)
    assert all((topic / ".subscriptions" / "src.b1" / folder).is_dir() for folder in FOLDERS)


def test_a_queue_without_incoming_is_read_as_it_is(bridge: Bridge) -> None:
    flat = bridge.boxes.root / "flat"
    for folder in FOLDERS:
        (flat / folder).mkdir(parents=True)
    source = bridge.source("queue:flat")
    bridge.boxes.put(flat, {"a": b"1"})
    source.acknowledge([taken(source, 1)[0].token])
    assert files(flat / "processed") == ["a"]
    assert not (flat / "incoming").exists()


def test_the_higher_priority_goes_first_then_the_older(bridge: Bridge, queue: Path) -> None:
    names = ["4.1140429201295000-2.T", "4.1140429201295000-1.T", "-7.1140429201290000-1.T", "9.1150429201295000-1.T"]
    bridge.boxes.put(queue, {name: name.encode() for name in [*names, "plain"]})
    os.utime(queue / "target" / "plain", (1_000_000_000, 1_000_000_000))
    found = [delivery.message.body.decode() for delivery in taken(bridge.source())]
    assert found == [names[3], "plain", names[1], names[0], names[2]]


def test_three_sources_share_the_files_and_none_goes_twice(bridge: Bridge, queue: Path) -> None:
    bridge.boxes.put(queue, {f"file-{n}": str(n).encode() for n in range(2000)})
    sources = [bridge.source(), bridge.source(), bridge.source(bridge="b2", watch="scan")]
    found: list[list[int]] = [[], [], []]

    def work(number: int) -> None:
        for delivery in taken(sources[number]):
            found[number].append(int(delivery.message.body))
            sources[number].acknowledge([delivery.token])

    threads = [Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(itertools.chain(*found)) == list(range(2000))
    assert len(files(queue / "processed")) == 2000


def test_who_loses_a_file_to_another_consumer_quietly_goes_on(bridge: Bridge, queue: Path) -> None:
    bridge.boxes.put(queue, {"a": b"1", "b": b"2", "c": b"3"})
    source = bridge.source()
    assert taken(source, 1)[0].message.body == b"1"
    (queue / "target" / "b").rename(queue / "processing" / "b")
    assert [delivery.message.body for delivery in taken(source)] == [b"3"]
    source.close()
    assert (queue / "processing" / "b").exists()


def test_what_a_process_that_died_had_taken_comes_again_first(bridge: Bridge, queue: Path) -> None:
    slot = queue / "processing" / "jms-bridge.b1.src.1"
    slot.mkdir()
    (slot / ".lock").touch()
    for name in ("4.1140429201295000-2.T", "4.1140429201295000-1.T"):
        (slot / name).write_bytes(name.encode())
    bridge.boxes.put(queue, {"9.1140429201295000-3.T": b"new"})
    source = bridge.source()
    found = taken(source, 3)
    assert [delivery.message.headers["JMSMessageID"][-1] for delivery in found] == ["1", "2", "3"]
    assert [delivery.message.headers["JMSRedelivered"] for delivery in found] == ["true", "true", "false"]
    source.acknowledge([delivery.token for delivery in found])
    assert len(files(queue / "processed")) == 3


def test_files_of_several_processes_that_died_are_taken_over_and_those_of_the_living_are_not(
    bridge: Bridge, queue: Path
) -> None:
    bridge.boxes.put(queue, {"a": b"1", "b": b"2"})
    living = bridge.source()
    (held,) = taken(living, 1)
    for number, name in ((2, "c"), (7, "d")):
        slot = queue / "processing" / f"jms-bridge.b1.src.{number}"
        slot.mkdir()
        (slot / name).write_bytes(name.encode())
    other = queue / "processing" / "jms-bridge.b9.src.1"
    other.mkdir()
    (other / "e").touch()

    found = taken(bridge.source())

    assert sorted(delivery.message.body for delivery in found) == [b"2", b"c", b"d"]
    living.acknowledge([held.token])
    assert files(queue / "processed") == ["a"]
    assert (other / "e").exists()


def test_a_second_file_of_the_same_name_waits_for_the_first(bridge: Bridge, queue: Path) -> None:
    source = bridge.source()
    bridge.boxes.put(queue, {"report": b"1"})
    (first,) = taken(source, 1)
    bridge.boxes.put(queue, {"report": b"2"})
    assert taken(source) == []
    source.acknowledge([first.token])
    assert [delivery.message.body for delivery in taken(source, 1)] == [b"2"]


def test_a_file_that_goes_back_does_not_take_the_place_of_another(bridge: Bridge, queue: Path) -> None:
    source = bridge.source()
    bridge.boxes.put(queue, {"report": b"1"})
    taken(source, 1)
    bridge.boxes.put(queue, {"report": b"2"})
    source.close()
    again = bridge.source()
    bodies = []
    for _ in range(2):
        (delivery,) = taken(again, 1)
        bodies.append(delivery.message.body)
        again.acknowledge([delivery.token])
    assert bodies == [b"1", b"2"]


def test_what_has_expired_goes_to_expired_and_is_not_delivered(bridge: Bridge, queue: Path) -> None:
    now = int(time.time() * 1000)
    late, early, never = f"4.id1.T.{now - 1}", f"4.id2.T.{now + 60_000}", "4.id3.T.0"
    bridge.boxes.put(queue, {name: name.encode() for name in (late, early, never)})
    found = taken(bridge.source())
    assert sorted(delivery.message.body.decode() for delivery in found) == [early, never]
    assert files(queue / "expired") == [late]


def test_of_a_large_file_only_the_beginning_is_read_and_it_goes_to_error(bridge: Bridge, queue: Path) -> None:
    source = bridge.source(**{"max-message-bytes": "64KiB"})
    bridge.boxes.put(queue, {"1.a.B": b"x" * 65_536, "0.b.B": b"y" * 1_000_000})
    whole, large = taken(source, 2)
    assert (whole.size, len(whole.message.body)) == (None, 65_536)
    assert (large.size, len(large.message.body)) == (1_000_000, 65_536)
    source.acknowledge([whole.token, large.token])
    assert files(queue / "processed") == ["1.a.B"]
    assert files(queue / "error") == ["0.b.B"]


def test_only_regular_files_are_messages(bridge: Bridge, queue: Path) -> None:
    target = queue / "target"
    (target / "folder").mkdir()
    os.mkfifo(target / "pipe")
    (target / "link").symlink_to(queue / "secret")
    (queue / "secret").write_bytes(b"secret")
    (target / ".nfs0001").touch()
    bridge.boxes.put(queue, {".dots": b"1"})
    assert [delivery.message.body for delivery in taken(bridge.source())] == [b"1"]
    assert len(list(target.iterdir())) == 4


def test_a_file_that_cannot_be_read_is_a_fault_and_goes_to_error(bridge: Bridge, queue: Path) -> None:
    slot = queue / "processing" / "jms-bridge.b1.src.1"
    slot.mkdir()
    (slot / "link").symlink_to(queue / "secret")
    (slot / "folder").mkdir()
    source = bridge.source()
    found = {delivery.message.headers["JMSMessageID"]: delivery for delivery in taken(source, 2)}
    assert found["ID:link"].fault == "its file cannot be read: Too many levels of symbolic links"
    assert found["ID:folder"].fault == "its file cannot be read: it is not a regular file"
    source.acknowledge([delivery.token for delivery in found.values()])
    assert sorted(entry.name for entry in (queue / "error").iterdir()) == ["folder", "link"]


def test_a_file_that_vanishes_after_it_was_taken_is_passed_over(
    bridge: Bridge, queue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bridge.boxes.put(queue, {"a": b"1", "b": b"2"})
    source = bridge.source()
    move = Folder.move

    def and_lose(origin: Folder, name: str, target: Folder) -> bool:
        moved = move(origin, name, target)
        if name == "a":
            target.remove(name)
        return moved

    monkeypatch.setattr(Folder, "move", and_lose)
    (delivery,) = taken(source)
    assert delivery.message.body == b"2"
    (next(queue.rglob("b"))).unlink()
    source.acknowledge([delivery.token])
    assert files(queue) == []


def test_a_root_that_is_not_there_is_waited_for(bridge: Bridge) -> None:
    source = bridge.source()
    bridge.boxes.unmount()
    with pytest.raises(NotConnectedError, match=r"moved, removed or replaced while the bridge used it: .*/spool$"):
        taken(source, 1)
    with pytest.raises(NotConnectedError, match=r"there is no folder .*/spool; is its disk mounted\?"):
        source.connect()
    assert not bridge.boxes.root.exists()
    bridge.boxes.mount()
    source.connect()


def test_files_that_were_taken_when_the_root_went_come_again(bridge: Bridge, queue: Path) -> None:
    source = bridge.source()
    bridge.boxes.put(queue, {"a": b"1"})
    (delivery,) = taken(source, 1)
    bridge.boxes.unmount()
    with pytest.raises(NotConnectedError):
        source.acknowledge([delivery.token])
    source.close()
    bridge.boxes.mount()
    source.connect()
    (again,) = taken(source, 1)
    assert again.message.headers["JMSRedelivered"] == "true"


def test_a_disk_that_fails_is_a_lost_connection(bridge: Bridge, queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bridge.boxes.put(queue, {"a": b"1"})
    source = bridge.source()

    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(folder_reader.os, "read", fail)
    with pytest.raises(NotConnectedError, match=r"^Input/output error$"):
        taken(source, 1)


def test_ten_thousand_files_are_looked_through_once(
    bridge: Bridge, queue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(10_000):
        (queue / "target" / f"4.{1_140_429_201_295_000 + n}-1.T").touch()
    listings = 0
    ranked = pending_files.ranked

    def counted(folder: Folder) -> object:
        nonlocal listings
        listings += 1
        return ranked(folder)

    monkeypatch.setattr(pending_files, "ranked", counted)
    source = bridge.source(scan_interval="10m")
    found = taken(source, 10_000, 60)
    # One look, which asks again for what a listing may have missed.
    assert listings == 2
    sent = [int(delivery.message.headers["JMSMessageID"][3:19]) for delivery in found]
    assert sent == sorted(sent)
    source.acknowledge([delivery.token for delivery in found])
    assert len(files(queue / "processed")) == 10_000


@pytest.mark.parametrize("settings", [{"scan_interval": "10m"}, {"watch": "scan"}], ids=["inotify", "scan"])
def test_new_files_are_noticed(bridge: Bridge, queue: Path, settings: dict[str, str]) -> None:
    source = bridge.source("queue:q, queue:other", **settings)
    assert source.receive(0.1) is None
    for name in ("a", "b", "c"):
        bridge.boxes.put(queue, {name: name.encode()})
        assert [delivery.message.body for delivery in taken(source, 1, 5)] == [name.encode()]


def test_without_inotify_it_looks_now_and_then(bridge: Bridge, queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(folder_module, "_inotify", none)
    source = bridge.source()
    assert source.receive(0.01) is None
    bridge.boxes.put(queue, {"a": b"1"})
    assert len(taken(source, 1)) == 1


def test_a_read_lock_of_dropboxmq_stops_it_until_it_goes(bridge: Bridge, queue: Path) -> None:
    locks = [queue / "read-lock", bridge.boxes.root / "global-read-lock"]
    bridge.boxes.put(queue, {"a": b"1"})
    for lock in locks:
        lock.touch()
    source = bridge.source()
    for lock in locks:
        assert taken(source) == []
        lock.unlink()
    assert len(taken(source, 1)) == 1


def test_several_queues_take_turns(bridge: Bridge, queue: Path) -> None:
    other = bridge.boxes.queue("other")
    bridge.boxes.put(queue, {f"q{n}": b"q" for n in range(5)})
    bridge.boxes.put(other, {f"o{n}": b"o" for n in range(5)})
    source = bridge.source("queue:q, queue:other")
    found = taken(source, 10)
    assert b"".join(delivery.message.body for delivery in found[:4]) in (b"qoqo", b"oqoq")
    source.acknowledge([delivery.token for delivery in found])
    assert (len(files(queue / "processed")), len(files(other / "processed"))) == (5, 5)


def test_a_queue_made_for_one_reply_goes_with_its_source(bridge: Bridge) -> None:
    source = bridge.source("queue:jms-bridge.reply.x1")
    assert (bridge.boxes.root / "jms-bridge.reply.x1").is_dir()
    source.close()
    assert not (bridge.boxes.root / "jms-bridge.reply.x1").exists()
