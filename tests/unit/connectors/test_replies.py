"""The way back of replies: tokens, what becomes a request, and what is counted."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from engine.connectors import replies
from engine.connectors.base import Delivery
from engine.connectors.replies import ReplySource, Requests, ReturnAddress
from engine.message import Message
from engine.telemetry.meters import SinkMetrics
from routes.config import loads
from routes.properties import Property
from routes.targets import REPLY_SINK, REPLY_TO

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


@given(st.text(), st.text(), st.none() | st.text(), st.integers(0, 1 << 50))
def test_a_token_is_safe_everywhere_and_read_as_it_was_written(
    sink: str, address: str, correlation_id: str | None, deadline: int
) -> None:
    given_ = [
        None if text is None else text.encode("utf-8", "replace").decode() for text in (sink, address, correlation_id)
    ]
    token = ReturnAddress(sink, address, correlation_id, deadline).encode()
    assert re.fullmatch(r"jb1-[A-Za-z0-9_-]+", token)
    assert ReturnAddress.decode(token) == ReturnAddress(given_[0] or "", given_[1] or "", given_[2], deadline)


@given(st.none() | st.text() | st.text(alphabet="AZaz09_-").map("jb1-".__add__))
def test_what_is_no_token_is_none(text: str | None) -> None:
    assert ReturnAddress.decode(text) is None or (text or "").startswith("jb1-")


@pytest.mark.parametrize(
    "token", ["jb1-", "jb1-e30", "jb1-WzEsMiwzLDRd", "jb1-" + "W" * 10_000, "jb1-\xff", "ID:1", ""]
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
