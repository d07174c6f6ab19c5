"""The router's rules, one after the other, on batches without a broker."""

from __future__ import annotations

import struct

import pytest
from pyspark.errors import PySparkException

from engine.message import BodyType, Message, Record
from engine.router.plan.refusals import Refusals
from routes.model import HeaderStyle
from routes.properties import JmsType, Property
from tests.spark.router.harness import Result, Router


def message(body: str = "hello", to: str = "queue:orders", **headers: str) -> Message:
    """A text message; JMS fields by name, all other names are properties without a type."""
    fields = {"JMSMessageID": "ID:1", "JMSDestination": to}
    fields |= {name: text for name, text in headers.items() if name.startswith("JMS")}
    properties = {name: Property(text) for name, text in headers.items() if not name.startswith("JMS")}
    return Message(body.encode(), headers=fields, properties=properties)


ORDERS = "routes.a.in.include=msg.address==orders\nroutes.a.out.topic=out\n"


def test_a_routed_record_keeps_all_headers_and_gains_origin_and_position(router: Router) -> None:
    sent = message(region="emea")
    (result,) = router(ORDERS, [sent])
    assert (result.topic, result.outcome, result.publication) == ("out", "routed", 0)
    assert result.record.key == b"ID:1"
    assert result.record.value == b"hello"
    assert result.record.headers == (
        *sent.to_record().headers,
        ("jmsbridge.origin", b"b1"),
        ("jmsbridge.position", b"journal:0:0"),
    )


def test_the_first_route_in_the_order_of_the_file_wins(router: Router) -> None:
    text = (
        "routes.z.in.include=region = 'emea'\nroutes.z.out.topic=z\n"
        "routes.a.in.include=msg.address==orders\nroutes.a.in.exclude=vip = 'yes'\nroutes.a.out.topic=a\n"
        "routes.m.in.include=TRUE\nroutes.m.out.topic=m\n"
    )
    results = router(text, [message(region="emea"), message(), message(vip="yes"), message(to="topic:x")])
    assert [(result.topic, result.publication) for result in results] == [("z", 0), ("a", 1), ("m", 2), ("m", 2)]


def test_routes_see_what_is_in_a_body(router: Router) -> None:
    text = (
        "routes.big.in.include=msg.address==orders && msg.body.lines[*].amount > 1000\nroutes.big.out.topic=big\n"
        "routes.home.in.include=msg.body.country IN ('DE', 'AT')\nroutes.home.in.exclude=msg.text LIKE '%test%'\n"
        "routes.home.out.topic=home\n"
    )
    order = '{"country": "DE", "lines": [{"amount": 5}, {"amount": 1000.01}]}'
    bodies = [order, '{"country": "DE"}', '{"country": "AT", "note": "a test"}', '{"country": "FR"}', "not JSON", ""]
    results = router(text, [*map(message, bodies), message(order, to="queue:others")])
    assert [result.topic for result in results] == ["big", "home", None, None, None, None, "home"]
    assert results[0].record.value == order.encode()


def test_keys_and_destinations_come_from_bodies(router: Router) -> None:
    text = (
        'routes.a.in.include=TRUE\nroutes.a.out.topic=nats:orders.${msg.body.country}.${msg.body.lines[-1]."a b"}\n'
        "routes.a.conv.key=msg.body.order.id\nsink.nats.type=nats\nsink.nats.url=nats://127.0.0.1:1\n"
        "routes.a.on-soft-failure=dead-letter\nrouting.dead-letter-topic=dead\n"
    )

    def order(number: str, country: str = '"DE"', last: str = "1") -> str:
        return f'{{"order": {{"id": {number}}}, "country": {country}, "lines": [{{"a b": 0}}, {{"a b": {last}}}]}}'

    found = router(text, [message(order(number)) for number in ("5", "5.0", "0.5e1", '"x-1"', "1780921717355446273")])
    assert [result.record.key for result in found] == [b"5", b"5", b"5", b"x-1", b"1780921717355446273"]
    assert {dict(result.record.headers)["jmsbridge.destination"] for result in found} == {b"orders.DE.1"}
    assert {result.outcome for result in found} == {"routed"}
    wrong = (
        *(order("null"), order("[5]"), order('""'), "no JSON", ""),
        *(order("5", last="true"), order("5", '"a.*"'), order("5", '"a b"'), order("5", "null"), order('" "')),
    )
    outcomes = [result.outcome for result in router(text, [message(body) for body in wrong])]
    assert outcomes == [
        *["dead-letter.key-not-found"] * 5,
        *("routed", *["dead-letter.destination-unresolved"] * 3, "dead-letter.key-invalid"),
    ]


def test_xml_is_asked_as_json_is(router: Router) -> None:
    text = (
        "routes.a.in.include=xpath('/order/@priority') = 'urgent' AND xpath('number(/order/line/amount)') > 1000\n"
        "routes.a.out.topic=nats:orders.${xpath('/order/country')}\nroutes.a.conv.key=xpath('number(/order/id)')\n"
        "sink.nats.type=nats\nsink.nats.url=nats://127.0.0.1:1\nroutes.a.on-soft-failure=dead-letter\nrouting.dead-letter-topic=dead\n"
    )

    def order(amount: str, country: str = "de") -> str:
        amounts = f"<line><amount>5</amount></line><line><amount>{amount}</amount></line>"
        return f'<order priority="urgent"><id> 7.0 </id><country>{country}</country>{amounts}</order>'

    results = router(
        text, [message(body) for body in (order("1000.01"), order("1000"), order("many"), order("2000", ""))]
    )
    assert [result.outcome for result in results] == [
        "routed",
        "unrouted.unmatched",
        "unrouted.unmatched",
        "dead-letter.destination-unresolved",
    ]
    assert results[0].record.key == b"7"
    assert dict(results[0].record.headers)["jmsbridge.destination"] == b"orders.de"


def test_a_body_of_another_format_than_the_routes_fails(router: Router) -> None:
    text = (
        "routes.a.in.include=msg.address = 'orders' AND (region = 'eu' OR NOT msg.body.region = 'us')\n"
        "routes.a.in.exclude=JMSType = 'test'\nroutes.a.in.body=json\nroutes.a.out.topic=a\n"
        "routes.b.in.include=msg.address = 'forms' AND xpath('/form/@id') IS NULL\nroutes.b.in.body=xml\n"
        "routes.b.out.topic=b\nroutes.rest.in.include=TRUE\nroutes.rest.out.topic=rest\n"
        "routing.on-soft-failure=dead-letter\nrouting.dead-letter-topic=dead\n"
    )
    cases = [
        (message('{"region": "de"}'), "a"),
        (message('{"region": "us"}'), "rest"),
        (message("{}"), "rest"),
        (message("{}", region="eu"), "a"),
        (message("no JSON"), "dead"),
        (message("no JSON", region="eu"), "dead"),
        (message(" " * 2**20 + "5"), "dead"),
        (message("no JSON", JMSType="test"), "rest"),
        (message("no JSON", to="queue:others"), "rest"),
        (message("<form/>", to="queue:forms"), "b"),
        (message("<form id='5'/>", to="queue:forms"), "rest"),
        (message("<form", to="queue:forms"), "dead"),
    ]
    results = router(text, [given for given, _ in cases])
    assert [result.topic for result in results] == [topic for _, topic in cases]
    letters = [dict(result.record.headers) for result in results if result.topic == "dead"]
    assert {letter["jmsbridge.reason"] for letter in letters} == {b"body-unreadable"}
    why = [(letter["__connect.errors.exception.message"] or b"").decode() for letter in letters]
    assert why == [
        *["the body is not JSON, or is nested more than 100 deep"] * 2,
        "the body has more than 1,048,576 bytes",
        "the body is not XML, or is nested more than 100 deep",
    ]


def test_an_exclude_that_is_unknown_does_not_exclude(router: Router) -> None:
    text = ORDERS + "routes.a.in.exclude=amount > 5\n"
    results = router(text, [message(), message(amount="6"), message(amount="5"), message(amount="many")])
    assert [result.outcome for result in results] == ["routed", "unrouted.unmatched", "routed", "routed"]


def test_messages_that_were_here_before_expired_or_are_not_durable_are_not_routed(router: Router) -> None:
    text = ORDERS + "routing.non-durable=drop\n"
    messages = [
        Message(b"x", headers=message().headers, origins=("other", "b1")),
        Message(b"x", headers=message().headers, origins=("other", "b10")),
        message(JMSExpiration="999"),
        message(JMSExpiration="1000"),
        message(JMSExpiration="1001"),
        message(JMSExpiration="0"),
        message(JMSExpiration="soon"),
        message(JMSDeliveryMode="NON_PERSISTENT"),
        message(JMSDeliveryMode="PERSISTENT"),
    ]
    results = router(text, messages, now_ms=1000)
    assert [result.outcome for result in results] == [
        "unrouted.own-origin",
        "routed",
        "unrouted.expired",
        "unrouted.expired",
        "routed",
        "routed",
        "routed",
        "unrouted.non-durable",
        "routed",
    ]
    assert [result.topic for result in results if result.outcome != "routed"] == [None] * 4


def test_a_message_through_two_bridges_carries_both_origins(router: Router) -> None:
    (result,) = router(ORDERS, [Message(b"x", headers=message().headers, origins=("other",))])
    assert [value for name, value in result.record.headers if name == "jmsbridge.origin"] == [b"other", b"b1"]


STYLED = """\
routing.headers={style}
routing.on-soft-failure=skip
routing.on-unmatched=dead-letter
routes.a.in.include=r = 'a'
routes.a.out.topic=a
routes.a.conv.key=msg.header.k
routes.b.in.include=r = 'b'
routes.b.out.topic=b
routes.b.conv.key=msg.header.k
routes.b.on-soft-failure=dead-letter
routes.field.in.include=r = 'field'
routes.field.out.topic=chosen.${{msg.header.JMSCorrelationID}}
routes.property.in.include=r = 'property'
routes.property.out.topic=chosen.${{msg.header.region}}
"""
CONTEXT = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "a=1"}


@pytest.fixture(scope="module", params=HeaderStyle)
def styled(request: pytest.FixtureRequest, router: Router) -> tuple[HeaderStyle, list[Result]]:
    """A style, and what became of the same messages in it."""
    messages: list[Message | Record] = [
        message(r="a"),
        message(r="b"),
        message(r="a", k="1"),
        message(r="b", k="2"),
        message(r="field", JMSCorrelationID="emea"),
        message(r="property", region="emea"),
        message(r="a", k="1", traceparent=CONTEXT["traceparent"]).to_record(CONTEXT),
        message(r="none", traceparent=CONTEXT["traceparent"]).to_record(CONTEXT),
    ]
    return request.param, router(STYLED.format(style=request.param), messages)


def test_each_route_follows_its_own_policy(styled: tuple[HeaderStyle, list[Result]]) -> None:
    _, results = styled
    assert [(result.outcome, result.topic, result.failed_message) for result in results[:4]] == [
        ("skip.key-not-found", None, "ID:1"),
        ("dead-letter.key-not-found", "dlt", "ID:1"),
        ("routed", "a", None),
        ("routed", "b", None),
    ]


def test_where_a_message_goes_does_not_depend_on_the_style_of_its_headers(
    styled: tuple[HeaderStyle, list[Result]],
) -> None:
    _, results = styled
    assert [(result.topic, result.outcome) for result in results[4:6]] == [("chosen.emea", "routed")] * 2


def test_a_trace_context_is_published_in_headers_of_its_own(styled: tuple[HeaderStyle, list[Result]]) -> None:
    style, (*_, routed, dead) = styled
    assert (routed.topic, dead.topic) == ("a", "dlt")
    for result in (routed, dead):
        assert [result.header(name) for name in CONTEXT] == list(CONTEXT.values())
    prefix = "jms.string." if style is HeaderStyle.TYPED else "jms."
    assert routed.header(f"{prefix}traceparent") == CONTEXT["traceparent"]


def test_non_durable_messages_are_routed_by_default(router: Router) -> None:
    (result,) = router(ORDERS, [message(JMSDeliveryMode="NON_PERSISTENT")])
    assert result.outcome == "routed"


def test_keys_come_from_fields_and_properties_of_any_text_or_number(router: Router) -> None:
    text = (
        "routing.on-soft-failure=skip\n"
        "routes.c.in.include=by = 'c'\nroutes.c.out.topic=c\nroutes.c.conv.key=msg.header.CorrelationId\n"
        "routes.p.in.include=by = 'p'\nroutes.p.out.topic=p\nroutes.p.map.key=msg.header.id\n"
        "routes.m.in.include=TRUE\nroutes.m.out.topic=m\n"
    )

    def typed(value: str, kind: JmsType | None) -> Message:
        return Message(
            b"", headers={"JMSMessageID": "ID:1"}, properties={"by": Property("p"), "id": Property(value, kind)}
        )

    results = router(
        text,
        [
            message(by="c", JMSCorrelationID="f47ac10b-58cc-4372-a567-0e02b2c3d479"),
            message(by="c", JMSCorrelationID="ID:host-1234-1:1"),
            message(by="c"),
            message(by="c", JMSCorrelationID=""),
            message(by="c", JMSCorrelationID="has blank"),
            typed("-7", JmsType.INT),
            typed("1.5E10", JmsType.DOUBLE),
            typed("true", JmsType.BOOLEAN),
            typed("AAEC", JmsType.BYTES),
            typed("Zürich-1", JmsType.STRING),
            typed("ends\n", None),
            message(),
        ],
    )
    assert [(result.outcome, result.record.key if result.topic else None) for result in results] == [
        ("routed", b"f47ac10b-58cc-4372-a567-0e02b2c3d479"),
        ("routed", b"ID:host-1234-1:1"),
        ("skip.key-not-found", None),
        ("skip.key-not-found", None),
        ("skip.key-invalid", None),
        ("routed", b"-7"),
        ("routed", b"1.5E10"),
        ("skip.key-invalid", None),
        ("skip.key-invalid", None),
        ("routed", "Zürich-1".encode()),
        ("skip.key-invalid", None),
        ("routed", b"ID:1"),
    ]


def test_a_key_that_is_no_utf8_is_invalid(router: Router) -> None:
    text = ORDERS + "routes.a.conv.key=msg.header.id\nrouting.on-soft-failure=dead-letter\n"
    record = message().to_record()
    (result,) = router(text, [Record(b"k", b"v", (*record.headers, ("jms.id", b"\xff\xfe")))])
    assert result.outcome == "dead-letter.key-invalid"


def test_a_body_that_is_neither_text_nor_bytes_fails(router: Router) -> None:
    text = ORDERS + "routing.on-soft-failure=dead-letter\n"
    kinds = (BodyType.MAP, BodyType.STREAM, BodyType.OBJECT)
    results = router(text, [Message(b"x", kind, headers=message().headers) for kind in kinds])
    for kind, result in zip(kinds, results, strict=True):
        assert result.outcome == "dead-letter.body-not-convertible"
        told = result.header("__connect.errors.exception.message")
        assert told == f"the body is of type {kind}, neither text nor bytes"


def test_bodies_are_published_byte_for_byte(router: Router) -> None:
    bodies = [b"", b"\x00\xff\xfe", "text ü\n".encode(), b"x" * 1_048_576]
    results = router(ORDERS, [Message(body, BodyType.BYTES, headers=message().headers) for body in bodies])
    assert [result.record.value for result in results] == bodies


def test_a_dead_letter_is_the_message_as_it_was_and_what_happened(router: Router) -> None:
    text = ORDERS + "routes.a.conv.key=msg.header.customer\nroutes.a.on-soft-failure=dead-letter\n"
    sent = message(JMSCorrelationID="c-1")
    (result,) = router(text, [sent], now_ms=1_700_000_000_123)
    record = sent.to_record()
    assert (result.topic, result.outcome, result.publication) == ("dlt", "dead-letter.key-not-found", 0)
    assert (result.record.key, result.record.value) == (b"c-1", b"hello")
    assert result.record.headers[: len(record.headers)] == record.headers
    assert dict(result.record.headers[len(record.headers) :]) == {
        "jmsbridge.origin": b"b1",
        "jmsbridge.position": b"journal:0:0",
        "jmsbridge.reason": b"key-not-found",
        "jmsbridge.route": b"a",
        "jmsbridge.time": b"2023-11-14T22:13:20.123Z",
        "__connect.errors.topic": b"journal",
        "__connect.errors.partition": b"0",
        "__connect.errors.offset": b"0",
        "__connect.errors.stage": b"key",
        "__connect.errors.exception.class.name": b"jmsbridge.key-not-found",
        "__connect.errors.exception.message": b"there is no value under 'customer' to take the key from",
    }


def test_policy_stop_ends_the_query_and_names_the_message(router: Router) -> None:
    text = ORDERS + "routes.a.conv.key=msg.header.customer\n"
    with pytest.raises(PySparkException, match="jms-bridge:stop:") as error:
        router(text, [message(customer="1"), message()])
    for part in ('"route": "a"', '"reason": "key-not-found"', '"position": "journal:0:1"', "no value under 'customer'"):
        assert part in str(error.value)


@pytest.mark.parametrize("policy", ["stop", "dead-letter", "skip"])
def test_what_kafka_does_not_take_stops_no_router_whatever_the_policy(router: Router, policy: str) -> None:
    text = (
        f"routing.on-soft-failure={policy}\n{ORDERS}"
        "routes.b.in.include=msg.address==prices\nroutes.b.out.topic=gone\n"
        "routes.c.in.include=TRUE\nroutes.c.out.topic=${msg.header.where}\n"
    )
    sent = [message(), message(to="queue:prices"), message(to="queue:x", where="chosen.emea"), message()]
    gone = {name: f"topic '{name}' does not exist" for name in ("gone", "chosen.emea")}
    refusals = Refusals(gone, {(0, 3, 0): "topic 'out' does not take the record: no"})
    results = router(text, sent, refusals=refusals)
    applied = "skip" if policy == "skip" else "dead-letter"
    assert [result.outcome for result in results] == ["routed", *[f"{applied}.not-published"] * 3]
    assert [result.topic for result in results] == ["out", *[None if policy == "skip" else "dlt"] * 3]
    if policy != "skip":
        said = [result.header("__connect.errors.exception.message") for result in results[1:]]
        assert said == [gone["gone"], gone["chosen.emea"], "topic 'out' does not take the record: no"]
        assert {result.header("jmsbridge.reason") for result in results[1:]} == {"not-published"}
        assert [result.record.value for result in results[1:]] == [b"hello"] * 3


def test_unmatched_messages_become_dead_letters_if_configured(router: Router) -> None:
    (result,) = router(ORDERS + "routing.on-unmatched=dead-letter\n", [message(to="topic:other")])
    assert (result.topic, result.outcome, result.publication) == ("dlt", "dead-letter.unmatched", None)
    assert result.header("jmsbridge.reason") == "unmatched"
    assert result.header("jmsbridge.route") == ""
    assert result.header("__connect.errors.stage") == "match"
    assert result.header("__connect.errors.exception.message") == "no route wants a message to topic:other"


def test_a_record_above_its_topics_limit_fails_before_the_sink(router: Router) -> None:
    text = ORDERS + "routing.on-soft-failure=dead-letter\n"
    limit = 1_048_588
    bodies = [b"x" * size for size in (1000, limit - 10_000, limit)]
    results = router(text, [Message(body, headers=message().headers) for body in bodies], limits={"out": limit})
    assert [result.outcome for result in results] == ["routed", "routed", "dead-letter.too-large"]
    assert results[2].record.value == bodies[2]


def test_small_limits_and_large_headers_are_measured_too(router: Router) -> None:
    text = ORDERS + "routing.on-soft-failure=dead-letter\n"
    sent = [message(), message("x" * 20_000), message(note="y" * 20_000)]
    results = router(text, sent, limits={"out": 16_384})
    assert [result.outcome for result in results] == ["routed", "dead-letter.too-large", "dead-letter.too-large"]


def test_each_topic_of_a_template_has_its_own_limit(router: Router) -> None:
    text = "routes.a.in.include=TRUE\nroutes.a.out.topic=${msg.header.where}\nrouting.on-soft-failure=dead-letter\n"
    sent = [message("x" * size, where=topic) for topic in ("chosen.emea", "x") for size in (10, 20_000)]
    results = router(text, sent, limits={"chosen.emea": 1_048_588, "x": 16_384})
    assert [result.outcome for result in results] == ["routed", "routed", "routed", "dead-letter.too-large"]
    results = router(text, sent[:2], limits={"chosen.emea": 1_048_588, "x": 1_000})
    assert [result.outcome for result in results] == ["routed", "routed"]


def test_a_dead_letter_that_its_topic_cannot_hold_is_cut_and_says_so(router: Router) -> None:
    text = ORDERS + "routing.on-soft-failure=dead-letter\n"
    body = b"x" * 3_000_000
    (result,) = router(text, [Message(body, headers=message().headers)], limits={"out": 1_048_588, "dlt": 1_048_588})
    assert result.record.value == body[: 64 * 1024]
    assert int(result.header("jmsbridge.truncated") or 0) > len(body)
    assert result.header("jms.JMSMessageID") == "ID:1"


def test_style_short_spells_the_fields_as_the_jms_bridge_does(router: Router) -> None:
    (result,) = router(ORDERS + "routing.headers=short\n", [message(JMSCorrelationID="c", region="emea")])
    assert result.header("jms.MessageId") == "ID:1"
    assert result.header("jms.CorrelationId") == "c"
    assert result.header("jms.region") == "emea"
    assert result.header("jms.JMSMessageID") is None
    assert result.header("jmsbridge.position") == "journal:0:0"


def test_style_typed_writes_big_endian_values_under_typed_names(router: Router) -> None:
    values = {
        "flag": ("true", JmsType.BOOLEAN, b"true"),
        "tiny": ("-2", JmsType.BYTE, b"\xfe"),
        "short": ("-300", JmsType.SHORT, struct.pack(">h", -300)),
        "int": ("70000", JmsType.INT, struct.pack(">i", 70000)),
        "long": ("-5000000000", JmsType.LONG, struct.pack(">q", -5_000_000_000)),
        "float": ("1.1", JmsType.FLOAT, struct.pack(">f", 1.1)),
        "double": ("-1.1E300", JmsType.DOUBLE, struct.pack(">d", -1.1e300)),
        "nan": ("NaN", JmsType.DOUBLE, bytes.fromhex("7ff8000000000000")),
        "zero": ("-0.0", JmsType.DOUBLE, struct.pack(">d", -0.0)),
        "least": ("4.9E-324", JmsType.DOUBLE, struct.pack(">d", 5e-324)),
        "most": ("1.7976931348623157E308", JmsType.DOUBLE, struct.pack(">d", 1.7976931348623157e308)),
        "odd, name=x%": ("5", JmsType.INT, struct.pack(">i", 5)),
        "text": ("emea", JmsType.STRING, b"emea"),
        "blob": ("AAEC", JmsType.BYTES, b"\x00\x01\x02"),
    }
    properties = {name: Property(text, kind) for name, (text, kind, _) in values.items()}
    properties["untyped"] = Property("7")
    properties["liar"] = Property("seven", JmsType.INT)
    sent = Message(
        b"",
        headers={"JMSMessageID": "ID:1", "JMSDestination": "queue:orders", "JMSPriority": "4"},
        properties=properties,
    )
    (result,) = router(ORDERS + "routing.headers=typed\n", [sent])
    headers = dict(result.record.headers)
    for name, (_, kind, encoded) in values.items():
        assert headers[f"jms.{kind}.{name}"] == encoded, name
    assert headers["jms.string.JMSMessageID"] == b"ID:1"
    assert headers["jms.int.JMSPriority"] == struct.pack(">i", 4)
    assert headers["jms.string.untyped"] == b"7"
    assert headers["jms.string.liar"] == b"seven"
    assert headers["jmsbridge.origin"] == b"b1"


def test_hostile_records_never_fail_the_query(router: Router) -> None:
    text = (
        "routing.on-soft-failure=dead-letter\nrouting.on-unmatched=dead-letter\nrouting.headers=typed\n"
        "routes.a.in.include=amount / divisor > 1 AND name LIKE 'a%'\nroutes.a.out.topic=out\n"
        "routes.a.conv.key=msg.header.name\n"
    )
    records = [
        Record(None, None, ()),
        Record(b"", b"", (("", b""),)),
        Record(None, b"x", (("jms.amount", None), ("jms.divisor", b"0"), ("jms.name", b"\xff"))),
        Record(None, b"x", (("jms.amount", b"9" * 400), ("jms.divisor", b"0"), ("jms.name", b"a"))),
        Record(None, b"x", (("jmsbridge.types", b"amount=int,amount=float,=,%,x"), ("jms.amount", b"NaN"))),
        Record(None, b"x", (("jmsbridge.size", b"huge"), ("jmsbridge.body", b"\xff"), ("jmsbridge.origin", None))),
        Record(None, b"x", (("jms.JMSExpiration", b"99999999999999999999"), ("jms.JMSDestination", b"\xff"))),
        Record(None, b"x", tuple((f"jms.p{i}", b"v") for i in range(300))),
    ]
    results = router(text, records, limits={"out": 1_048_588, "dlt": 1_048_588})
    assert [result.outcome for result in results] == ["dead-letter.unmatched"] * len(records)
