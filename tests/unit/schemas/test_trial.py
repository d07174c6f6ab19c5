"""A changed schema is tried on messages before it is registered."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest

from engine.errors import HardFailureError, UsageError
from engine.message import BodyType, Message
from engine.schemas.trial import Broken, SchemaTrial
from routes.config import loads
from routes.model import Config
from tests.registry_server import RegistryServer, registry_server

HEAD = """\
bridge.id=b1
source.s.type=stomp
source.s.destinations=queue:orders
routing.on-soft-failure=skip
"""
ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": "string"}


def record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Order", "fields": list(fields)}


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with registry_server() as server:
        answer = {"version": 1, "id": 7, "schema": json.dumps(record(ID))}
        server.answers["/subjects/orders-value/versions"] = [(200, [1])]
        for version in ("1", "latest"):
            server.answers[f"/subjects/orders-value/versions/{version}"] = [(200, answer)]
        server.answers["/schemas/ids/7"] = [(200, answer)]
        server.answers["/schemas/ids/8"] = [(200, {"schema": '"long"'})]
        yield server


def config(registry: RegistryServer, base: Path, routes: str) -> Config:
    return loads(f"{HEAD}schema.registry.url={registry.url}\n{routes}", base=base)


def trial(config: Config, schema: object, name: str = "order.avsc") -> SchemaTrial:
    place = config.path.parent / name
    place.write_text(json.dumps(schema))
    return SchemaTrial(config, "orders-value", place)


def value(number: int = 7) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(record(ID)), {"id": 1})
    return b"\0" + number.to_bytes(4, "big") + out.getvalue()


def message(body: bytes, kind: BodyType = BodyType.BYTES) -> Any:
    return Message(body, kind, {"JMSDestination": "queue:orders", "JMSMessageID": "ID:1"}).to_record()


PLAIN = "routes.r.in.include=TRUE\nroutes.r.out.topic=out\n"


def test_values_that_readers_could_not_read_any_more(registry: RegistryServer, tmp_path: Path) -> None:
    plain = config(registry, tmp_path, PLAIN)
    verdict = trial(plain, record(ID, NOTE)).verdict(message(value()))
    reason = "the schema with the id 7 does not fit avro:orders-value: a field without a default is missing at note"
    assert verdict.concerns
    assert verdict.broken == (Broken("", reason),)
    assert trial(plain, record(ID, {**NOTE, "default": ""})).verdict(message(value())).broken == ()
    other = trial(plain, record(ID, NOTE)).verdict(message(value(8)))
    assert (other.concerns, other.broken) == (False, ())


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            b'{"id": 1}',
            "the body cannot be written as avro:orders-value: msg.body.note does not fit",
        ),
        (b'{"id": 1, "note": "n"}', None),
        (b"no JSON", None),
    ],
)
def test_bodies_that_a_route_could_not_write_any_more(
    registry: RegistryServer, tmp_path: Path, body: bytes, reason: str | None
) -> None:
    writing = config(registry, tmp_path, f"{PLAIN}routes.r.out.schema=avro:orders-value\n")
    verdict = trial(writing, record(ID, NOTE)).verdict(message(body, BodyType.TEXT))
    assert verdict.concerns
    assert [each.route for each in verdict.broken] == ["r"] * (reason is not None)
    if reason:
        assert verdict.broken[0].reason.startswith(reason)


def test_a_pinned_version_has_nothing_to_do_with_it(registry: RegistryServer, tmp_path: Path) -> None:
    pinned = config(registry, tmp_path, f"{PLAIN}routes.r.out.schema=avro:orders-value@1\n")
    assert not trial(pinned, record(ID, NOTE)).verdict(message(b'{"id": 1}', BodyType.TEXT)).concerns


def test_wrong_input_is_told(registry: RegistryServer, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"does not end as a schema does: \.avsc for avro"):
        trial(config(registry, tmp_path, PLAIN), {}, "order.txt")
    with pytest.raises(UsageError, match=r"set schema\.registry\.url"):
        trial(loads(HEAD + PLAIN, base=tmp_path), {})
    with pytest.raises(HardFailureError, match="cannot be used"):
        SchemaTrial(config(registry, tmp_path, PLAIN), "orders-value", tmp_path / "gone.avsc")
