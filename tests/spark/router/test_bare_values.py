"""Bare values of Avro and Protobuf, whose schema their source names: paths, formats, schemas and masks of routes."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from engine.errors import HardFailureError
from engine.message import BodyType, Message, Record
from tests.registry_server import registry_server
from tests.spark.router.conftest import agree
from tests.spark.router.harness import Router

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "int"}, {"name": "country", "type": "string"}],
}
HEAD = """\
routing.on-soft-failure=dead-letter
source.s.schema={schema}
source.k.type=kafka
source.k.destinations=other
source.k.schema={schema}
"""
ROUTES = """\
routes.big.in.include=msg.body.id > 2
routes.big.out.topic=jms:queue/big-${msg.body.country}
routes.big.out.header.country=${msg.body.country}
routes.big.conv.key=msg.body.id
routes.rest.in.include=TRUE
routes.rest.out.topic=rest
"""
ONE = "routes.r.in.include=msg.body.id > 2\nroutes.r.out.topic=out\n"


def avro(number: int, country: str) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(ORDER), {"id": number, "country": country})
    return out.getvalue()


def protobuf(number: int, country: str) -> bytes:
    """The message `shop.Order`, of a number below 128."""
    return bytes((8, number, 18, len(country))) + country.encode()


def message(body: bytes, kind: BodyType = BodyType.BYTES, source: str = "s") -> Message:
    return Message(body, kind, {"JMSDestination": "queue:orders", "JMSMessageID": "ID:1"}, source=source)


@pytest.fixture
def avro_schema(tmp_path: Path) -> str:
    (tmp_path / "order.avsc").write_text(json.dumps(ORDER))
    return f"avro:{tmp_path / 'order.avsc'}"


@pytest.fixture
def protobuf_schema(tmp_path: Path) -> str:
    number = FieldDescriptorProto(name="id", number=1, type=FieldDescriptorProto.TYPE_INT32)
    country = FieldDescriptorProto(name="country", number=2, type=FieldDescriptorProto.TYPE_STRING)
    types = [DescriptorProto(name="Other"), DescriptorProto(name="Order", field=[number, country])]
    file = FileDescriptorProto(name="o.proto", package="shop", syntax="proto3", message_type=types)
    (tmp_path / "order.desc").write_bytes(FileDescriptorSet(file=[file]).SerializeToString())
    return f"protobuf:{tmp_path / 'order.desc'}"


@pytest.mark.parametrize("form", ["avro", "protobuf"])
def test_paths_lead_into_bare_values(
    router: Router, avro_schema: str, protobuf_schema: str, tmp_path: Path, form: str
) -> None:
    schema, value = (avro_schema, avro) if form == "avro" else (f"{protobuf_schema}#shop.Order", protobuf)
    body = value(5, "DE")
    given = [
        message(body),
        message(body, BodyType.TEXT, "k"),
        message(value(1, "DE")),
        message(body[:-1]),
        message(body, source="another"),
        message(body, BodyType.TEXT),
        message(b'{"id": 7, "country": "AT"}', BodyType.TEXT),
        message(b'{"id": 7, "country": "AT"}', BodyType.MAP),
    ]
    text = HEAD.format(schema=schema) + ROUTES
    results = router(text, given)
    places = [each.header("jmsbridge.destination") or each.topic for each in results]
    of_json = ["queue/big-AT", "dlt"]
    assert places == ["queue/big-DE", "queue/big-DE", "rest", "rest", "rest", "rest", *of_json]
    assert (results[0].record.key, results[0].record.value) == (b"5", body)
    assert results[0].header("jms.country") == "DE"
    for each, result in zip(given, results, strict=True):
        agree(text, each, result, tmp_path)


@pytest.mark.parametrize("kind", ["bytes", "other", None])
def test_a_body_without_a_known_kind_is_a_bare_value(
    router: Router, avro_schema: str, tmp_path: Path, kind: str | None
) -> None:
    record = message(avro(5, "\x7fDÉ")).to_record()
    headers = tuple(each for each in record.headers if each[0] != "jmsbridge.body")
    headers += () if kind is None else (("jmsbridge.body", kind.encode()),)
    text = HEAD.format(schema=avro_schema) + ROUTES.replace("conv.key", "conv.body=any\nroutes.big.conv.key")
    for body, place in ((b"\x0a\x06ABC", "big-ABC"), (b"\x0a\x02\xff", None)):
        [result] = router(text, [Record(record.key, body, headers)])
        is_text = kind is None and place is not None
        assert result.header("jmsbridge.destination") == (f"queue/{place}" if place and not is_text else None)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            avro(5, "DE")[:-1],
            "the bytes are not a valid AVRO value of {s}: a text or bytes announce 2 bytes, and 1 are",
        ),
        (avro(5, "DE") + b"x", "the bytes are not a valid AVRO value of {s}: there are bytes behind its end"),
        (b"", "the bytes end before the AVRO value of {s} does"),
        (b"\0\0\0\0\7" + avro(5, "DE"), "the bytes are not a valid AVRO value of {s}: there are bytes behind its end"),
    ],
)
def test_a_body_that_is_not_a_value_fails_softly(
    router: Router, avro_schema: str, tmp_path: Path, body: bytes, why: str
) -> None:
    text = HEAD.format(schema=avro_schema) + ONE + "routes.r.in.body=avro\n"
    good, bad = router(text, [message(avro(5, "DE")), message(body)])
    assert good.topic == "out"
    assert bad.outcome == "dead-letter.body-unreadable"
    reason = bad.header("__connect.errors.exception.message") or ""
    assert reason.startswith(why.format(s=f"the schema {avro_schema} of the source s"))


def test_bare_values_have_to_fit_a_schema(router: Router, avro_schema: str, tmp_path: Path) -> None:
    other = {"type": "record", "name": "Order", "fields": [{"name": "number", "type": "long"}]}
    (tmp_path / "other.avsc").write_text(json.dumps(other))
    wider = {**ORDER, "fields": [{"name": "id", "type": "long"}]}
    (tmp_path / "wider.avsc").write_text(json.dumps(wider))
    (tmp_path / "order.json").write_text('{"properties": {"id": {"maximum": 4}}}')
    given = message(avro(5, "DE"))
    for schema, why in {
        f"avro:{tmp_path / 'wider.avsc'}": None,
        f"avro:{tmp_path / 'other.avsc'}": f"the schema {avro_schema} of the source s does not fit avro:",
        f"json-schema:{tmp_path / 'order.json'}": None,
    }.items():
        text = HEAD.format(schema=avro_schema) + ONE + f"routes.r.in.schema={schema}\n"
        [result] = router(text, [given])
        if why is not None:
            assert result.outcome == "dead-letter.body-invalid"
            assert (result.header("__connect.errors.exception.message") or "").startswith(why)
            continue
        assert result.topic == ("out" if "avro" in schema else "dlt")
        agree(text, given, result, tmp_path)


@pytest.mark.parametrize("more", ["out.mask=msg.body.id", "out.mask=msg.body.id\nroutes.r.out.mask-with=remove"])
def test_a_mask_takes_no_bare_value(router: Router, tmp_path: Path, more: str) -> None:
    # The bytes of this value are a JSON text of 17 characters in quotes.
    (tmp_path / "text.avsc").write_text('"string"')
    text = HEAD.format(schema=f"avro:{tmp_path / 'text.avsc'}")
    text += f"routes.r.in.include=TRUE\nroutes.r.out.topic=out\nroutes.r.{more}\n"
    given = message(b'"' + b"x" * 16 + b'"')
    [result] = router(text, [given])
    assert result.outcome == "dead-letter.body-unreadable"
    reason = result.header("__connect.errors.exception.message") or ""
    assert reason.endswith("the body is a value with a schema of AVRO and not of JSON")
    agree(text, given, result, tmp_path)


def test_the_registry_names_the_schema_of_bare_values(router: Router, tmp_path: Path) -> None:
    with registry_server() as server:
        answer = {"version": 3, "id": 7, "schema": json.dumps(ORDER)}
        server.answers["/subjects/orders-value/versions/3"] = [(200, answer)]
        text = f"schema.registry.url={server.url}\n" + HEAD.format(schema="avro:orders-value@3") + ONE
        given = message(avro(5, "DE"))
        [result] = router(text, [given])
        assert result.topic == "out"
        agree(text, given, result, tmp_path)


def test_a_schema_that_cannot_be_used_ends_the_start(router: Router, protobuf_schema: str, tmp_path: Path) -> None:
    (tmp_path / "bad.avsc").write_text('{"type": "records"}')
    (tmp_path / "bad.desc").write_bytes(b"\xff")
    for schema, why in {
        f"avro:{tmp_path / 'bad.avsc'}": "it names the type 'records', which it does not define",
        f"protobuf:{tmp_path / 'bad.desc'}": "it is not a FileDescriptorSet",
        f"{protobuf_schema}#shop.Absent": "no file of it has the message 'shop.Absent'",
    }.items():
        with pytest.raises(HardFailureError) as failed:
            router(HEAD.format(schema=schema) + ONE, [message(b"")])
        assert str(failed.value).startswith(f"the schema {schema}")
        assert why in str(failed.value)
