"""Masks of the JVM leave the bodies and types that those in Python do, whatever a body holds."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from engine.router.plan.bodies import mask_json
from engine.topologies.library.row import HeaderView, JvmFunctions
from routes.errors import PredicateError
from routes.keys.language import BODY_PATHS
from routes.keys.values import BadValueError
from routes.predicate.bodies import Body
from routes.predicate.mask import Mask, MaskMethod
from routes.predicate.nodes import DocumentFormat
from tests.spark.predicate.test_bodies import HOSTILE, NAMES, body, frame_of, path
from tests.spark.predicate.test_columns import many_seeds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

SECRET = "0123456789abcdef0123456789abcdef"
LARGE = 10_000
WORST = (
    b"[" + b"[1,[2]]," * 5_000 + b"0]",
    b'{"a":[' + b'{"b":1,"b":[2]},' * 3_000 + b"0]}",
    b'{"a":' * 99 + b"[1]" + b"}" * 99,
    b"[" * 99 + b'{"a":1}' + b"]" * 99,
    b'{"a":{"b":[{"c":1},{"c":2}],"b":{"b":3}},"a":[1,2,3]}',
    b'\xef\xbb\xbf [ { "\\u0061" : "\\ud83d" , "\\ud83d":1, "\xef\xbf\xbd" : 2 } ] ',
    b'{"a":"\\u0000\\"\\\\\\/\\b\\f\\n\\r\\t\\uD83D\\uDE00\xc3\xa9","b":"\x7f\xe2\x80\xa8"}',
    b'{"":{"":1}}',
    b"[" + b"1," * 62_601 + b"1]",
    b"[" + b"1," * 62_600 + b"1]",
)


def random_mask(random: Random) -> Mask:
    while True:
        text = ", ".join(dict.fromkeys(path(random) for _ in range(random.choice((1, 2, 3, 8)))))
        try:
            return Mask(BODY_PATHS.parse(text), random.choice(list(MaskMethod)), SECRET)
        except (BadValueError, PredicateError):
            # A path without steps.
            continue


def given_to_the_jvm(spark: SparkSession, masks: Sequence[Mask]) -> str:
    text = json.dumps({str(number): mask_json(mask) for number, mask in enumerate(masks)})
    name = f"test-{hash(text)}"
    jvm: Any = spark._jvm
    jvm.jmsbridge.predicate.Masks.put(name, text)
    return name


def agree(spark: SparkSession, masks: Sequence[Mask], bodies: Sequence[bytes | None]) -> int:
    """Compares all masks for all bodies; returns how many bodies they changed."""
    name = given_to_the_jvm(spark, masks)
    headers = HeaderView(F.lit(None).cast("array<struct<key: string, value: binary>>"), JvmFunctions(spark))
    columns = [headers.call(f"mask:{name}", F.lit(str(n)), F.col("value")).alias(f"m{n}") for n in range(len(masks))]
    wrong, changed = [], 0
    for content, row in zip(bodies, frame_of(spark, bodies).select(*columns).collect(), strict=True):
        for mask, found in zip(masks, row, strict=True):
            left, says = mask.body(content), None if found is None else bytes(found)
            changed += left not in (None, content)
            if says != left:
                wrong.append(f"{mask}: {says!r:.300} and not {left!r:.300} for {content!r:.300}")
    assert not wrong, "\n".join(wrong[:10])
    return changed


@many_seeds
@given(seed=st.integers(0, 2**32))
def test_random_bodies_have_the_same_mask(spark: SparkSession, seed: int) -> None:
    random = Random(seed)  # noqa: S311 (no secret is made of it)
    assert agree(spark, [random_mask(random) for _ in range(40)], [body(random) for _ in range(100)]) > 100


def test_hostile_bodies_have_the_same_mask(spark: SparkSession) -> None:
    paths = (
        *("msg.body.a", "msg.body[*]", "msg.body[-1]", "msg.body.a.b", "msg.body.a, msg.body.a.b", 'msg.body.""'),
        *("msg.body[*].a, msg.body[0], msg.body[-1].a", "msg.body[*][-1], msg.body[*][-1][0]", 'msg.body[0]."\ufffd"'),
        *("msg.body.a[*].b, msg.body.a[-2].b", "msg.body" + ".a" * 99, "msg.body" + "[-1]" * 99 + ".a"),
    )
    masks = [Mask(BODY_PATHS.parse(text), method, SECRET) for text in paths for method in MaskMethod]
    bodies = (*HOSTILE, *WORST)
    assert agree(spark, masks, [None, *(each for each in bodies if len(each) < LARGE)]) > 100
    few = [mask for mask in masks if str(mask.paths[0]) in ("msg.body.a", "msg.body[*]", "msg.body[*][-1]")]
    assert agree(spark, few, [each for each in bodies if len(each) >= LARGE]) > 10


@many_seeds
@given(seed=st.integers(0, 2**32))
def test_types_are_the_same(spark: SparkSession, seed: int) -> None:
    random = Random(seed)  # noqa: S311 (no secret is made of it)
    masks = [random_mask(random) for _ in range(20)]
    name, functions = given_to_the_jvm(spark, masks), JvmFunctions(spark)
    cases = []
    for _ in range(100):
        content = body(random)
        if content is None or Body(content).fault(DocumentFormat.JSON):
            continue
        kind = random.choice(("map", "stream"))
        kinds = [random.choice(("int", "bytes", "char", "", "null")) for _ in range(random.randrange(5))]
        names = [random.choice((*NAMES, "a%3Db")) for _ in kinds]
        pairs = [f"{each}={its}" for each, its in zip(names, kinds, strict=True)]
        cases.append((bytearray(content), kind, ",".join(pairs if kind == "map" else kinds)))
    frame = spark.createDataFrame(cases, "value binary, kind string, types string")
    columns = [
        functions.call(f"mask-types:{name}", F.lit(str(n)), F.col("value"), F.col("kind"), F.col("types")).alias(
            f"t{n}"
        )
        for n in range(len(masks))
    ]
    for (content, kind, types), row in zip(cases, frame.select(*columns).collect(), strict=True):
        assert [*row] == [mask.types(bytes(content), types, is_map=kind == "map") for mask in masks]
