"""Messages with more headers and properties than the name of a file can hold."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from engine.connectors.base import Outcome, Outgoing
from engine.connectors.dropbox.file_name import escape
from engine.message import Message
from routes.properties import JmsType, Property
from tests.dropboxes import files
from tests.unit.connectors.dropbox_bridge import Bridge, numbered, outcomes, taken

LARGE = Message(
    b"0",
    headers={"JMSCorrelationID": "c" * 300, "JMSType": "invoice", "JMSPriority": "7"},
    properties={f"p{n}": Property("x" * 100, JmsType.STRING) for n in range(5)},
    origins=("b0",),
)


def large(address: str = "queue/q", reply_to: str | None = None) -> Outgoing:
    return replace(numbered(1, address)[0], message=LARGE, reply_to=reply_to)


def long_names(bridge: Bridge) -> list[str]:
    return [each.name for each in (bridge.boxes.root / ".long-names").iterdir()]


@pytest.mark.parametrize("destination", ["queue:q", "topic:t"])
def test_they_come_back_whole(bridge: Bridge, destination: str) -> None:
    source = bridge.source(destination)
    assert outcomes(bridge.sink(), [large(destination)]) == [Outcome(0)]
    (delivery,) = taken(source, 1)
    found = delivery.message
    assert (found.body, found.properties, found.origins) == (LARGE.body, LARGE.properties, LARGE.origins)
    assert {name: found.headers[name] for name in LARGE.headers} == LARGE.headers
    source.acknowledge([delivery.token])


def test_the_name_of_the_file_says_what_fits(bridge: Bridge) -> None:
    queue = bridge.boxes.queue("q")
    outcomes(bridge.sink(), [large(reply_to="queue:back"), numbered(2)[1]])
    first, second = sorted(files(queue / "target"), key=len, reverse=True)
    (message_id,) = long_names(bridge)
    assert first == f"7.{message_id}.T..{message_id}.back.invoice.jmsbridge%2ElongB=true"
    assert second.count(".") == 2
    assert [each.name for each in (queue / "working").iterdir()] == []


def test_a_message_that_comes_again_is_there_once(bridge: Bridge) -> None:
    queue = bridge.boxes.queue("q")
    for _ in range(2):
        outcomes(bridge.sink(), [large()])
    assert len(files(queue)) == len(long_names(bridge)) == 1


def test_the_reply_to_a_request_has_the_correlation_id_of_the_request(bridge: Bridge) -> None:
    outcomes(bridge.sink(), [large(reply_to="queue:back")])
    (message_id,) = long_names(bridge)
    back = bridge.boxes.queue("back")
    unknown = "1" * 16 + "-" + "2" * 21
    bridge.boxes.put(back, {f"4.a.T..{message_id}": b"known", f"4.b.T..{unknown}": b"unknown", "4.c.T..own": b"own"})
    found = {each.message.body: each.message.headers["JMSCorrelationID"] for each in taken(bridge.source("queue:back"))}
    assert found == {b"known": "c" * 300, b"unknown": unknown, b"own": "own"}


def test_what_answers_no_request_keeps_its_correlation_id(bridge: Bridge) -> None:
    outcomes(bridge.sink(), [large()])
    (message_id,) = long_names(bridge)
    bridge.boxes.put(bridge.boxes.queue("back"), {f"4.a.T..{message_id}": b""})
    (delivery,) = taken(bridge.source("queue:back"), 1)
    assert delivery.message.headers["JMSCorrelationID"] == message_id


@pytest.mark.parametrize("what", ["nothing", "link", "pipe", "folder", "other", "damaged"])
def test_a_message_whose_long_name_is_missing_is_a_fault(bridge: Bridge, what: str) -> None:
    queue = bridge.boxes.queue("q")
    outcomes(bridge.sink(), [large()])
    (path,) = (bridge.boxes.root / ".long-names").iterdir()
    content = path.read_text()
    path.unlink()
    if what == "link":
        (bridge.boxes.root / "elsewhere").write_text(content)
        path.symlink_to(bridge.boxes.root / "elsewhere")
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what != "nothing":
        path.write_text(content.replace(path.name, "other") if what == "other" else content[:20])
    source = bridge.source()
    (delivery,) = taken(source, 1)
    assert delivery.fault == "its long name, which has its other headers and properties, is missing"
    assert delivery.message.body == b"0"
    source.acknowledge([delivery.token])
    assert len(files(queue / "error")) == 1


def test_no_correlation_id_leads_out_of_the_folder(bridge: Bridge) -> None:
    outcomes(bridge.sink(), [large(reply_to="queue:back")])
    (message_id,) = long_names(bridge)
    ids = ["../q", f"./{message_id}", f"../.long-names/{message_id}", "/etc/passwd", f"{message_id}\n"]
    names = {f"4.{number}.T..{escape(each)}": b"" for number, each in enumerate(ids)}
    bridge.boxes.put(bridge.boxes.queue("back"), names)
    found = [each.message.headers["JMSCorrelationID"] for each in taken(bridge.source("queue:back"), len(ids))]
    assert sorted(found) == sorted(ids)
