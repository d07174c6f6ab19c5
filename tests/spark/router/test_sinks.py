"""What the router writes for sinks: the topic, where each message goes, and what cannot be sent anywhere."""

from __future__ import annotations

from engine.message import BodyType, Message
from routes.properties import JmsType, Property
from routes.targets import REPLY_SINK, REPLY_TO
from tests.spark.router.harness import Router
from tests.spark.router.test_route import message


def test_a_record_for_a_sink_says_where_it_goes_and_keeps_the_key_of_the_journal(router: Router) -> None:
    sent = message(JMSCorrelationID="c1")
    (result,) = router("routes.a.in.include=TRUE\nroutes.a.out.topic=jms:queue/x\n", [sent])
    assert (result.topic, result.outcome, result.record.key) == ("jms-bridge.sink.jms", "routed", b"c1")
    assert result.record.headers == (
        *sent.to_record().headers,
        ("jmsbridge.origin", b"b1"),
        ("jmsbridge.position", b"journal:0:0"),
        ("jmsbridge.destination", b"queue/x"),
        ("jmsbridge.route", b"a"),
    )


def test_a_message_without_any_id_can_go_to_a_sink(router: Router) -> None:
    text = "routes.a.in.include=TRUE\nroutes.a.out.topic=nats:a\n"
    (result,) = router(text, [Message(b"x", headers={"JMSDestination": "queue:orders"})])
    assert (result.outcome, result.record.key) == ("routed", None)


def test_only_kafka_sees_other_spellings_of_headers(router: Router) -> None:
    text = (
        "routing.headers=short\nroutes.a.in.include=msg.address==orders\nroutes.a.out.topic=nats:a\n"
        "routes.b.in.include=TRUE\nroutes.b.out.topic=out\n"
    )
    to_sink, to_kafka = router(text, [message(), message(to="queue:other")])
    assert (to_sink.header("jms.JMSMessageID"), to_sink.header("jms.MessageId")) == ("ID:1", None)
    assert (to_kafka.header("jms.JMSMessageID"), to_kafka.header("jms.MessageId")) == (None, "ID:1")
    assert to_kafka.header("jmsbridge.destination") is None


DESTINATIONS = {
    "nats:orders.${msg.header.region}": "orders.emea",
    "nats:${msg.address}.${msg.header.Type}.x": "orders.new.x",
    "jms:${msg.header.ReplyTo}": "queue:replies",
    "jms:topic/${msg.header.region}/${msg.header.empty}": None,
    "nats:orders.${msg.header.missing}": None,
    "nats:orders.${msg.header.wild}": None,
    "nats:orders.${msg.header.blank}": None,
    "nats:orders.${msg.header.dots}": None,
    "jms:queue/${msg.header.line}": None,
    "jms:${msg.header.region}": None,
}


def test_headers_are_filled_in_and_what_is_no_destination_fails_softly(router: Router) -> None:
    text, messages = "routing.on-soft-failure=dead-letter\n", []
    named = {"region": "emea", "empty": "", "wild": ">", "blank": "a b", "dots": "a..b", "line": "a\nb"}
    for number, target in enumerate(DESTINATIONS):
        text += f"routes.r{number}.in.include=n = '{number}'\nroutes.r{number}.out.topic={target}\n"
        messages.append(message(n=str(number), JMSType="new", JMSReplyTo="queue:replies", **named))
    for (target, destination), result in zip(DESTINATIONS.items(), router(text, messages), strict=True):
        if destination is None:
            assert (result.topic, result.outcome) == ("dlt", "dead-letter.destination-unresolved"), target
            assert target.partition(":")[2] in (result.header("__connect.errors.exception.message") or "")
        else:
            assert (result.outcome, result.header("jmsbridge.destination")) == ("routed", destination)


def test_templates_of_several_routes_do_not_get_into_each_other(router: Router) -> None:
    text = (
        "routes.a.in.include=n = '1'\nroutes.a.out.topic=nats:a.${msg.header.n}\n"
        "routes.b.in.include=n = '2'\nroutes.b.out.topic=jms:queue/b${msg.header.n}\n"
        "routes.c.in.include=n = '3'\nroutes.c.out.topic=nats:constant\n"
        "routes.d.in.include=TRUE\nroutes.d.out.topic=plain\n"
    )
    results = router(text, [message(n=n) for n in "1234"])
    assert [(r.topic, r.header("jmsbridge.destination")) for r in results] == [
        ("jms-bridge.sink.n", "a.1"),
        ("jms-bridge.sink.jms", "queue/b2"),
        ("jms-bridge.sink.n", "constant"),
        ("plain", None),
    ]


def test_a_body_that_is_json_already_goes_out_where_the_route_wants_json(router: Router) -> None:
    text = (
        "routing.on-soft-failure=skip\n"
        "routes.j.in.include=msg.address==json\nroutes.j.out.topic=j\nroutes.j.conv.body=json\n"
        "routes.any.in.include=msg.address==any\nroutes.any.out.topic=any\nroutes.any.conv.body=any\n"
        "routes.a.in.include=TRUE\nroutes.a.out.topic=a\n"
    )
    bodies = [(b'{"a":1}', BodyType.MAP), (b"[1,2]", BodyType.STREAM), (b"null", BodyType.OBJECT)]
    bodies += [(b"\xac\xed\x00", BodyType.OBJECT), (b"no json", BodyType.TEXT), (b"\xff", BodyType.BYTES)]

    def to(queue: str) -> list[Message]:
        return [Message(body, kind, message(to=queue).headers) for body, kind in bodies]

    failed = "skip.body-not-convertible"
    outcomes = [result.outcome for result in router(text, to("queue:json") + to("queue:asis") + to("queue:any"))]
    assert outcomes[:6] == ["routed"] * 3 + [failed] + ["routed"] * 2
    assert outcomes[6:12] == [failed] * 4 + ["routed"] * 2
    assert outcomes[12:] == ["routed"] * 6


def test_an_amqp_sink_takes_bodies_of_every_type_and_others_do_not(router: Router) -> None:
    text = (
        "routing.on-soft-failure=skip\nsink.q.type=amqp\nsink.q.url=amqp://127.0.0.1:1\n"
        "routes.q.in.include=msg.address==q\nroutes.q.out.topic=q:queue/x\n"
        "routes.a.in.include=TRUE\nroutes.a.out.topic=jms:queue/x\n"
    )

    def to(queue: str) -> list[Message]:
        return [Message(b"\xac\xed", kind, message(to=queue).headers) for kind in BodyType]

    outcomes = [result.outcome for result in router(text, to("queue:q") + to("queue:a"))]
    assert outcomes[:5] == ["routed"] * 5
    assert outcomes[5:] == ["routed"] * 2 + ["skip.body-not-convertible"] * 3


def test_a_reply_goes_to_who_asked_before_any_route_is_tried(router: Router) -> None:
    text = "sink.jms.reply-to=queue:r\nroutes.a.in.include=TRUE\nroutes.a.out.topic=out\n"
    own = {REPLY_SINK: Property("n", JmsType.STRING), REPLY_TO: Property("_INBOX.abc.1", JmsType.STRING)}
    reply = Message(b"x", headers=message().headers, properties=own)
    to_who_asked, other = router(text, [reply, message()])
    assert to_who_asked.topic == "jms-bridge.sink.n"
    assert to_who_asked.header("jmsbridge.destination") == "_INBOX.abc.1"
    assert to_who_asked.header("jmsbridge.route") == "replies to n"
    assert other.topic == "out"


def test_a_reply_of_a_map_is_json_and_one_that_cannot_go_is_set_aside(router: Router) -> None:
    text = "sink.jms.reply-to=queue:r\nroutes.a.in.include=TRUE\nroutes.a.out.topic=out\n"
    own = {REPLY_SINK: Property("n", JmsType.STRING), REPLY_TO: Property("_INBOX.abc.1", JmsType.STRING)}
    bodies = [(b'{"price":7}', BodyType.MAP), (b"\xac\xed", BodyType.OBJECT)]
    replies = [Message(body, kind, message().headers, own) for body, kind in bodies]
    as_json, letter = router(text, replies)
    assert (as_json.topic, as_json.record.value) == ("jms-bridge.sink.n", b'{"price":7}')
    assert letter.topic == "dlt"
    assert letter.header("jmsbridge.reason") == "body-not-convertible"
    assert letter.header("jmsbridge.position") == "journal:0:1"


def test_headers_choose_among_the_kafka_topics_that_are_there(router: Router) -> None:
    text = (
        "routing.on-soft-failure=skip\nroutes.a.in.include=region IS NOT NULL\n"
        "routes.a.out.topic=chosen.${msg.header.region}\n"
        "routes.b.in.include=TRUE\nroutes.b.out.topic=plain\n"
    )
    results = router(text, [message(region="emea"), message(region="apac"), message(region=""), message()])
    assert [(result.topic, result.outcome) for result in results] == [
        ("chosen.emea", "routed"),
        (None, "skip.destination-unresolved"),
        (None, "skip.destination-unresolved"),
        ("plain", "routed"),
    ]
    assert results[0].header("jmsbridge.destination") is None


def test_no_header_leads_to_an_address_by_which_a_server_is_managed(router: Router) -> None:
    text = (
        "routing.on-soft-failure=skip\nsink.s.type=stomp\nsink.n.type=nats\n"
        "routes.a.in.include=way = 'stomp'\nroutes.a.out.topic=s:queue/${msg.header.dest}\n"
        "routes.b.in.include=TRUE\nroutes.b.out.topic=n:${msg.header.dest}\n"
    )
    addresses = ("activemq.management", "x,activemq.management", "$sys.x", "orders")
    messages = [message(way="stomp", dest=each) for each in addresses]
    messages += [message(way="nats", dest=each) for each in ("$JS.API.STREAM.DELETE.x", "_INBOX.x")]
    refused = "skip.destination-unresolved"
    assert [result.outcome for result in router(text, messages)] == [*[refused] * 3, "routed", refused, "routed"]
