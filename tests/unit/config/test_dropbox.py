"""What lint says of sources and sinks of type dropbox, and what they are once read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.connectors.dropbox.settings import FileWatch, Processed
from routes.config import lint_text, loads
from routes.systems import system_named

START = """\
bridge.id=b
source.s.type=dropbox
source.s.destinations=queue:q
sink.d.type=dropbox
routes.r.in.include=msg.address==q
routes.r.out.topic=d:queue/q
"""


def fault(*lines: str, base: Path = Path()) -> str:
    (only,) = lint_text(START + "\n".join(lines), base).faults
    return str(only).partition("\n")[0].partition("error: ")[2]


def test_what_holds_without_any_key(tmp_path: Path) -> None:
    config = loads(START, tmp_path)
    (source,), (sink,) = config.sources, config.sinks
    assert (source.watch, source.scan_interval_seconds, source.processed) == (FileWatch.INOTIFY, 1.0, Processed.KEEP)
    assert source.subscription == "s"
    assert config.root(source) == config.root(sink) == tmp_path / "var" / "dropbox"
    assert config.url(source) == f"dropbox://{tmp_path}/var/dropbox"
    assert config.sink_beside("s") is sink


def test_all_keys(tmp_path: Path) -> None:
    lines = """
        source.s.root=spool
        source.s.watch=scan
        source.s.scan-interval=250ms
        source.s.processed=delete
        source.s.subscription=sub
        source.s.destinations=queue:q, topic:prices.eu
        source.s.workers=3
        source.s.client-id=b-1
        sink.d.root=/srv/dropbox
    """
    config = loads(START.replace("source.s.destinations=queue:q\n", "") + lines, tmp_path)
    (source,), (sink,) = config.sources, config.sinks
    assert (source.watch, source.scan_interval_seconds, source.processed) == (FileWatch.SCAN, 0.25, Processed.DELETE)
    assert (source.subscription, source.client_id, source.workers) == ("sub", "b-1", 3)
    assert config.root(source) == tmp_path / "spool"
    assert config.root(sink) == Path("/srv/dropbox")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("source.s.url=nats://h:4222", "'source.s.url' is for type stomp, amqp or nats, not dropbox (remove the line)"),
        ("sink.d.username=u", "'sink.d.username' is for type stomp, amqp, jms or nats, not dropbox (remove the line)"),
        ("sink.d.heartbeat=1s", "'sink.d.heartbeat' is for type stomp, amqp or nats, not dropbox (remove the line)"),
        ("sink.d.tls.ca=x.pem", "'sink.d.tls.ca' is for type stomp, amqp or nats, not dropbox (remove the line)"),
        (
            "source.s.tls.verify=false",
            "'source.s.tls.verify' is for type stomp, amqp or nats, not dropbox (remove the line)",
        ),
        ("source.s.token=secret-token", "'source.s.token' is for type nats, not dropbox (remove the line)"),
        (
            "source.s.selector=a = 1",
            "'source.s.selector' is for type stomp, amqp or jms, not dropbox (remove the line)",
        ),
        ("source.s.watch=poll", "'poll' is not inotify or scan"),
        ("source.s.scan-interval=1", "'1' is not a time from 10ms to 10m with its unit: ms, s, m, h or d"),
        ("source.s.scan-interval=0s", "'0s' is not a time from 10ms to 10m with its unit: ms, s, m, h or d"),
        ("source.s.processed=deleted", "'deleted' is not keep or delete (did you mean delete?)"),
        ("source.s.root=", "the value is empty (remove the line if nothing is to be set)"),
        ("sink.d.watch=scan", "unknown key 'sink.d.watch'"),
        (
            "sink.d.reply-to=topic-root",
            "'topic-root' is not a place for replies, queue/NAME (as in queue:bridge.replies)",
        ),
        ("source.s.subscription=x", "a durable subscription of no topic"),
        ("embedded=off\nkafka.bootstrap.servers=h:1\nsource.s.root=a", "'off' leaves no folder for sink 'd'"),
    ],
)
def test_wrong_input_is_a_fault(line: str, expected: str) -> None:
    assert fault(line).startswith(expected)


@pytest.mark.parametrize(
    "name", ["orders", "queue:", "queue:a/b", "queue:..", "topic:a..b", "topic:.a", "queue:topic-root"]
)
def test_a_destination_is_one_folder(name: str) -> None:
    (found,) = lint_text(START.replace("queue:q", name)).faults
    assert found.message == f"'{name}' is not a dropbox"
    assert found.hint == "as in queue:orders or topic:prices.eu; a name holds no '/' and begins with no '.'"


def test_a_root_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "spool").touch()
    assert fault("sink.d.root=spool", base=tmp_path) == "'spool' is a file (name the folder of the dropboxes)"


def test_keys_of_dropboxes_are_for_no_other_type() -> None:
    lines = START.replace("type=dropbox", "type=stomp") + "source.s.root=a\nsource.s.watch=scan\nsink.d.root=b\n"
    assert [found.message for found in lint_text(lines).faults] == [
        "'source.s.root' is for type dropbox, not stomp",
        "'source.s.watch' is for type dropbox, not stomp",
        "'sink.d.root' is for type dropbox, not stomp",
    ]


@pytest.mark.parametrize(
    ("address", "valid"),
    [
        ("queue/orders", True),
        ("queue:orders", True),
        ("/queue/orders", True),
        ("orders", True),
        ("orders.eu 1", True),
        ("topic", True),
        ("topic/prices", True),
        ("topic:prices.eu", True),
        ("", False),
        ("queue/", False),
        ("queue/.", False),
        ("queue/..", False),
        ("../orders", False),
        ("queue/a/b", False),
        ("queue/.hidden", False),
        ("queue/a\0", False),
        ("queue/a\nb", False),
        ("queue/topic-root", False),
        ("dropboxmq", False),
        ("topic/a..b", False),
        ("topic/.subscriptions", False),
        ("topic/a/b", False),
        ("topic/", False),
        ("queue/topic/a", False),
    ],
)
def test_no_address_leads_out_of_the_root(address: str, valid: bool) -> None:
    assert (re.fullmatch(system_named("dropbox").addresses.pattern, address) is not None) is valid
