"""Bodies with a schema: paths into them, and routes whose bodies have to fit one."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest

from engine.errors import HardFailureError
from engine.message import BodyType, Message
from engine.schemas.jvm_registry import RegistryUnavailableError
from tests.registry_server import RegistryServer, registry_server
from tests.spark.router.conftest import agree
from tests.spark.router.harness import Result, Router

POLICY = "routing.on-soft-failure=dead-letter\n"
LINE = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}, {"name": "n", "type": "int"}]}
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "country", "type": ["null", "string"], "default": None},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
    ],
}
ID = 7
BIG = 2**60 + 1


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with registry_server() as server:
        server.answers[f"/schemas/ids/{ID}"] = [(200, {"schema": json.dumps(ORDER)})]
        yield server


def head(registry: RegistryServer) -> str:
    return f"{POLICY}schema.registry.url={registry.url}\nschema.registry.timeout=1s\n"


def avro(value: dict[str, Any], number: int = ID, schema: dict[str, Any] = ORDER) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return b"\0" + number.to_bytes(4, "big") + out.getvalue()


def message(body: bytes, kind: BodyType = BodyType.BYTES) -> Message:
    return Message(body, kind, {"JMSDestination": "queue:orders", "JMSMessageID": "ID:1"})


def outcome(result: Result) -> tuple[str | None, str, str | None]:
    return result.topic, result.outcome, result.header("jmsbridge.error.message")


ROUTES = """\
routes.big.in.include=msg.body.lines[*].n > 2
routes.big.out.topic=jms:queue/big-${msg.body.country}
routes.big.conv.key=msg.body.id
routes.rest.in.include=TRUE
routes.rest.out.topic=rest
"""


def test_paths_lead_into_avro(router: Router, registry: RegistryServer) -> None:
    order = {"id": BIG, "country": "DE", "lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": 3}]}
    small = {"id": 1, "country": "DE", "lines": [{"sku": "a", "n": 1}]}
    bodies = [avro(order), avro(small), avro(order)[:-1], avro(order, 8), b'{"lines":[{"n":3}],"country":"AT","id":5}']
    first, *rest, json_order = router(head(registry) + ROUTES, [message(body) for body in bodies])
    assert (first.header("jmsbridge.destination"), first.record.key) == ("queue/big-DE", str(BIG).encode())
    assert first.record.value == bodies[0]
    assert [each.topic for each in rest] == ["rest", "rest", "rest"]
    assert (json_order.header("jmsbridge.destination"), json_order.record.key) == ("queue/big-AT", b"5")
    assert {each.path for each in registry.asked} == {"/schemas/ids/7", "/schemas/ids/8"}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{}", "the body has no schema: its first byte is not 0, as in Confluent's wire format"),
        (b"\0\0", "2 bytes are fewer than Confluent's wire format has before a value"),
        (avro({"id": 1, "lines": []}, 8), "the schema registry knows no schema with the id 8"),
        (avro({"id": 1, "lines": []})[:-1], "the bytes end before the AVRO value of the schema with the id 7 does"),
        (
            avro({"id": 1, "lines": []}) + b"x",
            "the bytes are not a valid AVRO value of the schema with the id 7: there are bytes behind its end",
        ),
    ],
)
def test_a_body_that_is_no_value_of_its_schema_fails_softly(
    router: Router, registry: RegistryServer, body: bytes, why: str
) -> None:
    routes = "routes.r.in.include=msg.body.id = 1\nroutes.r.in.body=avro\nroutes.r.out.topic=out\n"
    good, bad = router(head(registry) + routes, [message(avro({"id": 1, "lines": []})), message(body)])
    assert outcome(good)[:2] == ("out", "routed")
    assert bad.outcome == "dead-letter.body-unreadable"
    assert bad.header("__connect.errors.exception.message") == why


JSON_SCHEMA = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer", "maximum": BIG},
        "lines": {"type": "array", "items": {"properties": {"odd name": {"type": "string", "maxLength": 2}}}},
    },
}


def checked(schema: str) -> str:
    return f"routes.r.in.include=TRUE\nroutes.r.in.schema={schema}\nroutes.r.out.topic=out\n"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"id": BIG, "lines": [{"odd name": "ab"}]}, None),
        ({"id": 1.0}, None),
        ({"id": BIG + 1}, "msg.body.id does not fit 'maximum'"),
        ({"id": 1.5}, "msg.body.id does not fit 'type'"),
        (
            {"lines": [{}, {"odd name": "abc"}]},
            """msg.body does not fit 'required', msg.body.lines[1]."odd name" does \
not fit 'maxLength'""",
        ),
    ],
)
def test_json_has_to_fit_the_schema_of_its_route(
    router: Router, registry: RegistryServer, tmp_path: Path, body: object, why: str | None
) -> None:
    place = tmp_path / "order.json"
    place.write_text(json.dumps(JSON_SCHEMA))
    [result] = router(POLICY + checked(f"json-schema:{place}"), [message(json.dumps(body).encode(), BodyType.TEXT)])
    if why is None:
        assert outcome(result)[:2] == ("out", "routed")
        return
    assert outcome(result)[:2] == ("dlt", "dead-letter.body-invalid")
    text = result.header("__connect.errors.exception.message")
    assert text == f"the body does not fit json-schema:{place}: {why}"


def test_a_schema_without_end_makes_dead_letters(router: Router, registry: RegistryServer, tmp_path: Path) -> None:
    place = tmp_path / "endless.json"
    place.write_text('{"$ref": "#"}')
    [result] = router(POLICY + checked(f"json-schema:{place}"), [message(b"1", BodyType.TEXT)])
    assert outcome(result)[:2] == ("dlt", "dead-letter.body-invalid")
    assert (result.header("__connect.errors.exception.message") or "").endswith("refers to itself without end")


def test_values_have_to_fit_a_version_of_a_subject(router: Router, registry: RegistryServer) -> None:
    other = {"type": "record", "name": "Order", "fields": [{"name": "number", "type": "long"}]}
    registry.answers["/subjects/orders-value/versions/3"] = [
        (200, {"subject": "orders-value", "version": 3, "id": ID, "schema": json.dumps(ORDER)})
    ]
    registry.answers["/schemas/ids/9"] = [(200, {"schema": json.dumps(other)})]
    bodies = [avro({"id": 1, "lines": []}), avro({"number": 1}, 9, other)]
    good, bad = router(head(registry) + checked("avro:orders-value@3"), [message(body) for body in bodies])
    assert outcome(good)[:2] == ("out", "routed")
    assert outcome(bad)[:2] == ("dlt", "dead-letter.body-invalid")
    text = bad.header("__connect.errors.exception.message") or ""
    assert text.startswith("the schema with the id 9 does not fit avro:orders-value@3: ")


def test_a_schema_that_is_not_there_ends_the_start(router: Router, registry: RegistryServer) -> None:
    with pytest.raises(HardFailureError, match="refuses /subjects/orders-value/versions/latest: 404"):
        router(head(registry) + checked("avro:orders-value"), [message(b"")])


def test_a_registry_that_is_away_is_told_apart(router: Router) -> None:
    away = "schema.registry.url=http://127.0.0.1:1\nschema.registry.timeout=1s\n"
    with pytest.raises(RegistryUnavailableError, match="the schema registry has been away for"):
        router(away + checked("avro:orders-value"), [message(b"")])


def writing(schema: str, more: str = "") -> str:
    return f"routes.r.in.include=TRUE\nroutes.r.out.schema={schema}\nroutes.r.out.topic=out\n{more}"


@pytest.fixture
def subject(registry: RegistryServer) -> RegistryServer:
    registry.answers["/subjects/orders-value/versions/latest"] = [
        (200, {"version": 4, "id": 12, "schemaType": "JSON", "schema": json.dumps(JSON_SCHEMA)})
    ]
    return registry


def test_json_and_maps_leave_with_a_schema(router: Router, subject: RegistryServer) -> None:
    body = b'{"id": 1, "lines": []}'
    good, a_map, bad, text = router(
        head(subject) + writing("json-schema:orders-value"),
        [
            message(body, BodyType.TEXT),
            message(body, BodyType.MAP),
            message(b'{"id": "1"}'),
            message(b"no JSON", BodyType.TEXT),
        ],
    )
    for each in (good, a_map):
        assert outcome(each)[:2] == ("out", "routed")
        assert each.record.value == b"\0" + (12).to_bytes(4, "big") + body
        assert each.header("jmsbridge.body") == "bytes"
    assert outcome(bad)[:2] == outcome(text)[:2] == ("dlt", "dead-letter.body-not-convertible")
    assert bad.record.value == b'{"id": "1"}'
    said = [each.header("__connect.errors.exception.message") for each in (bad, text)]
    assert said[0] == "the body does not fit json-schema:orders-value: msg.body.id does not fit 'type'"
    assert said[1] == "the body is not JSON, or has a number of more than 1,000 digits"


@pytest.mark.parametrize(
    ("more", "subject_name"),
    [
        ("", "out-value"),
        ("routes.r.out.subject=record\n", "Order"),
        ("routes.r.out.subject=topic-record\n", "out-Order"),
    ],
)
def test_the_schema_of_a_file_is_registered(
    router: Router, registry: RegistryServer, tmp_path: Path, more: str, subject_name: str
) -> None:
    place = tmp_path / "order.json"
    place.write_text(json.dumps(JSON_SCHEMA | {"title": "Order"}))
    path = f"/subjects/{subject_name}/versions"
    registry.answers[path] = [(200, {"id": 5})]
    [result] = router(head(registry) + writing(f"json-schema:{place}", more), [message(b'{"id": 1}')])
    assert result.record.value == b"\0\0\0\0\5" + b'{"id": 1}'
    assert [each.path for each in registry.asked] == [path]


WRITTEN = {
    "type": "record",
    "name": "Written",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "on", "type": "boolean", "default": True},
        {"name": "amounts", "type": {"type": "array", "items": {"type": "double"}}},
    ],
}


@pytest.mark.parametrize(
    ("more", "body"),
    [
        ("", b'{"id": 1, "amounts": [1.5, 2]}'),
        ("", b'{"id": 1152921504606846977, "note": "n", "on": false, "amounts": []}'),
        ("", b'{"id": 1.5, "amounts": []}'),
        ("", b'{"id": "1", "amounts": []}'),
        ("", b'{"id": 1, "amounts": [], "more": 1}'),
        ("", b'{"id": 1}'),
        ("", b"no JSON"),
        ("", b""),
        ("routes.r.out.convert=xml-to-json\n", b"<w><id>7</id><on>false</on><amounts>1.5</amounts></w>"),
        ("routes.r.out.convert=xml-to-json\n", b"<w><id>x</id><amounts>1.5</amounts></w>"),
        ("routes.r.out.convert=xml-to-json\n", b"no XML"),
        ("routes.r.out.mask=msg.body.id\n", b'{"id": 1, "amounts": []}'),
    ],
)
def test_explain_agrees_on_bodies_that_are_written(
    router: Router, registry: RegistryServer, tmp_path: Path, more: str, body: bytes
) -> None:
    registry.answers["/subjects/written-value/versions/latest"] = [
        (200, {"version": 1, "id": 31, "schema": json.dumps(WRITTEN)})
    ]
    text = head(registry) + writing("avro:written-value", more)
    [result] = router(text, [message(body, BodyType.TEXT)])
    agree(text, message(body, BodyType.TEXT), result, tmp_path)
    if body.startswith((b'{"id": 11', b"<w><id>7")):
        assert result.outcome == "routed"
        assert result.record.value.startswith(b"\0\0\0\0\x1f")


@pytest.mark.parametrize("schema", ["avro:orders-value", "json-schema:orders-value"])
def test_explain_agrees_on_bodies_that_have_to_fit(
    router: Router, registry: RegistryServer, tmp_path: Path, schema: str
) -> None:
    json_type = {"schemaType": "JSON", "schema": json.dumps(JSON_SCHEMA)}
    asked = json_type if schema.startswith("json") else {"schema": json.dumps(ORDER)}
    registry.answers["/subjects/orders-value/versions/latest"] = [(200, {"version": 1, "id": ID, **asked})]
    registry.answers["/schemas/ids/9"] = [(200, json_type)]
    order = {"id": 1, "lines": []}
    bodies = [
        avro(order),
        avro(order)[:-1],
        avro(order, 8),
        b"\0\0\0\0\x09" + json.dumps(order).encode(),
        b'\0\0\0\0\x09{"id": 1.5}',
        b'{"id": "x", "lines": [{"odd name": 1}, {"odd name": "abc"}, {"odd name": 2}]}',
        b"",
        b"{",
    ]
    text = head(registry) + checked(schema)
    results = router(text, [message(body) for body in bodies])
    for body, result in zip(bodies, results, strict=True):
        agree(text, message(body), result, tmp_path)
