"""Bodies are encoded alike in the router's JVM and in Python, or refused with the same words."""

from __future__ import annotations

import json
import struct
from random import Random
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from engine.schemas.body_json import UnfitBodyError
from engine.schemas.encoders import Encoder, encoder
from tests.encoded_bodies import AvroCases, SchemaCase, misfits, written

SEEDS = 60


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
    assert encoded > 500
    assert refused > 500
