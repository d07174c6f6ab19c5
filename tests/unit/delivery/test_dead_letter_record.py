"""Dead letters that sources and sinks write themselves."""

from __future__ import annotations

from pathlib import Path

from engine.delivery.dead_letter_record import TOO_LARGE, dead_letter, unjournaled
from engine.message import DESTINATION, ORIGIN, POSITION, REPLAYS, ROUTE, Message, Record
from engine.message import SIZE as SIZE_HEADER
from routes import config as configuration
from routes.model import Config
from routes.properties import Property

SIZE = 20 * 1024 * 1024


def config(folder: Path) -> Config:
    file = folder / "b.properties"
    lines = ["bridge.id=b1", "routes.a.in.include=msg.address==x", "routes.a.out.topic=out"]
    lines += ["source.s.type=stomp", "source.s.destinations=queue:x"]
    file.write_text("\n".join(lines))
    return configuration.load(file)


def test_it_keeps_key_headers_and_the_beginning_of_the_body_and_says_what_is_missing(tmp_path: Path) -> None:
    message = Message(b"x" * 100_000, headers={"JMSMessageID": "ID:1"}, properties={"region": Property("emea")})

    record = unjournaled(
        message, TOO_LARGE, "too large for the journal: of 8 bytes", SIZE, "b1", config(tmp_path).tracing
    )

    assert record.key == b"ID:1"
    assert record.value == b"x" * 65536
    assert record.header("jms.region") == "emea"
    assert record.header("jmsbridge.reason") == "too-large"
    assert record.header("jmsbridge.truncated") == str(SIZE)
    assert record.header("jmsbridge.origin") == "b1"
    assert record.header("__connect.errors.stage") == "source"
    assert record.header("__connect.errors.exception.message") == "too large for the journal: of 8 bytes"
    assert (record.header("jmsbridge.time") or "").endswith("Z")


def test_headers_that_are_too_many_are_cut_too(tmp_path: Path) -> None:
    properties = {f"p{n}": Property("v" * 10_000) for n in range(2_000)}
    message = Message(b"", headers={"JMSMessageID": "ID:1"}, properties=properties)

    record = unjournaled(
        message, TOO_LARGE, "too large for the journal: of 8 bytes", SIZE, "b1", config(tmp_path).tracing
    )

    assert record.size < 100_000
    assert record.header("jms.JMSMessageID") == "ID:1"
    assert record.header("jmsbridge.size") is None
    assert record.header("jmsbridge.reason") == "too-large"


def test_that_of_a_sink_keeps_the_message_as_the_journal_had_it_and_says_why_and_where() -> None:
    routed = ((ORIGIN, b"b1"), (POSITION, b"journal:0:7"), (DESTINATION, b"queue/x"), (ROUTE, b"orders"))
    record = Record(b"k", b"v", (("jms.region", b"emea"), *routed, (REPLAYS, b"2")))

    letter = dead_letter(record, "it has no such address", "orders", "artemis")

    assert (letter.key, letter.value) == (b"k", b"v")
    assert letter.headers[:3] == (("jms.region", b"emea"), (ORIGIN, b"b1"), (POSITION, b"journal:0:7"))
    assert letter.header(DESTINATION) is None
    assert letter.header(REPLAYS) == "2"
    assert letter.header("jmsbridge.reason") == "refused"
    assert letter.header(ROUTE) == "orders"
    assert letter.header("__connect.errors.stage") == "sink artemis"
    assert letter.header("__connect.errors.exception.message") == "it has no such address"


def test_that_of_a_sink_is_cut_to_what_its_topic_takes() -> None:
    headers = tuple((f"jms.p{number}", b"v" * 1000) for number in range(300))
    ours = ((SIZE_HEADER, b"500000"), (ORIGIN, b"b1"), (POSITION, b"journal:0:7"), (ROUTE, b"orders"))
    record = Record(b"k", b"x" * 200_000, (*headers, *ours))

    letter = dead_letter(record, "too large", "orders", "nats", limit=100_000)

    assert letter.size < 96_000
    assert letter.key == b"k"
    assert letter.value == b"x" * 25_000
    assert letter.headers[0] == headers[0]
    assert letter.header(POSITION) == "journal:0:7"
    assert letter.header(ORIGIN) == "b1"
    assert letter.header(SIZE_HEADER) is None
    assert letter.header("jmsbridge.truncated") == str(record.size)
    assert letter.header("jmsbridge.reason") == "refused"
    assert dead_letter(record, "x", "orders", "nats", limit=1_000_000).value == record.value
