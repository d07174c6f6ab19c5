"""Documents of bodies with a schema are the same in the router's JVM and in Python, or there is none in either."""

from __future__ import annotations

import json
import re
import struct
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from engine.schemas.documents import Documents
from engine.schemas.jvm_registry import jvm_registry
from engine.schemas.named_schemas import NamedSchemas
from engine.schemas.registry import RegistryClient
from engine.schemas.schema_json import schemas_json
from engine.schemas.section import SchemaConfig
from routes.predicate.bodies import BodyOrigin, UnreadableBodyError
from routes.schema_names import SchemaKind, SchemaName, SourceSchema
from tests.registry_server import RegistryServer, registry_server
from tests.schema_bodies import AvroBodies, ProtobufBodies, damaged, framed, read_json

AVRO, PROTOBUF = 40, 80
"""Numbers of random schemas."""
LONG_NUMBER = re.compile(rb"[\x80-\xff]{4}[\x10-\xff]")
"""More than 32 bits, which the number of a field cannot have: Java's library drops some, that of Python refuses it."""


@pytest.fixture(scope="module")
def server() -> Iterator[RegistryServer]:
    with registry_server() as server:
        yield server


class Both:
    """Readers in the JVM and in Python, which ask one registry."""

    def __init__(self, spark: SparkSession, server: RegistryServer, copies: Path | None = None) -> None:
        config = SchemaConfig(urls=(server.url,), copies=copies)
        jvm: Any = spark._jvm
        self._java = jvm.jmsbridge.serdes.Documents(jvm_registry(config, spark))
        self._python = Documents(RegistryClient(config))

        self._origin = BodyOrigin("", "")
        self._java_origin = jvm.jmsbridge.serdes.BodyOrigin("", "")

    def java(self, body: bytes) -> tuple[str, Any]:
        try:
            found = self._java.read(body, self._java_origin)
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() != "UnfitValueException":
                raise
            return "", str(error.java_exception.getMessage())
        return found.type(), bytes(found.json())

    def python(self, body: bytes) -> tuple[str, Any]:
        try:
            found = self._python.document(body, self._origin)
        except UnreadableBodyError as error:
            return "", str(error)
        return found.format, found.content

    def agree(self, body: bytes) -> bool:
        """Whether there is a document, which is the same in both."""
        java, python = self.java(body), self.python(body)
        assert java[0] == python[0], (body.hex(), java, python)
        if not java[0]:
            return False
        assert read_json(java[1]) == read_json(python[1]), body.hex()
        return True


class BothBare(Both):
    """Readers in the JVM and in Python of the bare values of a source, whose schema is in a file."""

    def __init__(self, spark: SparkSession, kind: SchemaKind, file: Path, message: str = "") -> None:
        jvm: Any = spark._jvm
        source = SourceSchema("s", SchemaName(kind, file, message=message), takes_text=False)
        self._java = jvm.jmsbridge.serdes.SourceSchemas.documents(None, schemas_json((source,), file.parent))
        self._python = Documents(None, (source,), NamedSchemas(file.parent, None))
        self._origin = BodyOrigin("s", "bytes")
        self._java_origin = jvm.jmsbridge.serdes.BodyOrigin("s", "bytes")

    def agree_on_damaged(self, draw: Random, value: bytes) -> tuple[int, int]:
        """Numbers of damaged values of which there is a document, and of which there is none."""
        found = [self.agree(each[5:]) for each in damaged(draw, framed(0, value)) if not LONG_NUMBER.search(each)]
        return found.count(True), found.count(False)


def serve(server: RegistryServer, number: int, schema: str, form: str = "AVRO") -> None:
    answer = (200, {"schemaType": form, "schema": schema})
    server.answers[f"/schemas/ids/{number}"] = [answer]
    server.answers[f"/schemas/ids/{number}?format=serialized"] = [answer]


def test_avro_values(spark: SparkSession, server: RegistryServer) -> None:
    both = Both(spark, server)
    agreed = refused = 0
    for number in range(1_000, 1_000 + AVRO):
        draw = Random(number)
        drawn = AvroBodies(draw)
        serve(server, number, json.dumps(drawn.schema))
        for _ in range(5):
            body, _ = drawn.body(number)
            assert both.agree(body)
            for each in damaged(draw, body):
                if both.agree(each):
                    agreed += 1
                else:
                    refused += 1
    assert min(agreed, refused) > 100


def test_protobuf_messages(spark: SparkSession, server: RegistryServer) -> None:
    both = Both(spark, server)
    agreed = refused = 0
    for number in range(2_000, 2_000 + PROTOBUF):
        draw = Random(number)
        drawn = ProtobufBodies(draw)
        serve(server, number, b64encode(drawn.file.SerializeToString()).decode(), "PROTOBUF")
        for _ in range(5):
            body, _ = drawn.body(number)
            assert both.agree(body)
            for each in damaged(draw, body):
                if LONG_NUMBER.search(each):
                    continue
                if both.agree(each):
                    agreed += 1
                else:
                    refused += 1
    assert min(agreed, refused) > 100


def test_bare_avro_values(spark: SparkSession, tmp_path: Path) -> None:
    agreed = refused = 0
    for number in range(5_000, 5_000 + AVRO):
        draw = Random(number)
        drawn = AvroBodies(draw)
        file = tmp_path / f"{number}.avsc"
        file.write_text(json.dumps(drawn.schema))
        both = BothBare(spark, SchemaKind.AVRO, file)
        for _ in range(5):
            body, document = drawn.body(number)
            assert both.agree(body[5:])
            assert read_json(both.java(body[5:])[1]) == document
            found = both.agree_on_damaged(draw, body[5:])
            agreed, refused = agreed + found[0], refused + found[1]
    assert min(agreed, refused) > 100


def test_bare_protobuf_messages(spark: SparkSession, tmp_path: Path) -> None:
    agreed = refused = 0
    for number in range(6_000, 6_000 + PROTOBUF):
        draw = Random(number)
        drawn = ProtobufBodies(draw)
        file = tmp_path / f"{number}.desc"
        file.write_bytes(FileDescriptorSet(file=[drawn.file]).SerializeToString())
        for index in range(3):
            both = BothBare(spark, SchemaKind.PROTOBUF, file, f"shop.M{index}" if index else "")
            value, document = drawn.message(index)
            assert both.agree(value)
            assert read_json(both.java(value)[1]) == document
            found = both.agree_on_damaged(draw, value)
            agreed, refused = agreed + found[0], refused + found[1]
    assert min(agreed, refused) > 100


def test_floating_numbers(spark: SparkSession, server: RegistryServer) -> None:
    both = Both(spark, server)
    serve(server, 1, json.dumps({"type": "array", "items": "float"}))
    serve(server, 2, json.dumps({"type": "array", "items": "double"}))
    draw = Random(1)
    floats = [struct.pack("<I", exponent << 23 | rest) for exponent in range(255) for rest in (0, 1, (1 << 23) - 1)]
    floats += [struct.pack("<I", number) for number in range(64)] + [draw.randbytes(4) for _ in range(3_000)]
    doubles = [struct.pack("<Q", exponent << 52) for exponent in range(2_047)]
    doubles += [struct.pack("<Q", number) for number in range(64)] + [draw.randbytes(8) for _ in range(3_000)]
    for number, values in ((1, floats), (2, doubles)):
        for begin in range(0, len(values), 50):
            part = values[begin : begin + 50]
            assert both.agree(framed(number, bytes((len(part) * 2,)) + b"".join(part) + b"\0"))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "fixed", "name": "F", "size": (1 << 31) - 3}, bytes(8)),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ({"type": "map", "values": "null"}, b"\xfd\xff\xff\xff\xff\xff\xff\xff\xff\x01\0"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9}, b"\xc0\xf0\x7a" + b"\x7f" * 1_000_000),
        ({"type": "record", "name": "R", "fields": [{"name": "r", "type": ["null", "R"]}]}, b"\2" * 100_000),
        ({"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}, b""),
        ("string", b"\xfe\xff\xff\xff\x0f"),
        ("int", b"\xff\xff\xff\xff\xff\1"),
    ],
)
def test_hostile_avro_values_are_refused(
    spark: SparkSession, server: RegistryServer, schema: Any, value: bytes
) -> None:
    serve(server, 3_000, json.dumps(schema))
    assert not Both(spark, server).agree(framed(3_000, value))


def test_the_least_number_of_items_ends_a_map(spark: SparkSession, server: RegistryServer) -> None:
    serve(server, 3_001, '{"type": "map", "values": "null"}')
    assert Both(spark, server).agree(framed(3_001, b"\xff" * 9 + b"\1\0"))


def test_both_read_the_copies_that_the_other_has_kept(
    spark: SparkSession, server: RegistryServer, tmp_path: Path
) -> None:
    subject = "größe/a b~c.*+%"
    refers = {"name": "R", "subject": subject, "version": 3}
    answer = {"id": 4, "version": 3, "schema": '{"type": "enum", "name": "R", "symbols": ["A"]}'}
    for number in (4_000, 4_001):
        serve(server, number, '{"type": "array", "items": "R"}')
        server.answers[f"/schemas/ids/{number}"][0][1]["references"] = [refers]
    server.answers[f"/subjects/{quote(subject, safe='')}/versions/3"] = [(200, answer)]
    server.answers[f"/subjects/{quote(subject, safe='*').replace('~', '%7E')}/versions/3"] = [(200, answer)]
    value = b"\2\0\0"
    both = Both(spark, server, tmp_path)
    assert both.java(framed(4_000, value))[1] == both.python(framed(4_001, value))[1] == b'["A"]'
    assert len(list(tmp_path.glob("*/subjects/*"))) == 1, "one spelling of the subject"
    server.fault = (503, {})
    away = Both(spark, server, tmp_path)
    assert away.agree(framed(4_000, value))
    assert away.agree(framed(4_001, value))
    server.fault = None
