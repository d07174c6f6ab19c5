"""Predicates about bodies: Spark says what the evaluator says, whatever the body holds."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from routes.predicate import Predicate, evaluate, parse
from routes.predicate.bodies import BOUNDS, Body
from routes.predicate.columns import Rule, compile_predicate, first_match
from routes.properties import Property
from tests.spark.predicate.test_columns import many_seeds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

NAMES = ("a", "b", "c", "odd name", "größe", "\U0001f600", "a.b")
NUMBERS = (
    *("0", "-0", "1", "-1", "5", "1.0", "1e0", "100", "1e2", "1E+2", "0.1", "0.10", "0.5", "2.5", "1e-1", "-2.50"),
    *("9007199254740993", "9007199254740992", "1780921717355446273", "1780921717355446272", "9223372036854775807"),
    *(
        "9223372036854775808",
        "-9223372036854775808",
        "12345678901234567890123456789012345678",
        "0.1000000000000000055511",
    ),
    *("123456789012345678901234567890123456789", "1" + "0" * 60, "0." + "0" * 60 + "1", "1e6144", "1e6145", "1e-6144"),
    *("1e-6145", "1e99999999999999999999", "0e99999999999999999999", "1e308", "1e309", "16777217", "3.4028235e38"),
)
TEXTS = ("", "x", "it's", "5", "true", "a\nb", "größe", "\U0001f600", '"', "\\", "\ufffd", "DE")
WRONG_NUMBERS = ("01", "1.", ".5", "+1", "1e", "1e+", "-", "0x1", "NaN", "Infinity", "-Infinity", "1_0", "\u0665")
HOSTILE = (
    *(b"", b" ", b"\x00", b'\xef\xbb\xbf{"a":5}', b"\xef\xbb\xbf", b"\xef\xbb\xbf\xef\xbb\xbf5", b'{"a":5}\x00'),
    *('{"a":5}'.encode("utf-16"), '{"a":5}'.encode("utf-32"), b'{"a":"\xff"}', b'{"a":"\xed\xa0\x80"}', b'{"a":5} x'),
    *(b'{"a":5,}', b"[1,]", b'{"a" 5}', b"{a:5}", b"{'a':5}", b'{"a":5', b'{"a":"x', b'{"a":"\\', b'{"a":"\\u12'),
    *(
        b'{"a":"\\ud83d\\ude00"}',
        b'{"a":"\\ud83d"}',
        b'{"a":"\\ude00\\ud83d"}',
        b'{"a":"\\ud83dx"}',
        b'{"a":"\\u00e9"}',
    ),
    *(b'{"a":"\\x41"}', b'{"a":"\\U0041"}', b'{"a":"\\u+041"}', b'{"a":"a\x01b"}', b'{"a":"a\x7fb"}', b'{"a":"a\tb"}'),
    *(
        b'{"a":1,"a":5}',
        b'{"a":5,"a":{"b":1}}',
        b'{"a":[{"b":1,"b":5}],"a":[{"b":2}]}',
        b'{"\\u0061":5}',
        b'{"a":\x0c5}',
    ),
    *(
        b'{"a":tru}',
        b'{"a":truex}',
        b'{"a":TRUE}',
        b'{"a":nul}',
        b"5",
        b'"x"',
        b"true",
        b"null",
        b"[5]",
        b"5 5",
        b"/**/5",
    ),
    *(b"[" * 99 + b"5" + b"]" * 99, b"[" * 101 + b"]" * 101, b"[" * 100_000, b'{"a":' * 100_000, b"{" * 50, b"]"),
    *(b'{"a":' + b"1" * 100_000 + b"}", b'{"a":1' + b"0" * 100_000 + b"}", b'{"a":0.' + b"0" * 100_000 + b"5}"),
    *(b'{"a":5e-' + b"0" * 100_000 + b"1}", b'{"a":1' + b"0" * 100_000 + b"e-100000}", b'{"a":' + b"[5]," * 3),
    *(
        b'{"a":[' + b"1," * 20_000 + b"5]}",
        b'{"b":"' + b"x" * BOUNDS.size + b'","a":5}',
        b" " * (BOUNDS.size - 1) + b"5",
    ),
)


def document(random: Random, depth: int) -> str:
    """JSON with any spelling, sometimes with a mistake."""
    kind = random.random()
    if depth == 0 or kind < 0.4:
        if kind < 0.01:
            return random.choice(WRONG_NUMBERS)
        return random.choice((random.choice(NUMBERS), json.dumps(random.choice(TEXTS)), "true", "false", "null"))
    blank = random.choice(("", "", " ", "\n\t"))
    if kind < 0.6:
        inner = ",".join(document(random, depth - 1) for _ in range(random.randrange(4)))
        return f"[{blank}{inner}{blank}]"
    pairs = ((json.dumps(random.choice(NAMES)), document(random, depth - 1)) for _ in range(random.randrange(5)))
    return f"{{{blank}{','.join(f'{name}{blank}:{blank}{value}' for name, value in pairs)}}}"


def body(random: Random) -> bytes | None:
    kind = random.random()
    if kind < 0.02:
        return None
    if kind < 0.12:
        return random.choice(HOSTILE)
    made = document(random, 4).encode()
    if kind < 0.2:
        at = random.randrange(len(made) + 1)
        return made[:at] + random.choice((b"", b"}", b"\xff", b'"', b",")) + made[at + random.randrange(2) :]
    return made


def path(random: Random) -> str:
    steps = ""
    for _ in range(random.randrange(1, 4)):
        name = random.choice(NAMES)
        plain = f".{name}" if name in ("a", "b", "c", "größe") else f'."{name}"'
        steps += random.choice((plain, plain, "[*]", "[0]", "[1]", "[-1]"))
    return f"msg.body{random.choice((steps, steps, ''))}"


def condition(random: Random) -> str:
    negation = random.choice(("", "NOT "))
    asked = random.choice((path(random), path(random), path(random), "msg.text"))
    constants = [*NUMBERS[:27], *(f"'{text}'" for text in ("", "x", "it''s", "5", "größe", "DE"))]
    numbers = [number for number in NUMBERS[:20] if not number.startswith("-0")]
    match random.randrange(7):
        case 0:
            return f"{asked} {negation}IN ({', '.join(random.choice(constants) for _ in range(3))})"
        case 1:
            return f"{asked} {negation}LIKE '{random.choice(('x', '%x%', '_', '%', 'D%'))}'"
        case 2:
            return f"{asked} IS {negation}NULL"
        case 3:
            return f"{path(random)} {negation}BETWEEN {random.choice(numbers)} AND {random.choice(numbers)}"
        case 4:
            return f"{path(random)} {random.choice('+-*/')} {random.choice(numbers)} > {random.choice(numbers)}"
        case 5:
            return f"{negation}{path(random)}"
    sign = random.choice(("=", "<>", "<", "<=", ">", ">="))
    other = random.choice((*numbers, "TRUE", "'x'", path(random), "0.1f", "0.5f"))
    return f"{path(random)} {sign} {other}"


def predicate(random: Random) -> Predicate:
    from routes.errors import PredicateError

    while True:
        joined = random.choice(("{}", "{}", "NOT ({})", "{} AND {}", "{} OR {}"))
        try:
            return parse(joined.format(*(condition(random) for _ in range(joined.count("{}")))))
        except PredicateError:
            # Not all that can be drawn fits together, such as two paths with [*].
            continue


def nothing(_: str) -> None:
    return None


def frame_of(spark: SparkSession, bodies: Sequence[bytes | None]) -> Any:
    return spark.createDataFrame(
        [(None if each is None else bytearray(each),) for each in bodies], "value binary"
    ).withColumn("headers", F.lit(None).cast("array<struct<key: string, value: binary>>"))


def agree(spark: SparkSession, predicates: Sequence[Predicate], bodies: Sequence[bytes | None]) -> int:
    """Compares all predicates for all bodies; returns how many were true or false."""
    columns = [
        compile_predicate(each, F.col("headers"), F.col("value")).alias(f"p{n}") for n, each in enumerate(predicates)
    ]
    rows = frame_of(spark, bodies).select(*columns).collect()
    wrong, known = [], 0
    for content, row in zip(bodies, rows, strict=True):
        read = Body(content)
        for each, says in zip(predicates, row, strict=True):
            truth = evaluate(each, nothing, read)
            known += truth is not None
            if says is not truth:
                wrong.append(f"{each.text}: {says!r} and not {truth!r} for {(content or b'')[:200]!r}")
    assert not wrong, "\n".join(wrong[:10])
    return known


@many_seeds
@given(seed=st.integers(0, 2**32))
def test_spark_and_the_evaluator_agree_on_random_bodies(spark: SparkSession, seed: int) -> None:
    random = Random(seed)  # noqa: S311 (no secret is made of it)
    predicates = [predicate(random) for _ in range(60)]
    assert agree(spark, predicates, [body(random) for _ in range(100)]) > 100


def test_hostile_bodies_read_alike(spark: SparkSession) -> None:
    texts = (
        *(
            "msg.body = 5",
            "msg.body.a = 5",
            "msg.body.a > 0",
            "msg.body.a[*] = 5",
            "msg.body.a[*].b = 2",
            "msg.body[0] = 5",
        ),
        *("msg.body.a = 'x'", "msg.body.a LIKE '%'", "msg.body IS NULL", "msg.text IS NULL", "msg.text LIKE '%a%'"),
        *("msg.body[*] = 5", "msg.body.a[-1] = 5", "msg.body.a = TRUE", "msg.body.a[20000] = 5", "msg.body.a < 1e-300"),
    )
    agree(spark, [parse(text) for text in texts], [None, *HOSTILE])


def test_the_first_rule_that_wants_a_body_is_found(spark: SparkSession) -> None:
    rules: list[Rule] = [
        (parse("msg.body.kind = 'order' AND msg.body.lines[*].amount > 1000"), None),
        (parse("msg.body.kind = 'order'"), parse("msg.body.country IN ('DE', 'AT')")),
        (parse("msg.text LIKE '%urgent%'"), None),
    ]
    bodies = [
        b'{"kind":"order","lines":[{"amount":5},{"amount":1000.5}]}',
        b'{"kind":"order","lines":[{"amount":5}],"country":"DE"}',
        b'{"kind":"order","lines":[]}',
        b"urgent",
        b"{}",
    ]
    found = frame_of(spark, bodies).select(first_match(rules, F.col("headers"), F.col("value"))).collect()
    assert [row[0] for row in found] == [0, None, 1, 2, None]


def rule(random: Random) -> Rule:
    """A rule that is found by texts, beginnings or ranges of headers and bodies, or by none of these."""
    shapes = (
        "{0} = {2}",
        "{0} IN ({2}, {3})",
        "{0} = {2} AND {1} = {3}",
        "region = {2} AND {0} = {3}",
        "{0} = {2} OR {1} = {3}",
        "{0} LIKE 'D%'",
        "{0} >= {4}",
        "{0} = {4} AND region = {2}",
        "{0} IN ({2}, {4})",
        "{0} BETWEEN {4} AND 100",
        "{0} <> {2}",
        "region = {2}",
        "NOT {0} = {2}",
    )
    texts = [f"'{random.choice(('x', 'DE', '5', 'größe'))}'" for _ in range(2)]
    numbers = [number for number in NUMBERS[:20] if not number.startswith("-0")]
    made = random.choice(shapes).format(path(random), path(random), *texts, random.choice(numbers))
    exclude = predicate(random) if random.random() < 0.2 else None
    return parse(made), exclude


@many_seeds
@given(seed=st.integers(0, 2**32))
def test_the_first_rule_is_the_same_by_indexes_and_one_by_one(spark: SparkSession, seed: int) -> None:
    random = Random(seed)  # noqa: S311 (no secret is made of it)
    rules = [rule(random) for _ in range(random.choice((5, 40)))]
    messages = [(random.choice(("x", "DE", None)), body(random)) for _ in range(100)]
    rows = [
        ([("jms.region", None if region is None else bytearray(region.encode()))], value and bytearray(value))
        for region, value in messages
    ]
    frame = spark.createDataFrame(rows, "headers array<struct<key: string, value: binary>>, value binary")
    found = [row[0] for row in frame.select(first_match(rules, F.col("headers"), F.col("value"))).collect()]

    def first(region: str | None, content: bytes | None) -> int | None:
        properties = {} if region is None else {"region": Property(region, None)}
        body = Body(content)
        for number, (include, exclude) in enumerate(rules):
            excluded = exclude is not None and evaluate(exclude, properties.get, body) is True
            if evaluate(include, properties.get, body) is True and not excluded:
                return number
        return None

    assert found == [first(*message) for message in messages]
