"""Keys of records: the router's check of a key and its reading of declared types agree with those of `explain`."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from engine.explain.explanation import _key_is_valid
from engine.router.plan.keys import key_check
from engine.router.plan.language import declared_type
from engine.topologies.library.row import HeaderView, JvmFunctions
from routes.keys.pattern import DEFAULT_KEY_PATTERN
from routes.properties import JmsType, decode_types

_CHARACTERS = "aZ059-_.:@#+/={} \n\t\"'%é߀日١́\u200d\u00bd\ufffd\U0001f600"
_TYPES = [None, *JmsType]


def _checked(spark: SparkSession, pattern: str, rows: list[tuple[str | None, bytes | None]]) -> list[bool]:
    frame = spark.createDataFrame(rows, "kind string, key binary")
    check = key_check(JvmFunctions(spark), pattern, F.col("kind"), F.col("key"))
    return [row[0] for row in frame.select(check).collect()]


@pytest.mark.parametrize("pattern", [DEFAULT_KEY_PATTERN, "[A-Z]+-[0-9]+", "[^ ]*", "a|Z.*"])
def test_keys_that_the_router_and_explain_accept_are_the_same(spark: SparkSession, pattern: str) -> None:
    chosen = random.Random(7)  # noqa: S311
    texts = [
        "A-1",
        "--",
        "",
        "a\n",
        *("".join(chosen.choices(_CHARACTERS, k=chosen.randint(1, 4))) for _ in range(500)),
    ]
    pairs = [(text, chosen.choice(_TYPES)) for text in texts]
    found = _checked(spark, pattern, [(kind or "", text.encode()) for text, kind in pairs])
    # A number that a JMS client sends has characters, and one line.
    wanted = [
        _key_is_valid(text, kind, pattern) and (kind in (None, JmsType.STRING) or ("\n" not in text and text != ""))
        for text, kind in pairs
    ]
    assert found == wanted
    assert {True, False} <= set(wanted)


def test_there_is_no_valid_key_without_bytes_or_type(spark: SparkSession) -> None:
    assert _checked(spark, "a", [(None, b"a"), ("", None), (None, None)]) == [False] * 3


def test_declared_types_are_those_that_python_reads(spark: SparkSession) -> None:
    chosen = random.Random(11)  # noqa: S311
    parts = ["a=int", "a=string", "b=long", "a=INT", "a", "=int", "a=", "aa=int", "a%2C=double", "a=int=int", ""]
    texts = [None, *(",".join(chosen.choices(parts, k=chosen.randint(0, 4))) for _ in range(300))]
    headers = [[] if text is None else [("x", b"y"), ("jmsbridge.types", text.encode())] for text in texts]
    frame = spark.createDataFrame([(each,) for each in headers], "headers array<struct<key: string, value: binary>>")
    view = HeaderView(F.col("headers"), JvmFunctions(spark))
    rows = frame.select(*(declared_type(view, name) for name in ("a", "b", "a,"))).collect()
    known = [decode_types(text or "") for text in texts]
    assert [tuple(row) for row in rows] == [tuple(types.get(name, "") for name in ("a", "b", "a,")) for types in known]
