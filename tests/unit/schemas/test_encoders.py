"""Encoders of JSON bodies: their values are those of the libraries, and faults say where and what."""

from __future__ import annotations

import json
from random import Random

import pytest

from engine.schemas.encoders import encoder
from tests.encoded_bodies import AvroCases, SchemaCase, written


@pytest.mark.parametrize("seed", range(300))
def test_a_body_becomes_the_value_that_a_library_makes(seed: int) -> None:
    cases = AvroCases(Random(seed))
    made = encoder("AVRO", SchemaCase(json.dumps(cases.schema)))
    for _ in range(10):
        body, expected = cases.case()
        assert made.encode(written(body), from_xml=False) == expected, (cases.schema, body)
