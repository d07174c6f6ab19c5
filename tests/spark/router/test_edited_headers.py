"""Edits of headers: the router makes the same ones as `engine.explain`, whatever the message."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from engine.explain import Ending, explain
from engine.message import Message, Record
from engine.router.plan.topology import topology
from routes.config import loads
from routes.properties import JmsType, Property, encode_type_name
from tests.spark.router.conftest import HEAD, known
from tests.spark.router.harness import Router

NAMES = ("a", "b", "trace-id", "trace_id", "p,q=r%", "größe", "x-one", "x-two", "x", "JMSType", "JMSCorrelationID")
OTHERS = ("JMSPriority", "JMSMessageID", "JMS_JmsBridge_ReplySink", "JMS_AMQP_TTL", "JMSXGroupSeq")
PATTERNS = ("x-*", "*", "a", "trace_id", "Type", "*e*", "JMS_*", '"p,q', "größ*", "b", "JMSPriority", "p,*%")
TEXTS = (
    "constant",
    "${msg.header.a}",
    "<${msg.header.trace_id}>",
    "${msg.address}",
    "${msg.body.a.b}",
    "é${msg.body.n}",
)
LARGE = b'{"a": {"b": "' + b"x" * 8_191 + b'"}, "n": "' + b"y" * 8_191 + b'"}'
BODIES = (LARGE, b"body", b'{"a": {"b": "text"}, "n": 1.50}', b'{"a": {"b": ""}, "n": true}', b'{"n": "\xc3\xa9"}')
ROUTES = 12


def routes(dice: Random) -> Iterator[str]:
    """Routes, of which each takes the messages with its number, with edits of all kinds; few edit nothing."""
    for number in range(ROUTES):
        route = f"routes.r{number}"
        yield f"{route}.in.include=route = '{number}'"
        yield f"{route}.out.topic={dice.choice(('kafka:t', 'nats:all.x', 'kafka:t'))}"
        if number == 0:
            continue
        if removed := dice.sample([each for each in PATTERNS if "," not in each], dice.randint(0, 2)):
            yield f"{route}.out.remove-headers={', '.join(removed)}"
        names = dice.sample((*NAMES, "JMSPriority"), 8)
        for old, new in zip(names[: dice.randint(0, 3)], names[3:], strict=False):
            yield f"{route}.out.rename-header.{_key(old)}={new}"
        for name in dice.sample(NAMES, dice.randint(0, 3)):
            yield f"{route}.out.header.{_key(name)}={dice.choice(TEXTS)}"


def _key(name: str) -> str:
    return name.replace("=", "\\=")


def record(dice: Random, route: int) -> Record:
    """A record with headers of every kind: doubled, without value, not UTF-8; with types and spellings."""
    headers: list[tuple[str, bytes | None]] = [("jms.route", str(route).encode())]
    for name in (*NAMES, *OTHERS, ""):
        values = dice.choices((b"1", b"", None, b"text", b"\xff", "é".encode()), k=dice.choice((0, 1, 1, 1, 2)))
        headers += [(f"jms.{name}", value) for value in values]
    if dice.random() < 0.8:
        headers.append(("jms.JMSDestination", b"queue:orders"))
    names = dice.sample((*NAMES, *OTHERS), dice.randint(0, 8))
    types = [f"{encode_type_name(name)}={dice.choice(tuple(JmsType))}" for name in names]
    types += dice.sample(("a=int", "%61=int", "a", "a==int", "b=INT", "p%2cq%3dr%25=int", ""), dice.randint(0, 2))
    dice.shuffle(types)
    pairs = ["trace_id=trace-id", "trace-id=trace_id", "x=x-one", "b=p%2Cq%3Dr%25", "JMSType=a", "c=JMSMessageID", "d"]
    spelled = dice.sample([*pairs, "x-two=%61", "y=x-one", "größe=b", "b=a", "a=b"], dice.randint(0, 4))
    for header, given in (("jmsbridge.types", types), ("jmsbridge.names", spelled)):
        headers += [(header, ",".join(given).encode())] * dice.choice((0, 1, 1, 1, 2))
    dice.shuffle(headers)
    return Record(b"k", dice.choice(BODIES), tuple(headers))


@pytest.mark.parametrize("style", ["text", "short", "typed"])
def test_edits_in_spark_are_those_that_are_explained(router: Router, tmp_path: Path, style: str) -> None:
    dice = Random(f"edits {style}")  # noqa: S311 - not for secrets
    text = "\n".join(["routing.on-soft-failure=skip", f"routing.headers={style}", *routes(dice)]) + "\n"
    config = known(loads(HEAD + text, base=tmp_path))
    given = [record(dice, dice.randrange(ROUTES)) for _ in range(600)]
    different, published = [], 0
    for number, (each, result) in enumerate(zip(given, router(text, given), strict=True)):
        said = explain(each, config, position=f"journal:0:{number}")
        if said.ending is not Ending.PUBLISHED or said.route is None:
            continue
        published += 1
        if said.headers != result.record.headers or each.value != result.record.value:
            different.append((said.route.edits, each.headers, said.headers, result.record.headers))
    assert different == []
    assert published > 400


def test_types_and_spellings_stay_right(router: Router) -> None:
    text = """\
routes.r.in.include=TRUE
routes.r.out.topic=kafka:t
routes.r.out.remove-headers=secret, x-*
routes.r.out.rename-header.trace_id=b3
routes.r.out.rename-header.n=JMSXGroupSeq
routes.r.out.rename-header.Type=kind
routes.r.out.header.amount=eur ${msg.header.amount}
routes.r.out.header.lost=${msg.header.missing}
"""
    properties = {
        "secret": Property("s", JmsType.STRING),
        "x-a": Property("1", JmsType.BOOLEAN),
        "trace-id": Property("7", JmsType.LONG),
        "n": Property("5", JmsType.INT),
        "amount": Property("1.5", JmsType.DOUBLE),
        "lost": Property("1", JmsType.BYTE),
        "kept": Property("1", JmsType.BYTE),
    }
    fields = {"JMSMessageID": "ID:1", "JMSType": "t"}
    message = Message(headers=fields, properties=properties, spellings={"trace_id": "trace-id"})
    (result,) = router(text, [message])
    left = Message.from_record(result.record)
    assert left.headers == {"JMSMessageID": "ID:1", "JMSXGroupSeq": "5"}
    assert left.properties == {
        "b3": Property("7", JmsType.LONG),
        "kind": Property("t", JmsType.STRING),
        "amount": Property("eur 1.5"),
        "kept": Property("1", JmsType.BYTE),
    }
    assert left.spellings == {}
    assert result.header("jmsbridge.names") is None


def test_dead_letters_keep_the_headers_that_came(router: Router) -> None:
    text = """\
routing.on-soft-failure=dead-letter
routes.r.in.include=TRUE
routes.r.out.topic=kafka:t
routes.r.conv.key=region
routes.r.out.header.region=emea
"""
    failed, passed = router(text, [Message(), Message(properties={"region": Property("apac")})])
    assert (failed.topic, failed.header("jms.region")) == ("dlt", None)
    assert (passed.record.key, passed.header("jms.region")) == (b"apac", "emea")


def test_headers_count_as_part_of_the_size(router: Router) -> None:
    text = """\
routing.on-soft-failure=dead-letter
routes.plain.in.include=n = 1
routes.plain.out.topic=kafka:t
routes.edited.in.include=TRUE
routes.edited.out.topic=kafka:t
routes.edited.out.header.copy=${msg.body.a}
"""
    fields = {"JMSMessageID": "ID:1"}
    messages = [Message(b"x" * 3_000, headers=fields, properties={"n": Property.of(n)}) for n in (1, 2)]
    plain, edited = router(text, messages, limits={"t": 4_096 + 4_000})
    assert (plain.topic, edited.topic) == ("t", "dlt")
    assert edited.header("jmsbridge.reason") == "too-large"


def test_routes_without_edits_have_no_node_for_them() -> None:
    text = "routes.r.in.include=TRUE\nroutes.r.out.topic=kafka:t\n"
    for edits, expected in (("", False), ("routes.r.out.remove-headers=x\n", True)):
        plan = topology(loads(HEAD + text + edits))
        assert ("edited-headers" in {node.name for node in plan.nodes}) is expected
