"""Ten times what docs/security.md allows for bytes and messages of other systems, and the next ordinary input."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain

import pytest
from nats.errors import ProtocolError

from engine.connectors.amqp.codec.decoding import MOST_DEPTH
from engine.connectors.amqp.codec.sections import VALUE, Sections, encode_sections
from engine.connectors.amqp.codec.values import AmqpMap
from engine.connectors.amqp.frames import MAX_FRAME_BYTES, AmqpFrameError, AmqpFrameParser, frame
from engine.connectors.amqp.transformers import TransformError
from engine.connectors.base import Outcome, RefusedError
from engine.connectors.dropbox import message as dropbox_message
from engine.connectors.dropbox.file_name import LONGEST_BYTES
from engine.connectors.dropbox.message import to_filename
from engine.connectors.nats import message as nats_message
from engine.connectors.nats.headers import pack
from engine.connectors.nats.settings import WireFormat
from engine.connectors.stomp.frames import StompFrameError, StompFrameParser
from engine.connectors.stomp.message import to_message as stomp_message
from engine.connectors.stomp.traits import SPECIFICATION
from engine.limits import MOST_HEADERS, excess
from engine.message import Message
from routes.properties import Property
from tests.fuzz.targets import transformers
from tests.unit.connectors.conftest import bridge as bridge
from tests.unit.connectors.dropbox_bridge import Bridge, numbered, outcomes
from tests.unit.connectors.test_dropbox_message import message as message_of_file
from tests.unit.connectors.test_dropbox_message import outgoing
from tests.unit.connectors.test_hostile_frames import at_most
from tests.unit.connectors.test_nats_protocol import line, parsed

MIB = 1024 * 1024


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fails where more processor time was used inside."""
    begun = time.process_time()
    yield
    assert time.process_time() - begun < seconds


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def test_an_amqp_frame_of_10_mib_is_refused_by_its_first_bytes() -> None:
    declared = (10 * MAX_FRAME_BYTES).to_bytes(4) + b"\x02\0\0\0"
    told = "a frame of 10485760 bytes whose body begins at 8; at most 1048576 bytes are taken"
    readers: list[Callable[[AmqpFrameParser], object]] = [
        lambda parser: list(parser.feed(declared)),
        lambda parser: parser.one(declared),
    ]
    for read in readers:
        with at_most(100_000), pytest.raises(AmqpFrameError, match=told):
            read(AmqpFrameParser())
    assert list(AmqpFrameParser().feed(frame(0, b"next"))) == [(0, 0, b"next")]


def test_an_amqp_message_with_a_value_640_deep_is_rejected_alone() -> None:
    reading, _ = transformers()
    nested = b"\0\x40" * 10 * MOST_DEPTH + b"\x40"
    with pytest.raises(TransformError, match="nested deeper than 64"):
        reading.to_message(b"\0\x53\x77" + nested, 0, "queue:a", "s")
    good = encode_sections(Sections(body=VALUE, content="next"))
    assert reading.to_message(good, 0, "queue:a", "s").body == b"next"


def test_stomp_headers_of_10_mib_in_small_pieces_end_the_connection() -> None:
    head = b"MESSAGE\n" + b"a:b\n" * (10 * MIB // 4)
    parser = StompFrameParser(64 * 1024, 1024)
    told = "a frame with more than 1048576 bytes of headers"
    with within(5), at_most(16 * MIB), pytest.raises(StompFrameError, match=told):
        list(chain.from_iterable(map(parser.feed, pieces(head, 1024))))
    assert [found.body for found in StompFrameParser(MIB, MIB).feed(b"MESSAGE\n\nnext\0")] == [b"next"]


@pytest.mark.parametrize("end", [b"\n\0", b"\r\n\0"])
def test_stomp_headers_in_single_bytes_take_time_in_proportion(end: bytes) -> None:
    stream = b"MESSAGE\n" + b"a:b\n" * 25_000 + end + b"\nMESSAGE\n\nnext\0"
    parser = StompFrameParser(64 * 1024, 1024)
    # 30 s before, when each piece was searched and copied from the beginning of the headers.
    with within(5):
        first, after = (found for piece in pieces(stream, 1) for found in parser.feed(piece))
    assert (first.headers, after.body) == ({"a": "b"}, b"next")


def test_a_nats_line_of_10_mib_in_small_pieces_ends_the_connection() -> None:
    sent = list(pieces(b"MSG " + b"a" * 10 * MIB, 1024))
    with within(5), at_most(8 * MIB), pytest.raises(ProtocolError):
        parsed(*sent)
    assert parsed(line(b"a", b"", b"", b"next"))[0] == [(b"a", b"", b"", b"next")]


def test_a_nats_line_in_single_bytes_takes_time_in_proportion() -> None:
    subject = b"a" * 100_000
    # 6 s before, as above.
    with within(4):
        found, _ = parsed(*pieces(line(subject, b"", b"", b"x") + line(b"b", b"", b"", b"next"), 1))
    assert found == [(subject, b"", b"", b"x"), (b"b", b"", b"", b"next")]


@pytest.mark.parametrize("size", [10 * 128 * MIB, 1 << 40])
def test_a_nats_message_of_ten_times_the_limit_is_refused_by_its_line(size: int) -> None:
    with at_most(1_000_000), pytest.raises(ProtocolError):
        parsed(b"MSG a 7 %d\r\n" % size)


def amqp(count: int) -> Message:
    pairs = AmqpMap([(f"p{number}", number) for number in range(count)])
    reading, _ = transformers()
    encoded = encode_sections(Sections(application_properties=pairs, body=VALUE, content="x"))
    found: Message = reading.to_message(encoded, 0, "queue:a", "s")
    return found


def stomp(count: int) -> Message:
    head = "".join(f"p{number}:{number}\n" for number in range(count))
    (found,) = StompFrameParser(MIB, MIB).feed(f"MESSAGE\n{head}\nx\0".encode())
    return stomp_message(found, "queue", "s", SPECIFICATION)


def nats(count: int) -> Message:
    block = pack([(f"p{number}", str(number)) for number in range(count)])
    incoming = nats_message.IncomingMessage("a.b", "", block, b"x")
    return nats_message.to_message(incoming, None, WireFormat.AUTO, "s", lambda: ("ID:1", 1))[0]


def dropbox(count: int) -> Message:
    found = to_filename(outgoing(Message(properties={f"p{number}": Property(str(number)) for number in range(count)})))
    return message_of_file(found.long or found.text)


@pytest.mark.parametrize("made", [amqp, stomp, nats, dropbox])
def test_a_message_of_any_system_with_10_000_headers_is_taken_for_unreadable(made: Callable[[int], Message]) -> None:
    with within(5):
        told = excess(made(10 * MOST_HEADERS))
    assert told is not None
    assert told.startswith("it has 10,0")
    assert told.endswith(" headers; a message may have 1,000")
    assert excess(made(MOST_HEADERS)) is None


def test_a_file_name_of_ten_times_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # A tenth of the real limit, for the time and memory of the test.
    monkeypatch.setattr(dropbox_message, "_MOST_BYTES", 16 * MIB // 10)
    with within(10), pytest.raises(RefusedError, match=r"have [0-9]+ bytes in a name, more than 1677721$"):
        to_filename(outgoing(Message(properties={"x": Property("y" * 16 * MIB)})))
    assert to_filename(outgoing(Message(b"next"))).long is None


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_folder_with_a_name_of_2550_bytes_is_refused_and_holds_up_no_other(bridge: Bridge, kind: str) -> None:
    sink = bridge.sink()
    address = f"{kind}/{'n' * 10 * LONGEST_BYTES}"
    (refused,) = outcomes(sink, numbered(1, address))
    told = "is not a dropbox; expected queue/NAME, topic/NAME or the NAME of a queue"
    assert refused.refusal == f"{address[:100]!r} {told}"
    assert outcomes(sink, numbered(1)) == [Outcome(0)]
