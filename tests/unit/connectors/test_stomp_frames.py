"""The STOMP frame parser: any cut of the stream, limits, and what is not STOMP."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.stomp.frames import StompFrame, StompFrameError, StompFrameParser, escape
from engine.connectors.stomp.sink import _number

LIMIT = 1000
KEPT = 100


def parse(*pieces: bytes, limit: int = LIMIT, kept: int = KEPT) -> list[StompFrame]:
    parser = StompFrameParser(limit, kept)
    return [frame for piece in pieces for frame in parser.feed(piece)]


def message(body: bytes, *headers: tuple[str, str], length: bool = True, eol: str = "\n") -> bytes:
    lines = ["MESSAGE", *(f"{escape(name)}:{escape(value)}" for name, value in headers)]
    if length:
        lines.append(f"content-length:{len(body)}")
    return (eol.join(lines) + eol * 2).encode() + body + b"\0"


def test_a_text_frame_ends_at_the_first_nul() -> None:
    (frame,) = parse(b"MESSAGE\na:1\n\nhello\0\n")

    assert frame == StompFrame("MESSAGE", {"a": "1"}, b"hello", 5)


def test_a_frame_with_a_length_may_contain_nul_and_newlines() -> None:
    body = b"\0\n\n\0MESSAGE\n\n\0"

    assert [frame.body for frame in parse(message(body) + message(b""))] == [body, b""]


@pytest.mark.parametrize("beats", [b"\n", b"\n\n", b"\n\n\n\n", b"\r\n\r\n"])
def test_heart_beats_before_between_and_after_frames_are_passed_over(beats: bytes) -> None:
    stream = beats + message(b"one") + beats + message(b"two", length=False) + beats

    assert [frame.body for frame in parse(stream)] == [b"one", b"two"]


def test_lines_may_end_with_carriage_return_and_newline() -> None:
    (frame,) = parse(message(b"\r\n\r\nbody\n\n", ("a", "1"), eol="\r\n"))

    assert frame.headers == {"a": "1", "content-length": "10"}
    assert frame.body == b"\r\n\r\nbody\n\n"


def test_escapes_are_undone_in_names_and_values() -> None:
    (frame,) = parse(rb"MESSAGE" b"\n" rb"n\cam\\e:li\nne\r\c\\n\\" b"\n\n\0")

    assert frame.headers == {"n:am\\e": "li\nne\r:\\n\\"}
    assert frame.fault is None


def test_an_unknown_escape_stays_as_it_is() -> None:
    (frame,) = parse(b"MESSAGE\na:x\\ty\\\n\n\0")

    assert frame.headers == {"a": "x\\ty\\"}


def test_connected_is_not_unescaped() -> None:
    (frame,) = parse(b"CONNECTED\nserver:a\\nb\n\n\0")

    assert frame.headers == {"server": "a\\nb"}


def test_of_repeated_headers_the_first_counts() -> None:
    (frame,) = parse(b"MESSAGE\na:1\na:2\nb:3\n\n\0")

    assert frame.headers == {"a": "1", "b": "3"}


def test_a_value_may_be_empty_or_have_colons_and_spaces() -> None:
    (frame,) = parse(b"MESSAGE\na:\nb: x:y \n\n\0")

    assert frame.headers == {"a": "", "b": " x:y "}


def test_bytes_that_are_no_utf8_in_a_header_do_not_hurt() -> None:
    (frame, after) = parse(b"MESSAGE\nn\xffame:v\xe9\n\nbody\xff\0" + message(b"next"))

    assert frame.headers == {"n�ame": "v�"}
    assert frame.body == b"body\xff"
    assert after.body == b"next"


@pytest.mark.parametrize(
    ("stream", "says"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n\0", "'HTTP/1.1 400 Bad Request', which is not a STOMP command"),
        (b"MESSAGE\ncontent-length:2000\n\n" + b"x" * 2001, "a body that does not end after its 2000 bytes"),
        (b"MESSAGE\na:" + b"x" * 2_000_000, "a frame with more than 1048576 bytes of headers"),
    ],
    ids=[
        "other protocol",
        "wrong length of a body that is too large to keep",
        "endless headers",
    ],
)
def test_what_is_not_stomp_is_reported(stream: bytes, says: str) -> None:
    with pytest.raises(StompFrameError) as caught:
        parse(stream)

    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("head", "body", "says"),
    [
        (b"no colon", b"body", "a header line without a colon: 'no colon'"),
        (b"fonts:Arial\r\nBold\r", b"body", "a header line without a colon: 'Bold'"),
        (b"content-length:4\nno colon", b"bo\0y", "a header line without a colon: 'no colon'"),
        (b"content-length:3\x1c", b"body", "a content-length that is not a number: '3\\x1c'"),
        (b"content-length:ten", b"body", "a content-length that is not a number: 'ten'"),
        (b"content-length:-1", b"body", "a content-length that is not a number: '-1'"),
        (b"content-length:99999999999999999999", b"", "a content-length that is not a number: '99999999999999999999'"),
        (b"content-length:2", b"body", "a body that does not end after its 2 bytes"),
        (b"content-length:7", b"body", "a body that does not end after its 7 bytes"),
        (b"a:x\\ty", b"body", r"a header line with an unknown escape: 'a:x\\ty'"),
        (b"a:x\\\\\\", b"body", r"a header line with an unknown escape: 'a:x\\\\\\'"),
        (b"a:v\xe9", b"body", "a header line that is not UTF-8: 'a:v\ufffd'"),
    ],
)
@pytest.mark.parametrize("step", [1, 3, 10**9])
def test_what_is_not_stomp_within_a_frame_is_a_fault_of_that_frame_alone(
    head: bytes, body: bytes, says: str, step: int
) -> None:
    stream = b"MESSAGE\nack:1\n" + head + b"\n\n" + body + b"\0\n" + message(b"next")

    frame, after = parse(*(stream[n : n + step] for n in range(0, len(stream), step)))

    assert (frame.headers["ack"], frame.body, frame.size, frame.fault) == ("1", body, len(body), says)
    assert (after.body, after.fault) == (b"next", None)


@pytest.mark.parametrize("length", [True, False], ids=["with length", "without length"])
@pytest.mark.parametrize("size", [LIMIT, LIMIT + 1, LIMIT * 50])
@pytest.mark.parametrize("step", [1, 7, KEPT, LIMIT, 10 * LIMIT, 10**9])
def test_of_a_body_over_the_limit_only_the_beginning_is_kept(length: bool, size: int, step: int) -> None:
    body = bytes(65 + n % 26 for n in range(size))
    stream = message(body, length=length) + message(b"next")

    frame, after = parse(*(stream[n : n + step] for n in range(0, len(stream), step)))

    assert frame.size == size
    assert frame.body == (body if size <= LIMIT else body[:KEPT])
    assert after.body == b"next"


def test_a_body_that_is_promised_but_never_comes_takes_no_memory() -> None:
    parser = StompFrameParser(LIMIT, KEPT)

    frames = [*parser.feed(b"MESSAGE\ncontent-length:999999999999\n\n"), *parser.feed(b"x" * 10_000_000)]

    assert frames == []
    assert parser._partial is not None
    assert parser._partial._held == KEPT


headers_ = st.lists(st.tuples(st.text(min_size=1, max_size=12), st.text(max_size=30)), max_size=5)
frames_ = st.lists(st.tuples(headers_, st.binary(max_size=200)), min_size=1, max_size=4)


@given(frames_, st.data())
def test_any_cut_of_the_stream_gives_the_same_frames(frames: list, data: st.DataObject) -> None:
    sent = [([(n, v) for n, v in headers if n != "content-length"], body) for headers, body in frames]
    stream = b"".join(message(body, *headers) + b"\n" for headers, body in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    got = parse(*pieces)

    assert [frame.body for frame in got] == [body for _, body in sent]
    for frame, (headers, _) in zip(got, sent, strict=True):
        expected: dict[str, str] = {}
        for name, value in headers:
            expected.setdefault(name.encode("utf-8", "replace").decode(), value.encode("utf-8", "replace").decode())
        assert {name: value for name, value in frame.headers.items() if name != "content-length"} == expected


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_noise_is_refused_or_waited_for_but_never_breaks_the_parser(pieces: list[bytes]) -> None:
    parser = StompFrameParser(LIMIT, KEPT)
    try:
        for piece in [b"MESSAGE\n", *pieces]:
            for frame in parser.feed(piece):
                assert frame.command in ("CONNECTED", "MESSAGE", "RECEIPT", "ERROR")
    except StompFrameError:
        return


@pytest.mark.parametrize(
    ("text", "number"), [("7", 7), ("", -1), ("x", -1), ("-1", -1), ("\u0663", -1), ("9" * 5000, -1)]
)
def test_a_receipt_that_names_no_message_is_for_none(text: str, number: int) -> None:
    assert _number(StompFrame("RECEIPT", {"receipt-id": text}, b"", 0)) == number
