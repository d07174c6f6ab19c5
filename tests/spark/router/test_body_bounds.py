"""The bounds of bodies that a configuration sets hold for routes, keys, masks and conversions, as `explain` says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.explain import explain
from engine.message import BodyType, Message
from engine.router.plan.language import read_within
from routes.config import loads
from routes.predicate.bodies import BOUNDS
from routes.sections import BodyBounds
from tests.spark.router.conftest import HEAD
from tests.spark.router.harness import Router

SMALL = "routing.body.max-bytes=1KiB\nrouting.body.max-depth=2\nrouting.body.max-elements=3\n"
LARGE = "routing.body.max-bytes=4MiB\nrouting.body.max-depth=200\nrouting.body.max-elements=20000\n"
ROUTES = """\
routing.on-soft-failure=dead-letter
routes.read.in.include=msg.address==read AND msg.body.a[*] = 5
routes.read.in.body=json
routes.read.out.topic=read
routes.read.out.header.x={}
routes.masked.in.include=msg.address==masked
routes.masked.out.topic=masked
routes.masked.out.mask=msg.body.a
routes.keyed.in.include=msg.address==keyed
routes.keyed.out.topic=keyed
routes.keyed.conv.key=msg.body.a
routes.json.in.include=msg.address==json
routes.json.out.topic=json
routes.json.out.convert=xml-to-json
routes.xml.in.include=msg.address==xml
routes.xml.out.topic=xml
routes.xml.out.convert=json-to-xml
routes.filled.in.include=msg.address==filled
routes.filled.out.topic=nats:filled.${{msg.body.a}}, nats:b
""".format("${msg.body.b}")


@pytest.fixture(autouse=True)
def bounds_of_other_tests(spark: SparkSession) -> Iterator[None]:
    """The functions of tests without a configuration read bodies within the defaults."""
    yield
    read_within(BOUNDS, spark)


def nested(depth: int, value: str = "5") -> str:
    return '{"a":' * depth + value + "}" * depth


def bodies() -> list[tuple[str, str]]:
    texts = ['{"a":5}', '{"a":5}'.ljust(1024), '{"a":5}'.ljust(1025), '{"a":5}'.ljust(2**20 + 1)]
    texts += [nested(2), nested(3), nested(101), nested(201)]
    given = [(address, text) for address in ("masked", "keyed", "xml", "filled") for text in texts]
    given += [("json", f"<a>{' ' * size}</a>") for size in (1017, 1018, 2**20)]
    given += [("json", "<a>" * depth + "</a>" * depth) for depth in (2, 3, 101, 201)]
    given += [("read", f'{{"b":"x","a":[{"1," * before}5]}}') for before in (2, 3, 9_999, 10_000, 19_999, 20_000)]
    return [*given, ("read", "no JSON"), ("read", '{"a":[5]}'.ljust(2**20 + 1))]


@pytest.mark.parametrize("bounds", [SMALL, "", LARGE], ids=["small", "default", "large"])
def test_bounds_hold_everywhere(router: Router, tmp_path: Path, bounds: str) -> None:
    config = loads(HEAD + bounds + ROUTES, base=tmp_path)
    given = [
        Message(text.encode(), BodyType.TEXT, {"JMSDestination": f"queue:{address}", "JMSMessageID": "ID:1"})
        for address, text in bodies()
    ]
    found = iter(router(bounds + ROUTES, given))
    taken = 0
    for message in given:
        for said in explain(message.to_record(), config, position="journal:0:0").publications:
            result = next(found)
            assert (said.reason, said.topic) == (result.outcome.partition(".")[2], result.topic), message
            if said.failures and said.reason != "destination-unresolved":
                assert said.failures[0].detail == result.header("__connect.errors.exception.message")
            if said.changed_body is not None:
                assert said.changed_body == result.record.value
            taken += said.topic not in (None, "dlt")
    assert next(found, None) is None
    assert taken == {SMALL: 21, "": 31, LARGE: 42}[bounds]


def test_the_defaults_are_those_of_bodies_without_a_configuration() -> None:
    assert BodyBounds() == BodyBounds(BOUNDS.size, BOUNDS.depth, BOUNDS.elements)
