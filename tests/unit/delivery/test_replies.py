"""The way back of replies: tokens, what becomes a request, and what is counted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from engine.connectors.base import Delivery
from engine.connectors.nats import json_frame, typed_frame
from engine.connectors.nats.header_frame import HeaderFrame
from engine.connectors.nats.message import IncomingMessage, reply_format, to_message, to_wire
from engine.connectors.nats.settings import WireFormat
from engine.delivery import replies
from engine.delivery.replies import ReplySource, Requests, ReturnAddress
from engine.message import Message
from engine.telemetry.meters import SinkMetrics
from routes.config import loads
from routes.properties import JmsType, Property
from routes.targets import REPLY_FORMAT, REPLY_SINK, REPLY_TO, REQUEST_FORMAT

CONFIG = loads("""
bridge.id=b1
routes.a.in.include=TRUE
routes.a.out.topic=out
source.nats.type=nats
source.nats.destinations=a.>
source.jms.type=stomp
source.jms.destinations=queue:q
source.far.type=stomp
source.far.url=stomp://127.0.0.1:1
source.far.destinations=queue:q
source.topics.type=kafka
source.topics.destinations=in
sink.nats.type=nats
sink.nats.reply-to=bridge.replies
sink.jms.type=stomp
sink.jms.reply-to=queue:bridge.replies
sink.silent.type=stomp
sink.silent.url=stomp://127.0.0.1:2
""")
SINKS = {sink.name: sink for sink in CONFIG.sinks}


def requests(sink: str, worker: int = 1, timeout: float = 30.0) -> tuple[Requests, CollectorRegistry]:
    registry = CollectorRegistry()
    own = replace(SINKS[sink], reply_timeout_seconds=timeout)
    return Requests(CONFIG, own, worker, SinkMetrics(registry, sink, sink)), registry


def asked(source: str, reply_to: str | None = "topic:_INBOX.1", **headers: str) -> Message:
    fields = {**headers, **({"JMSReplyTo": reply_to} if reply_to else {})}
    return Message(b"?", headers={"JMSMessageID": "ID:1", **fields}, source=source)


def count(registry: CollectorRegistry, what: str, sink: str) -> float | None:
    return registry.get_sample_value(f"jmsbridge_sink_{what}_total", {"sink": sink})


@given(
    st.text(), st.text(), st.none() | st.text(), st.integers(0, 1 << 50), st.none() | st.sampled_from(list(WireFormat))
)
def test_a_token_is_safe_everywhere_and_read_as_it_was_written(
    sink: str, address: str, correlation_id: str | None, deadline: int, form: WireFormat | None
) -> None:
    given_ = [
        None if text is None else text.encode("utf-8", "replace").decode() for text in (sink, address, correlation_id)
    ]
    token = ReturnAddress(sink, address, correlation_id, deadline, form).encode()
    assert re.fullmatch(r"jb1-[A-Za-z0-9_-]+", token)
    assert ReturnAddress.decode(token) == ReturnAddress(given_[0] or "", given_[1] or "", given_[2], deadline, form)


def test_a_token_of_an_earlier_version_is_read() -> None:
    token = "jb1-WyJuYXRzIiwiX0lOQk9YLjEiLCJjIiw1XQ"  # ["nats","_INBOX.1","c",5]
    assert ReturnAddress.decode(token) == ReturnAddress("nats", "_INBOX.1", "c", 5)
    assert ReturnAddress("nats", "_INBOX.1", "c", 5).encode() == token


@given(st.none() | st.text() | st.text(alphabet="AZaz09_-").map("jb1-".__add__))
def test_what_is_no_token_is_none(text: str | None) -> None:
    assert ReturnAddress.decode(text) is None or (text or "").startswith("jb1-")


@pytest.mark.parametrize(
    "token",
    [
        "jb1-",
        "jb1-e30",
        "jb1-WzEsMiwzLDRd",
        "jb1-WyJhIiwiYiIsImMiLDQsNV0",
        "jb1-" + "W" * 10_000,
        "jb1-\xff",
        "ID:1",
        "",
    ],
)
def test_what_only_looks_like_a_token_is_none(token: str) -> None:
    assert ReturnAddress.decode(token) is None


def test_a_request_to_another_system_carries_where_its_reply_goes() -> None:
    to_jms, registry = requests("jms")
    message, reply_to = to_jms.outgoing(asked("nats"))
    assert reply_to == "queue:bridge.replies"
    found = ReturnAddress.decode(message.headers["JMSCorrelationID"])
    assert found is not None
    assert (found.sink, found.address, found.correlation_id) == ("nats", "topic:_INBOX.1", "ID:1")
    assert count(registry, "requests", "jms") == 1

    message, reply_to = requests("nats", worker=2)[0].outgoing(asked("jms", "queue:tmp", JMSCorrelationID="c"))
    assert message.headers["JMSCorrelationID"] == "c"
    prefix, _, token = (reply_to or "").rpartition(".")
    found = ReturnAddress.decode(token)
    assert prefix == "bridge.replies.2"
    assert found is not None
    assert (found.sink, found.address, found.correlation_id) == ("jms", "queue:tmp", "c")


@pytest.mark.parametrize(
    ("sink", "source", "expected"),
    [
        ("jms", "jms", "queue:r"),  # The same broker: the service answers by itself.
        ("silent", "far", "queue:r"),  # A broker of the same kind may know it.
        ("silent", "nats", None),  # No reply-to.
        ("nats", "far", None),  # No sink leads back.
        ("nats", "unknown", None),
    ],
)
def test_other_requests_keep_their_own_reply_address_or_have_none(sink: str, source: str, expected: str | None) -> None:
    made, registry = requests(sink)
    request = asked(source, "queue:r", JMSCorrelationID="c")
    assert made.outgoing(request) == (request, expected)
    assert made.outgoing(asked(source, None)) == (asked(source, None), None)
    assert count(registry, "requests", sink) == 0


def test_a_reply_of_one_system_can_itself_be_a_request() -> None:
    made, _ = requests("nats")
    _, reply_to = made.outgoing(asked("jms.replies", "queue:tmp"))
    assert reply_to is not None
    assert reply_to.startswith("bridge.replies.jb1-")


def test_what_is_not_answered_in_time_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000
    monkeypatch.setattr(replies, "_now_ms", lambda: now)
    made, registry = requests("jms", timeout=2.0)
    tokens = [made.outgoing(asked("nats", f"_INBOX.{n}"))[0].headers["JMSCorrelationID"] for n in range(3)]
    made.answered(tokens[1])
    now += 1999
    made.count_timeouts()
    assert count(registry, "request_timeouts", "jms") == 0
    now += 1
    made.count_timeouts()
    made.count_timeouts()
    assert count(registry, "request_timeouts", "jms") == 2
    made.answered(tokens[0])
    assert count(registry, "replies", "jms") == 2


class OneDelivery:
    """A source with one message."""

    address = "here"

    def __init__(self, message: Message) -> None:
        self._message = message

    def receive(self, _: float) -> Delivery | None:
        return Delivery(self._message, "token")

    def connect(self) -> None: ...

    def acknowledge(self, tokens: object) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("sink", "field", "prefix"), [("jms", "JMSCorrelationID", ""), ("nats", "JMSDestination", "topic:bridge.replies.")]
)
def test_a_reply_is_sent_to_who_asked_with_what_they_know_it_by(sink: str, field: str, prefix: str) -> None:
    made, registry = requests(sink)
    token = ReturnAddress("other", "queue:tmp", "c", 1).encode()
    headers = {"JMSMessageID": "ID:2", field: prefix + token}
    reply = Message(b"!", headers=headers, properties={"x": Property("1")}, origins=("b1",))
    delivery = ReplySource(OneDelivery(reply), SINKS[sink], made).receive(0)
    assert delivery is not None
    assert delivery.token == "token"
    message = delivery.message
    assert (message.lookup(REPLY_SINK), message.lookup("x")) == (
        Property("other", message.properties[REPLY_SINK].type),
        Property("1"),
    )
    assert message.properties[REPLY_TO].text == "queue:tmp"
    assert message.headers["JMSCorrelationID"] == "c"
    assert message.origins == ()
    assert count(registry, "replies", sink) == 1


@pytest.mark.parametrize("form", ["json", "typed", None])
def test_a_reply_takes_the_format_of_its_request_through_the_service(form: str | None) -> None:
    made, _ = requests("jms")
    properties = {} if form is None else {REQUEST_FORMAT: Property(form, JmsType.STRING)}
    request, _ = made.outgoing(replace(asked("nats"), properties=properties))
    reply = Message(b"!", headers={"JMSCorrelationID": request.headers["JMSCorrelationID"]})
    delivery = ReplySource(OneDelivery(reply), SINKS["jms"], made).receive(0)
    assert delivery is not None
    found = delivery.message.properties.get(REPLY_FORMAT)
    assert (found and found.text) == form


@pytest.mark.parametrize(
    ("payload", "wire", "read"),
    [
        (json_frame.encode(HeaderFrame(b"?")), WireFormat.AUTO, json_frame.decode),
        (typed_frame.encode(HeaderFrame(b"?")), WireFormat.AUTO, typed_frame.decode),
        (
            typed_frame.encode(HeaderFrame(b"?"), typed_frame.CODES_1_0),
            WireFormat.TYPED_1_0,
            lambda data: typed_frame.decode(data, typed_frame.CODES_1_0),
        ),
        (b"?", WireFormat.AUTO, HeaderFrame),
        (b"?", WireFormat.RAW, HeaderFrame),
    ],
    ids=["json", "typed", "typed-1.0", "plain", "raw"],
)
def test_all_requesters_of_one_server_have_replies_in_their_own_format(
    payload: bytes, wire: WireFormat, read: Callable[[bytes], HeaderFrame]
) -> None:
    made, _ = requests("jms")
    incoming = IncomingMessage("a.b", "_INBOX.1", b"", payload)
    asked_, _ = to_message(incoming, None, wire, "nats", lambda: ("ID:1", 1))
    # Both go through the journal and the topic of a sink.
    request, _ = made.outgoing(Message.from_record(asked_.to_record()))
    reply = Message(b"!", headers={"JMSCorrelationID": request.headers["JMSCorrelationID"], "JMSPriority": "7"})
    delivery = ReplySource(OneDelivery(reply), SINKS["jms"], made).receive(0)
    assert delivery is not None
    back = Message.from_record(delivery.message.to_record())
    assert back.properties[REPLY_TO].text == "topic:_INBOX.1"
    form = reply_format(back)
    assert form is not None
    block, answer = to_wire(back, form, "id")
    found = read(answer)
    assert found.body == b"!"
    assert ("BRIDGE_priority" in found.headers) is (payload != b"?")
    assert (b"JMSPriority" in block) is (payload == b"?" and wire is WireFormat.AUTO)


def test_a_service_that_sends_the_request_back_as_it_is_asks_for_no_reply() -> None:
    made, _ = requests("jms")
    headers = {"JMSCorrelationID": ReturnAddress("nats", "a", None, 1).encode(), "JMSReplyTo": "queue:bridge.replies"}
    delivery = ReplySource(OneDelivery(Message(b"!", headers=headers)), SINKS["jms"], made).receive(0)
    assert delivery is not None
    assert delivery.message.headers == {"JMSExpiration": "1"}


@pytest.mark.parametrize(
    ("deadline", "own", "expected"),
    [
        (5_000, None, "5000"),
        (5_000, "0", "5000"),
        (5_000, "4000", "4000"),
        (5_000, "6000", "5000"),
        # Who writes a token by hand may write any number.
        (0, "6000", "6000"),
        (-1, None, None),
        (10**30, None, None),
    ],
)
def test_a_reply_expires_when_its_request_times_out(deadline: int, own: str | None, expected: str | None) -> None:
    made, _ = requests("jms")
    headers = {"JMSCorrelationID": ReturnAddress("nats", "a", None, deadline).encode()}
    reply = Message(b"!", headers=headers | ({"JMSExpiration": own} if own else {}))
    delivery = ReplySource(OneDelivery(reply), SINKS["jms"], made).receive(0)
    assert delivery is not None
    assert delivery.message.headers.get("JMSExpiration") == expected


def test_what_comes_to_the_reply_address_without_a_token_is_a_message_like_any() -> None:
    made, _ = requests("jms")
    message = Message(b"!", headers={"JMSCorrelationID": "mine"})
    delivery = ReplySource(OneDelivery(message), SINKS["jms"], made).receive(0)
    assert delivery == Delivery(message, "token")


def test_the_reply_address_of_a_record_from_kafka_goes_on_as_it_is() -> None:
    message = asked("topics", "queue:replies", JMSCorrelationID="c")
    assert requests("jms")[0].outgoing(message) == (message, "queue:replies")


@pytest.mark.parametrize(
    ("sink", "source", "reply_to"),
    [
        ("nats", "jms", "queue:activemq.management"),  # The reply would go there through the bridge.
        ("jms", "jms", "queue:activemq.management"),  # The service would send it there.
        ("silent", "far", "queue:$sys.mqtt"),
        ("jms", "nats", "topic:$JS.API.STREAM.DELETE.orders"),
        ("jms", "topics", "queue:activemq.management"),
    ],
)
def test_a_request_for_a_reply_to_a_servers_own_address_goes_on_as_none(sink: str, source: str, reply_to: str) -> None:
    made, registry = requests(sink)
    message, back = made.outgoing(asked(source, reply_to, JMSCorrelationID="c"))
    assert back is None
    assert message == asked(source, None, JMSCorrelationID="c")
    assert count(registry, "requests", sink) == 0


@pytest.mark.parametrize(
    ("to", "address"), [("jms", "queue:activemq.management"), ("nats", "topic:$SYS.x"), ("nats", "no subject")]
)
def test_a_made_up_token_leads_to_no_address_of_a_server(to: str, address: str) -> None:
    made, registry = requests("jms")
    message = Message(b"!", headers={"JMSCorrelationID": ReturnAddress(to, address, None, 1).encode()})
    assert ReplySource(OneDelivery(message), SINKS["jms"], made).receive(0) == Delivery(message, "token")
    assert count(registry, "replies", "jms") == 0
