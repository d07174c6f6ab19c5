"""Routes that are paused: their messages are held as dead letters, whatever else would become of them."""

from __future__ import annotations

import pytest

from engine.explain import Ending, explain
from engine.message import BodyType, Message
from routes.config import loads
from routes.properties import Property
from tests.spark.router.conftest import HEAD
from tests.spark.router.harness import Router

ROUTES = (
    "routes.a.in.include=msg.address==orders\nroutes.a.out.topic=out\nroutes.a.conv.key=number\n"
    "routes.a.on-soft-failure={policy}\nroutes.a.paused=true\n"
    "routes.all.in.include=TRUE\nroutes.all.out.topic=all\n"
)
COPIES = (
    "routes.a.in.include=msg.address==orders\nroutes.a.out.topic=out\nroutes.a.paused=true\nroutes.a.in.continue=true\n"
    "routes.all.in.include=TRUE\nroutes.all.out.topic=all\nroutes.all.in.continue=true\n"
    "routes.b.in.include=TRUE\nroutes.b.out.topic=b\nroutes.b.paused=true\n"
)


def message(to: str = "queue:orders", number: str = "5", body_type: BodyType = BodyType.TEXT) -> Message:
    fields = {"JMSMessageID": "ID:1", "JMSDestination": to}
    return Message(b"hello", body_type, fields, {"number": Property(number)} if number else {})


@pytest.mark.parametrize("policy", ["stop", "skip", "dead-letter"])
def test_messages_are_held_by_any_policy_and_also_those_that_would_fail(router: Router, policy: str) -> None:
    sent = [message(), message(number=""), message(body_type=BodyType.MAP), message("queue:others")]
    *held, other = router(ROUTES.format(policy=policy), sent)
    for each, was in zip(held, sent, strict=False):
        assert (each.topic, each.outcome, each.header("jmsbridge.reason")) == (
            "dlt",
            "dead-letter.route-paused",
            "route-paused",
        )
        assert each.header("jmsbridge.route") == "a"
        assert each.record.value == was.body
        assert "is paused" in str(each.header("__connect.errors.exception.message"))
        explanation = explain(was.to_record(), loads(HEAD + ROUTES.format(policy=policy)))
        (first, *_) = explanation if isinstance(explanation, tuple) else (explanation,)
        assert (first.ending, first.reason) == (Ending.DEAD_LETTER, "route-paused")
    assert (other.topic, other.outcome) == ("all", "routed")


def test_of_a_message_with_copies_those_of_paused_routes_are_held(router: Router) -> None:
    results = router(COPIES, [message()])
    assert [(each.topic, each.outcome, each.header("jmsbridge.target")) for each in results] == [
        ("dlt", "dead-letter.route-paused", "1 kafka:out"),
        ("all", "routed", None),
        ("dlt", "dead-letter.route-paused", "1 kafka:b"),
    ]
