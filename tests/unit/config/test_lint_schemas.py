"""Schemas of routes: what is wrong with their names, and with keys that do not go together, is told at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from routes.config import lint_text
from routes.keys.schemas import SCHEMA
from tests.unit.config.start import START

REGISTRY = "schema.registry.url=http://127.0.0.1:1\n"
AS_IN = "as in avro:orders-value@3, json-schema:schemas/order.json or protobuf:orders.desc#shop.Order"


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("orders", f"7:20: error: a schema has a format and a name ({AS_IN})"),
        ("xml:orders", f"7:20: error: 'xml' is not avro, protobuf or json-schema ({AS_IN})"),
        ("AVRO:orders", "7:20: error: 'AVRO' is not avro, protobuf or json-schema (did you mean avro?)"),
        ("avro:", f"7:25: error: the name of the schema is missing ({AS_IN})"),
        ("protobuf:a#1", f"7:31: error: '1' is not the name of a message ({AS_IN})"),
        (
            "avro:order.json",
            "7:25: error: a file 'order.json' has the form of json-schema (files of avro end in .avsc)",
        ),
        ("avro:a/order", "7:25: error: the file 'a/order' has another ending (files of avro end in .avsc)"),
    ],
)
def test_a_name_that_is_not_one(name: str, fault: str, tmp_path: Path) -> None:
    assert fault in told(f"routes.r.in.schema={name}\n", tmp_path)


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ("routes.r.in.body=avro\n", "'avro' needs a registry of schemas (set schema.registry.url)"),
        ("routes.r.in.schema=avro:a\n", "'avro:a' needs a registry of schemas (set schema.registry.url)"),
        ("routes.r.in.schema=avro:a.avsc\n", "'avro:a.avsc' needs a registry of schemas (set schema.registry.url)"),
        (
            "routes.r.out.schema=json-schema:here.json\n",
            "'json-schema:here.json' needs a registry of schemas (set schema.registry.url)",
        ),
        ("routes.r.in.schema=json-schema:gone.json\n", "there is no file 'gone.json'"),
        (f"{REGISTRY}routes.r.out.schema=avro:gone.avsc\n", "there is no file 'gone.avsc'"),
        (
            f"{REGISTRY}routes.r.in.body=json\nroutes.r.in.schema=avro:a\n",
            "'in.body' says that bodies are json, and 'avro:a' is for avro (remove one)",
        ),
        (
            f"{REGISTRY}routes.r.out.schema=avro:a\nroutes.r.out.subject=record\n",
            "'record' has no effect: no schema of a file is registered for the route",
        ),
        (
            f"{REGISTRY}routes.r.out.schema=avro:a\nroutes.r.out.convert=gzip\n",
            "'gzip' leaves no JSON to write by out.schema, which comes after it (remove one)",
        ),
    ],
)
def test_keys_that_do_not_go_together(lines: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "here.json").write_text("{}")
    assert fault in told(lines, tmp_path)


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ("avro:gone.avsc", "7:17: error: there is no file 'gone.avsc'"),
        ("avro:a", "7:17: error: 'avro:a' needs a registry of schemas (set schema.registry.url)"),
        (
            "json-schema:here.json",
            "'json-schema:here.json' is not a schema of Avro or Protobuf (remove it, as for JSON)",
        ),
    ],
)
def test_schemas_of_sources_are_found(schema: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "here.json").write_text("{}")
    assert fault in told(f"source.s.schema={schema}\n", tmp_path)


def test_bare_values_need_no_registry(tmp_path: Path) -> None:
    (tmp_path / "a.avsc").write_text('"string"')
    lines = "source.s.schema=avro:a.avsc\nroutes.r.in.body=avro\nroutes.r.in.schema=avro:a.avsc\n"
    assert "registry" not in told(lines, tmp_path)
    assert "needs a registry" in told(lines.replace("in.schema=avro:a.avsc", "in.schema=avro:a"), tmp_path)


def test_a_subject_that_depends_on_the_message(tmp_path: Path) -> None:
    (tmp_path / "a.avsc").write_text('"string"')
    start = START.replace("out.topic=t", "out.topic=t.${msg.address}") + REGISTRY + "routes.r.out.schema=avro:a.avsc\n"
    fault = "the subject would depend on each message's destination"
    assert fault in "\n".join(map(str, lint_text(start, base=tmp_path).faults))
    assert fault not in "\n".join(map(str, lint_text(start + "routes.r.out.subject=record\n", base=tmp_path).faults))


@pytest.mark.parametrize(
    "name",
    [
        "avro:a-value",
        "avro:a@3",
        "avro:com.acme.Order",
        "json-schema:schemas/a.json",
        "protobuf:a.desc#b.C",
        "avro:a@b",
    ],
)
def test_a_name_is_written_as_it_was_read(name: str) -> None:
    assert str(SCHEMA.parse(name)) == name


def told(lines: str, base: Path) -> str:
    return "\n".join(map(str, lint_text(f"{START}#\n{lines}", base=base).faults))
