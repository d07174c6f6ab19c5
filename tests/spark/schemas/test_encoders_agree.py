"""Bodies are encoded alike in the router's JVM and in Python, or refused with the same words."""

from __future__ import annotations

import json
import struct
import time
from random import Random
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from engine.schemas.body_json import UnfitBodyError
from engine.schemas.encoders import Encoder, encoder
from tests.encoded_bodies import AvroCases, ProtobufCases, SchemaCase, misfits, written
from tests.encoder_examples import AVRO_EXAMPLES, HOSTILE, ORDER, PROTOBUF_EXAMPLES, SHOP

SEEDS = 30


class Encoders:
    """Encoders of one schema in the JVM and in Python."""

    def __init__(self, spark: SparkSession, kind: str, text: str, message: str = "") -> None:
        self._jvm: Any = spark._jvm
        self._kind = kind
        self._schema = self._jvm.jmsbridge.serdes.SchemaText(text, self._jvm.java.util.ArrayList())
        self._java = self._jvm.jmsbridge.serdes.BodyEncoder.of(kind, self._schema, message)
        self._python: Encoder = encoder(kind, SchemaCase(text), message)

    def java(self, body: bytes, from_xml: bool) -> bytes | str:
        try:
            return bytes(self._java.encode(body, from_xml))
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() != "UnfitValueException":
                raise
            return str(error.java_exception.getMessage())

    def both(self, body: bytes, from_xml: bool) -> bytes | str:
        """The value, or the reason why there is none, which is the same in both."""
        try:
            python: bytes | str = self._python.encode(body, from_xml=from_xml)
        except UnfitBodyError as error:
            python = str(error)
        assert self.java(body, from_xml) == python, (body, from_xml)
        return python

    def document(self, value: bytes) -> Any:
        """The document that routes see of a value."""
        registry = self._jvm.jmsbridge.serdes.MemoryRegistry()
        number = registry.register(self._kind, "subject", self._schema)
        found = self._jvm.jmsbridge.serdes.Documents(registry).read(struct.pack(">bi", 0, number) + value)
        return bytes(found.json())


def test_values_and_reasons_of_avro_are_the_same(spark: SparkSession) -> None:
    encoded = refused = 0
    for seed in range(SEEDS):
        draw = Random(seed)
        cases = AvroCases(draw, has_wide_unions=seed % 2 == 1)
        encoders = Encoders(spark, "AVRO", json.dumps(cases.schema))
        for _ in range(3):
            body, expected = cases.case()
            value = encoders.both(written(body), from_xml=False)
            if seed % 2 == 0:
                assert value == expected
                # What routes read of the value is the body with all defaults, and encodes to the same again.
                assert encoders.both(encoders.document(expected), from_xml=False) == expected
            for each in misfits(draw, body):
                for from_xml in (False, True):
                    found = encoders.both(each, from_xml)
                    encoded += isinstance(found, bytes)
                    refused += isinstance(found, str)
    assert encoded > 200
    assert refused > 200


def test_values_and_reasons_of_protobuf_are_the_same(spark: SparkSession) -> None:
    encoded = refused = 0
    for seed in range(SEEDS):
        draw = Random(seed)
        cases = ProtobufCases(draw)
        encoders = Encoders(spark, "PROTOBUF", cases.schema, cases.message)
        for _ in range(3):
            body, expected = cases.case()
            value = encoders.both(written(body), from_xml=False)
            assert isinstance(value, bytes)
            assert cases.read(value) == expected
            assert encoders.both(encoders.document(value), from_xml=False) == value
            for each in misfits(draw, body):
                for from_xml in (False, True):
                    found = encoders.both(each, from_xml)
                    encoded += isinstance(found, bytes)
                    refused += isinstance(found, str)
    assert encoded > 200
    assert refused > 200


@pytest.mark.parametrize(
    ("kind", "schema", "examples"), [("AVRO", ORDER, AVRO_EXAMPLES), ("PROTOBUF", SHOP, PROTOBUF_EXAMPLES)]
)
def test_examples_and_hostile_bodies_are_the_same(
    spark: SparkSession, kind: str, schema: str, examples: list[tuple[str, bool, bytes | str]]
) -> None:
    encoders = Encoders(spark, kind, schema)
    for body, from_xml, expected in examples:
        assert encoders.both(body.encode(), from_xml) == expected
    for each in HOSTILE:
        begin = time.monotonic()
        encoders.both(each, from_xml=False)
        encoders.both(each, from_xml=True)
        assert time.monotonic() - begin < 60


@pytest.mark.parametrize("kind", ["AVRO", "PROTOBUF", "JSON"])
def test_a_schema_that_cannot_be_used_is_refused(spark: SparkSession, kind: str) -> None:
    with pytest.raises(IllegalArgumentException):
        Encoders(spark, kind, "{")
