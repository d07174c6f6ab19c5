"""`engine.explain` says of one message what the router does with it, for messages of every kind."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from engine.explain import Ending, Explanation, explain
from engine.message import BodyType, Message, Record
from routes.config import loads
from routes.model import Publication
from routes.properties import JmsType, Property
from tests.spark.router.conftest import HEAD, known
from tests.spark.router.harness import Result, Router

ROUTES = """\
routing.on-soft-failure=dead-letter
routing.on-unmatched={unmatched}
routing.non-durable={non_durable}
routing.headers={headers}
routes.excluded.in.include=msg.address==orders
routes.excluded.in.exclude=region = 'emea' OR n > 5
routes.excluded.out.topic=excluded
routes.excluded.conv.key=region
routes.number.in.include=msg.address==orders && n BETWEEN 1 AND 100
routes.number.out.topic=number
routes.number.conv.key=n
routes.number.conv.body=any
routes.skipping.in.include=region LIKE 'a%'
routes.skipping.out.topic=skipping
routes.skipping.conv.key=msg.header.CorrelationId
routes.skipping.on-soft-failure=skip
routes.sink.in.include=n = '6'
routes.sink.out.topic=nats:all.${{msg.header.region}}
routes.held.in.include=n = '128'
routes.held.out.topic=held
routes.held.conv.key=region
routes.held.on-soft-failure=stop
routes.held.paused=true
routes.constant.in.include=n = '-1'
routes.constant.out.topic=jms:queue/x
routes.chosen.in.include=n = '5'
routes.chosen.out.topic=kafka:chosen.${{msg.header.region}}
routes.mirror.in.include=n = '1.5'
routes.mirror.out.topic=jms:topic/${{msg.address}}
routes.mirror.conv.key=region
routes.mirror.conv.body=json
routes.id.in.include=msg.address LIKE 'o%'
routes.id.out.topic=id
"""
NOW_MS = 1_700_000_000_000


def messages(count: int) -> Iterator[Message | Record]:
    """Messages with all that decides something in them, or not, at random."""
    dice = random.Random(4)  # noqa: S311 - not for secrets
    texts = ["emea", "apac", "", " ", "ä-1", "ID:host-1234-1:1", "a b", "5", "x" * 300, "\ud800", "a=b,c%"]
    headers = {
        "JMSDestination": ["queue:orders", "topic:orders", "queue:other", "queue:o"],
        "JMSMessageID": ["ID:1", ""],
        "JMSCorrelationID": texts,
        "JMSPriority": ["4", "four"],
        "JMSDeliveryMode": ["PERSISTENT", "NON_PERSISTENT"],
        "JMSExpiration": ["0", "1", str(NOW_MS), str(NOW_MS + 1), "soon", "99999999999999999999", "-5", " 7 "],
    }
    numbers = ["5", "6", "-1", "1.5", "NaN", "Infinity", "1e400", "128", "abc", "", "2147483648", " 12 ", "+3", "true"]
    for _ in range(count):
        fields = {name: dice.choice(values) for name, values in headers.items() if dice.random() < 0.8}
        properties: dict[str, Property] = {}
        if dice.random() < 0.7:
            properties["region"] = Property(dice.choice(texts), dice.choice([None, JmsType.STRING]))
        if dice.random() < 0.7:
            properties["n"] = Property(dice.choice(numbers), dice.choice([None, *JmsType]))
        if dice.random() < 0.3:
            properties["a=b,c%"] = Property("1", dice.choice([None, JmsType.INT]))
        body_type = dice.choice([*BodyType, BodyType.TEXT, BodyType.BYTES])
        origins = tuple(dice.sample(["b1", "b2", "b3"], dice.choice([0, 0, 0, 1, 2])))
        body = dice.choice([b"body", b"{}", b'{"a":1}'])
        spellings: dict[str, str] = {}
        extra: list[tuple[str, bytes | None]] = []
        if dice.random() < 0.3:
            # A header of Kafka that routes know under another spelling, as an untranslated name or beside it.
            spellings = {name: f"{name}-%,=+" for name in properties if name in ("region", "n")}
            for name, own in spellings.items():
                properties[own] = properties[name] if dice.random() < 0.3 else properties.pop(name)
        elif dice.random() < 0.3:
            extra = [(name, None) for name in ("region", "n") if name not in properties]
            spellings = {name: "b" for name, _ in extra[:1]}
        yield Message(body, body_type, fields, properties, "s", origins, spellings=spellings, extra=tuple(extra))
    yield Record(None, None, ())
    yield Record(b"k", b"\xff", (("jms.region", b"\xff\xfe"), ("jms.n", None), ("jms.region", b"emea"), ("x", None)))
    yield Record(b"k", b"v", (("jms.JMSDestination", b"queue:orders"), ("jmsbridge.body", b"picture")))
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    for address in headers["JMSDestination"]:
        fields = {"JMSDestination": address, "JMSMessageID": "ID:1", "JMSCorrelationID": "c"}
        traced = {"region": Property("emea"), "n": Property("5"), "traceparent": Property(parent, JmsType.STRING)}
        yield Message(b"body", headers=fields, properties=traced).to_record(
            {"traceparent": parent, "tracestate": "a=1"}
        )


@pytest.mark.parametrize(
    ("settings", "copies"),
    [
        ({"unmatched": "skip", "non_durable": "propagate", "headers": "text"}, False),
        ({"unmatched": "dead-letter", "non_durable": "drop", "headers": "short"}, False),
        ({"unmatched": "skip", "non_durable": "drop", "headers": "typed"}, False),
        ({"unmatched": "dead-letter", "non_durable": "propagate", "headers": "text"}, True),
    ],
    ids=["text", "short", "typed", "copies"],
)
def test_what_is_explained_is_what_is_done(
    router: Router, tmp_path: Path, settings: Mapping[str, str], *, copies: bool
) -> None:
    text = with_copies(ROUTES.format(**settings)) if copies else ROUTES.format(**settings)
    config = known(loads(HEAD + text, base=tmp_path))
    given = list(replayed(messages(400)) if copies else messages(400))
    endings, numbers, different = set(), set(), []
    changed = [index for index, each in enumerate(config.publications) if each.route.mask or each.route.steps]
    results: dict[int, list[Result]] = {}
    for result in router(text, given, now_ms=NOW_MS):
        results.setdefault(result.offset, []).append(result)
    for number, message in enumerate(given):
        record = message.to_record() if isinstance(message, Message) else message
        said = explain(record, config, position=f"journal:0:{number}", now_ms=NOW_MS)
        endings |= {(each.ending, each.reason) for each in said.publications}
        explained = [as_result(each, config.publications) for each in said.publications]
        numbers.add(len(explained))
        if explained != [done(result, changed) for result in results[number]]:
            different.append((record, explained, results[number]))
    assert different == []
    assert len(endings) >= 10
    assert numbers == {1} if not copies else {1, 2, 3, 4} < numbers


def with_copies(text: str) -> str:
    """The routes with several destinations, some of which let a message go on, or change what leaves."""
    more = {"out.topic=number": "out.topic=number, jms:queue/n.${msg.header.region}, chosen.${msg.header.region}"}
    more |= {"out.topic=id": "out.topic=id,nats:ids", "out.topic=skipping": "out.topic=nats:s, skipping"}
    for before, after in more.items():
        text = text.replace(before, after)
    changes = (
        "routes.id.out.mask=msg.body.a\nroutes.number.out.header.x-n=${msg.header.n}\nroutes.id.out.remove-headers=r*\n"
        "routes.id.out.convert=to IBM1047\nroutes.mirror.out.convert=to UTF-16\n"
        "routes.excluded.out.convert=from UTF-16\n"
    )
    goes_on = ("excluded", "number", "skipping", "mirror")
    return text + changes + "".join(f"routes.{name}.in.continue=true\n" for name in goes_on)


def replayed(given: Iterator[Message | Record]) -> Iterator[Record]:
    """The messages, some of them for one publication alone, which a route may have or not."""
    dice = random.Random(5)  # noqa: S311 - not for secrets
    labels = [b"1 id", b"2 id", b"3 id", b"2 number", b"1 skipping", b"1 gone", b"", None]
    for message in given:
        record = message.to_record() if isinstance(message, Message) else message
        only = (("jmsbridge.only", dice.choice(labels)),) if dice.random() < 0.3 else ()
        yield replace(record, headers=(*record.headers, *only))


def as_result(said: Explanation, publications: Sequence[Publication]) -> tuple[object, ...]:
    kind = {Ending.PUBLISHED: "routed", Ending.COUNTED: "unrouted"}.get(said.ending, str(said.ending))
    published = said.ending is Ending.PUBLISHED
    return (
        f"{kind}.{said.reason}" if said.reason else kind,
        said.topic,
        None if said.publication is None else publications.index(said.publication),
        said.key.encode("utf-8", "replace") if published and said.key is not None else None,
        said.headers if published else None,
        said.changed_body,
    )


def done(result: Result, changed: Collection[int]) -> tuple[object, ...]:
    published = result.outcome == "routed"
    return (
        result.outcome,
        result.topic,
        result.publication,
        result.record.key if published else None,
        result.record.headers if published else None,
        result.record.value if published and result.publication in changed else None,
    )
