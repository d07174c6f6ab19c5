"""What `explain` says about one message, and how the command shows it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.explain import Ending, explain
from engine.explain.explanation import no_route_takes
from engine.message import BodyType, Message
from routes.config import loads
from routes.properties import JmsType, Property
from routes.targets import REPLY_SINK, REPLY_TO
from tests.commands import finished

CONFIGURATION = """\
bridge.id=b1
source.s.type=stomp
source.s.url=stomp://127.0.0.1:1
source.s.destinations=queue:orders
routing.dead-letter-topic=dead
routing.non-durable=drop
routes.large.in.include=msg.address==orders && amount > 1000
routes.large.in.exclude=region='test'
routes.large.out.topic=orders-large
routes.large.conv.key=msg.header.CorrelationId
routes.orders.in.include=msg.address==orders
routes.orders.out.topic=orders
routes.orders.on-soft-failure=dead-letter
"""


def message(address: str = "queue:orders", body_type: BodyType = BodyType.TEXT, **properties: object) -> Message:
    headers = {"JMSDestination": address, "JMSMessageID": "ID:1"}
    values = {name: value if isinstance(value, Property) else Property.of(value) for name, value in properties.items()}
    return Message(b"hello", body_type, headers, values)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "jms-bridge.properties"
    path.write_text(CONFIGURATION)
    return path


@pytest.fixture
def command(file: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    return lambda *arguments: finished(capsys, "explain", *arguments, "-c", str(file))


@pytest.mark.parametrize(
    ("text", "expected"), [("NaN", "NaN"), ("Infinity", "Infinity"), ("-Infinity", "-Infinity"), ("2.5", 2.5)]
)
def test_numbers_that_are_not_finite_are_told_from_no_value(
    command: Callable[..., tuple[int, str, str]], text: str, expected: object
) -> None:
    given = ("--address", "queue:orders", "--json")
    code, out, _ = command(*given, "--typed-property", f"amount:double={text}")
    (amount,) = (part for part in parts(json.loads(out)["routes"][0]["include"]) if part["text"] == "amount")
    assert (code, amount["value"]) == (0, expected)
    _, out, _ = command(*given)
    (amount,) = (part for part in parts(json.loads(out)["routes"][0]["include"]) if part["text"] == "amount")
    assert amount["value"] is None


def parts(trace: dict[str, Any]) -> list[dict[str, Any]]:
    """A part of a predicate and all parts within it."""
    return [trace, *(each for part in trace["parts"] for each in parts(part))]


def test_the_first_route_that_wants_the_message_takes_it_and_later_ones_are_not_asked() -> None:
    config = loads(CONFIGURATION)
    said = explain(message(amount=5).to_record(), config)
    assert [(step.route.name, step.wanted) for step in said.steps] == [("large", False), ("orders", True)]
    assert (said.ending, said.topic, said.key) == (Ending.PUBLISHED, "orders", "ID:1")
    wanted = explain(message(amount=5000).to_record(), config)
    assert [step.route.name for step in wanted.steps] == ["large"]


@pytest.mark.parametrize(
    ("given", "ending", "reason"),
    [
        (message("queue:other"), Ending.COUNTED, "unmatched"),
        (message(amount=5000), Ending.STOP, "key-not-found"),
        (message(body_type=BodyType.MAP), Ending.DEAD_LETTER, "body-not-convertible"),
        (message(amount=5000, region="test"), Ending.PUBLISHED, ""),
        (Message(headers={"JMSDestination": "queue:orders", "JMSExpiration": "1"}), Ending.COUNTED, "expired"),
        (Message(headers={"JMSDeliveryMode": "NON_PERSISTENT"}), Ending.COUNTED, "non-durable"),
        (Message(headers={"JMSDestination": "queue:orders"}, origins=("b1",)), Ending.COUNTED, "own-origin"),
        (Message(headers={"JMSDestination": "queue:orders"}), Ending.DEAD_LETTER, "key-not-found"),
    ],
)
def test_how_a_message_ends_and_why(given: Message, ending: Ending, reason: str) -> None:
    said = explain(given.to_record(), loads(CONFIGURATION))
    assert (said.ending, said.reason) == (ending, reason)


@pytest.mark.parametrize("kind", BodyType)
def test_an_amqp_sink_takes_bodies_of_every_type(kind: BodyType) -> None:
    to_amqp = CONFIGURATION.replace("out.topic=orders\n", "out.topic=amqp:queue/orders\nsink.q.type=amqp\n")
    said = explain(message(body_type=kind).to_record(), loads(to_amqp))
    assert (said.ending, said.reason) == (Ending.PUBLISHED, "")


@pytest.mark.parametrize(
    ("key", "valid"),
    [
        (Property("a-1"), True),
        (Property("ID:host-1234-1:1", JmsType.STRING), True),
        (Property("5", JmsType.INT), True),
        (Property("-1.5E10", JmsType.DOUBLE), True),
        (Property("a b"), False),
        (Property("---"), False),
        (Property("true", JmsType.BOOLEAN), False),
        (Property("AAAA", JmsType.BYTES), False),
    ],
)
def test_a_key_is_a_number_or_text_that_matches_the_pattern(key: Property, valid: bool) -> None:
    config = loads(CONFIGURATION.replace("msg.header.CorrelationId", "order"))
    said = explain(message(amount=5000, order=key).to_record(), config)
    assert (said.reason == "") is valid
    assert said.key == key.text


def test_the_headers_are_those_that_leave_and_all_else_sees_the_message_as_it_came(
    command: Callable[..., tuple[int, str, str]], file: Path
) -> None:
    file.write_text(
        CONFIGURATION
        + """\
routes.edited.in.include=n = 1
routes.edited.out.topic=nats:all.${msg.header.region}
routes.edited.conv.key=region
routes.edited.out.remove-headers=JMSType, reg*
routes.edited.out.rename-header.n=m
routes.edited.out.header.from=${msg.address}/${msg.header.region}
sink.n.type=nats
"""
    )
    code, out, _ = command("--address", "queue:q", "-p", "region=emea", "--typed-property", "n:int=1")
    assert code == 0
    result, *headers = out[out.index("result") :].splitlines()
    assert result.startswith("result   published to n:all.emea (by way of kafka:jms-bridge.sink.n)")
    assert headers == [
        "  jms.JMSMessageID       ID:example",
        "  jms.JMSDeliveryMode    PERSISTENT",
        "  jms.JMSDestination     queue:q",
        "  jms.m                  1",
        "  jmsbridge.body         text",
        "  jms.from               q/emea",
        "  jmsbridge.types        m=int",
        "  jmsbridge.origin       b1",
        "  jmsbridge.position     jms-bridge.journal:?:?",
        "  jmsbridge.destination  all.emea",
        "  jmsbridge.route        edited",
    ]


def test_the_command_shows_each_route_tried_with_the_values_in_its_predicate(
    command: Callable[..., tuple[int, str, str]],
) -> None:
    code, out, err = command("--address", "queue:orders", "--property", "region=emea", "--body", "hello")
    assert (code, err) == (0, "")
    assert out == (
        """\
message  queue:orders, 5 bytes of text

route    large: does not take it
  include  msg.address==orders && amount > 1000  unknown
             msg.address==orders                 true
               msg.address                       'orders'
             amount > 1000                       unknown
               amount                            (not set)
  exclude  region='test'  false
             region       'emea'

route    orders: takes it
  include  msg.address==orders  true
             msg.address        'orders'

key      ID:example  from JMSMessageID

result   published to kafka:orders by route 'orders', key ID:example, with headers
  jms.JMSMessageID     ID:example
  jms.JMSDeliveryMode  PERSISTENT
  jms.JMSDestination   queue:orders
  jms.region           emea
  jmsbridge.body       text
  jmsbridge.origin     b1
  jmsbridge.position   jms-bridge.journal:?:?
"""
    )


def test_a_message_with_several_destinations_is_explained_for_each() -> None:
    config = loads(
        CONFIGURATION.replace(
            "routes.orders.out.topic=orders\n", "routes.orders.out.topic=orders, n:o.${msg.header.x}\n"
        )
        + "sink.n.type=nats\n"
    )
    said = explain(message().to_record(), config, position="j:0:7")
    assert [(each.ending, each.reason) for each in said.publications] == [
        (Ending.PUBLISHED, ""),
        (Ending(config.routes[-1].on_soft_failure.value), "destination-unresolved"),
    ]
    said = explain(message(x=1).to_record(), config, position="j:0:7")
    positions = [dict(each.headers)["jmsbridge.position"] for each in said.publications]
    assert positions == [b"j:0:7", b"j:0:7:1"]
    assert dict(said.copies[0].headers)["jmsbridge.target"] == b"2 n:o.${msg.header.x}"


@pytest.mark.parametrize(("label", "topics"), [(b"2 orders", ["jms-bridge.sink.n"]), (b"3 orders", [None])])
def test_a_replayed_message_goes_to_the_destination_alone_that_failed(label: bytes, topics: list[str | None]) -> None:
    config = loads(
        CONFIGURATION.replace("routes.orders.out.topic=orders\n", "routes.orders.out.topic=orders, n:o\n")
        + "sink.n.type=nats\n"
    )
    record = message().to_record()
    record = replace(record, headers=(*record.headers, ("jmsbridge.only", label)))
    assert [each.topic for each in explain(record, config).publications] == topics


def test_the_command_says_what_a_failure_leads_to(command: Callable[..., tuple[int, str, str]]) -> None:
    _, out, _ = command("--address", "queue:orders", "--typed-property", "amount:int=5000")
    assert out.splitlines()[-4:] == [
        "key      (none)  from JMSCorrelationID",
        "fails    key-not-found: there is no value under 'JMSCorrelationID' to take the key from",
        "",
        "result   the bridge stops with exit code 5: key-not-found, and route 'large' has on-soft-failure=stop",
    ]


def test_the_command_gives_json_to_programs(command: Callable[..., tuple[int, str, str]]) -> None:
    _, out, _ = command("--address", "queue:orders", "-H", "CorrelationId=42", "-p", "amount=5000", "--json")
    said = json.loads(out)
    assert (said["result"], said["route"], said["topic"], said["key"]) == ("published", "large", "orders-large", "42")
    assert said["key_from"] == "JMSCorrelationID"
    (route,) = said["routes"]
    assert route["include"]["value"] is True
    assert route["include"]["parts"][1] == {
        "text": "amount > 1000",
        "value": True,
        "parts": [{"text": "amount", "value": "5000", "parts": []}],
    }


def test_the_command_takes_a_whole_message_from_a_file(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    (tmp_path / "message").write_text("JMSDestination: queue:orders\nJMSMessageID: ID:7\n\nhello\n")
    code, out, _ = command("--file", str(tmp_path / "message"))
    assert code == 0
    assert "published to kafka:orders by route 'orders', key ID:7" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--file", "a", "--address", "queue:b"), "--file is a whole message"),
        (("--file", "a", "--journal", "0:1"), "--file is a whole message"),
        (("--file", "no-such-file"), "--file no-such-file: No such file or directory"),
        (("--body", "a", "--body-file", "b"), "not both"),
        (("--property", "region"), "'region': expected NAME=VALUE"),
    ],
)
def test_arguments_that_contradict_each_other_are_one_clear_line(
    command: Callable[..., tuple[int, str, str]], arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = command(*arguments)
    assert (code, out) == (64, "")
    assert said in err
    assert err.count("\n") == 1


REPLIES = """\
bridge.id=b1
source.n.type=nats
source.n.destinations=ask
sink.n.type=nats
sink.j.type=stomp
sink.j.reply-to=queue:replies
routes.r.in.include=msg.address==ask
routes.r.out.topic=j:queue/service
"""


@pytest.mark.parametrize(
    ("more", "body", "kind", "ending"),
    [
        ("", b'{"price":7}', BodyType.MAP, Ending.PUBLISHED),
        ("", b'["pear",7]', BodyType.STREAM, Ending.PUBLISHED),
        ("", b"\xac\xed\x00\x05", BodyType.OBJECT, Ending.DEAD_LETTER),
        ("replies.on-soft-failure=skip", b"\xac\xed\x00\x05", BodyType.OBJECT, Ending.SKIP),
        ("replies.conv.body=as-is", b'{"price":7}', BodyType.MAP, Ending.DEAD_LETTER),
        ("replies.conv.body=any", b"\xac\xed\x00\x05", BodyType.OBJECT, Ending.PUBLISHED),
        ("routing.on-soft-failure=stop", b"\xac\xed\x00\x05", BodyType.OBJECT, Ending.DEAD_LETTER),
    ],
)
def test_replies_have_a_body_conversion_and_a_policy_of_their_own_that_never_stops(
    more: str, body: bytes, kind: BodyType, ending: Ending
) -> None:
    config = loads(REPLIES + more)
    own = {REPLY_SINK: Property("n"), REPLY_TO: Property("topic:_INBOX.1")}
    said = explain(Message(body, kind, {"JMSMessageID": "ID:1"}, own).to_record(), config)
    assert said.ending is ending
    assert said.route is not None
    assert said.route.name == "replies to n"
    assert said.topic == {
        Ending.PUBLISHED: "jms-bridge.sink.n",
        Ending.DEAD_LETTER: "jms-bridge.journal.set-aside",
    }.get(ending)


@given(
    address=st.sampled_from(["orders", "else"]),
    amount=st.sampled_from([None, 5, 5000, "many"]),
    region=st.sampled_from([None, "test", "emea"]),
    mode=st.sampled_from(["PERSISTENT", "NON_PERSISTENT"]),
    origin=st.sampled_from([(), ("b1",), ("b2",)]),
)
def test_a_message_that_no_route_takes_is_one_that_is_unmatched(
    address: str, amount: object, region: str | None, mode: str, origin: tuple[str, ...]
) -> None:
    given_ = {name: value for name, value in (("amount", amount), ("region", region)) if value is not None}
    sent = replace(message(f"queue:{address}", **given_), origins=origin)
    record = replace(sent, headers={**sent.headers, "JMSDeliveryMode": mode}).to_record()
    config = loads(CONFIGURATION)
    assert no_route_takes(record, config) == (explain(record, config).reason == "unmatched")
