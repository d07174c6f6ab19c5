"""Predicates about XML bodies: Spark says what the evaluator says, whatever the body holds."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from hypothesis import given
from hypothesis import strategies as st

from routes.predicate import Predicate, parse
from routes.predicate.bodies import BOUNDS
from tests.spark.predicate.test_bodies import agree
from tests.spark.predicate.test_columns import many_seeds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("a", "b", "a-b", "größe", "x.y", "_1")
TEXTS = ("", "x", " 5 ", "5", "1.50", ".5", "5.", "1e2", "1e", "+7", "-0", "NaN", "a<b&c", "größe", "\U0001f600", "]]")
NUMBERS = ("0", "5", "1.5", "0.5", "100", "7", "1780921717355446273")
ROOT = b"<a><b>5</b></a>"
HOSTILE = (
    b"", b" ", b"\x00", b"5", b"<", b"<a", b"<a>", b"<a/>", b"<a/><a/>", b"<a></b>", b" <a><b>5</b></a> ",
    ROOT + b"x", b"\xef\xbb\xbf" + ROOT, b"\xef\xbb\xbf\xef\xbb\xbf" + ROOT, ROOT.decode().encode("utf-16"),
    ROOT + b"\x00", ROOT.decode().encode("utf-16-le"), b"\xff\xfe<", ROOT.decode().encode("utf-32"),
    b"<a><b>\xff</b></a>", b'<?xml version="1.0"?>' + ROOT, b' <?xml version="1.0"?>' + ROOT,
    b'<?xml version="1.1"?>' + ROOT, b"<?xml?>" + ROOT,
    b'<?xml version="1.0" encoding="ISO-8859-1"?><a><b>gr\xf6\xdfe</b></a>',
    '<?xml version="1.0" encoding="ISO-8859-1"?><a><b>größe</b></a>'.encode(),
    '<?xml version="1.0" encoding="UTF-16"?><a><b>größe</b></a>'.encode(),
    '<?xml version="1.0" encoding="UTF-16"?><a><b>größe</b></a>'.encode("utf-16"),
    b'<?xml version="1.0" encoding="windows-1252"?><a><b>\x80</b></a>',
    b'<?xml version="1.0" encoding="UTF-8"?><a><b>\xed\xa0\x80</b></a>', b"<!DOCTYPE a><a><b>5</b></a>",
    b'<!DOCTYPE a [<!ENTITY e "5">]><a><b>&e;</b></a>', b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a><b>5</b></a>',
    b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a><b>&e;</b></a>',
    b'<!DOCTYPE a [<!ENTITY a "x"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><a><b>&b;</b></a>', b"<a><b>&e;</b></a>",
    b"<a><b>&amp;&lt;&#53;&#x35;</b></a>", b"<a><b>&#0;</b></a>", b"<a><b>&#xD800;</b></a>",
    b"<a><b>&#x1F600;</b></a>", b"<a><b>&#xFFFE;</b></a>", b"<a><b>\x01</b></a>", b"<a><b>\x7f</b></a>",
    b"<a><b>&</b></a>", "<a><b>\ufffe</b></a>".encode(), "<a><b>\ufffd</b></a>".encode(), b"<a><b>]]></b></a>",
    b"<a><b>a\r\nb\rc</b></a>", b"<a><b><![CDATA[<5>&]]></b></a>", b"<a><b>x<!-- - -->y</b></a>",
    b"<a><b>x<!-- -- -->y</b></a>", b"<a><b>x<?p y?>z</b></a>", b"<a><b>x<?xml y?>z</b></a>",
    b"<a><b>x<c>y<d>z</d></c>w</b></a>", b"<a><b/></a>", b"<a><b></b><b>5</b></a>", b'<a b="5" c="x"/>',
    b"<a b='5'/>", b"<a b=5/>", b'<a b="5" b="6"/>', b'<a b="<"/>', b'<a b="x\ny\tz"/>', b'<a b="&#10;"/>',
    b'<p:a xmlns:p="u"><p:b>5</p:b></p:a>', b'<a xmlns="u"><b>5</b></a>', b"<p:a><p:b>5</p:b></p:a>",
    b'<a xmlns:b="5"/>', b'<a xmlns:p="u" p:b="5"/>', b'<a xmlns:p="u" p:b="5" b="6"/>', b"<a><q:b:b>5</q:b:b></a>",
    b"<:a><:b>5</:b></:a>", b"<A><B>5</B></A>", b"<a ><b >5</b ></a >", b"< a/>", b"<a><1>5</1></a>",
    b"<a><b>5</b></a><!-- -->", b"<!-- --><a/>", b"<a>" * 99 + b"</a>" * 99, b"<a>" * 101 + b"</a>" * 101,
    b"<a>" * 100_000, b"<a " * 100_000, b"<a>" + b"<b>5</b>" * 20_000 + b"</a>",
    b"<a" + b"".join(b' c%d="5"' % n for n in range(20_000)) + b' b="5"/>',
    b"<a" + b"".join(b' xmlns:c%d="u"' % n for n in range(20_000)) + b' b="5"/>',
    b"<a><" + b"n" * 100_000 + b"/><b>5</b></a>", b"<a><b>" + b"5" * 100_000 + b"</b></a>",
    b"<a><b>1" + b"0" * 100_000 + b"</b></a>", b"<a><b>5e-" + b"0" * 100_000 + b"1</b></a>",
    b"<a><b>5</b>" + b" " * BOUNDS.size + b"</a>",
)  # fmt: skip


def element(random: Random, name: str, depth: int) -> str:
    """An element of that name, with any content."""
    attributes = "".join(
        f" {attribute}={quoteattr(random.choice(TEXTS))}" for attribute in random.sample(NAMES, random.randrange(3))
    )
    parts = [
        element(random, random.choice(NAMES), depth - 1) if depth and random.random() < 0.5 else text(random)
        for _ in range(random.randrange(5))
    ]
    prefix = random.choice(("", "", "p:"))
    return f"<{prefix}{name}{attributes}>{''.join(parts)}</{prefix}{name}>"


def text(random: Random) -> str:
    found = random.choice(TEXTS)
    return random.choice((escape(found).replace("]]>", "]]&gt;"), f"<![CDATA[{found}]]>", "<!-- x -->", "\n"))


def body(random: Random) -> bytes:
    if random.random() < 0.1:
        return random.choice(HOSTILE)
    made = element(random, random.choice(("a", "a", "b")), 3).encode()
    if random.random() < 0.1:
        at = random.randrange(len(made) + 1)
        return made[:at] + random.choice((b"", b"<", b"&", b"\xff", b"</a>")) + made[at + random.randrange(2) :]
    return made


def path(random: Random) -> str:
    steps = "/a" + "".join(
        f"/{random.choice(NAMES)}{random.choice(('', '', '[1]', '[2]', '[last()]'))}"
        for _ in range(random.randrange(3))
    )
    return steps + random.choice(("", "", "/text()", f"/@{random.choice(NAMES)}"))


def condition(random: Random) -> str:
    negation = random.choice(("", "NOT "))
    words = [f"'{word}'" for word in ("", "x", " 5 ", "5", "größe", "xx", "a<b&c")]
    match random.randrange(5):
        case 0:
            return f"xpath('{path(random)}') {negation}IN ({', '.join(random.sample(words, 3))})"
        case 1:
            return f"xpath('{path(random)}') {negation}LIKE '{random.choice(('x', '%x%', '_', '%', '%5'))}'"
        case 2:
            return f"xpath('{random.choice(('{}', 'number({})')).format(path(random))}') IS {negation}NULL"
        case 3:
            sign = random.choice(("=", "<>", "<", "<=", ">", ">="))
            return f"xpath('number({path(random)})') {sign} {random.choice(NUMBERS)}"
    return f"xpath('{path(random)}') {random.choice(('=', '<>'))} {random.choice(words)}"


def predicate(random: Random) -> Predicate:
    joined = random.choice(("{}", "{}", "NOT ({})", "{} AND {}", "{} OR {}"))
    return parse(joined.format(*(condition(random) for _ in range(joined.count("{}")))))


@many_seeds
@given(seed=st.integers(0, 2**32))
def test_spark_and_the_evaluator_agree_on_random_documents(spark: SparkSession, seed: int) -> None:
    random = Random(seed)  # noqa: S311 (no secret is made of it)
    assert agree(spark, [predicate(random) for _ in range(60)], [body(random) for _ in range(100)]) > 100


def test_hostile_documents_read_alike(spark: SparkSession) -> None:
    texts = (
        "xpath('/a/b') = '5'", "xpath('/a/b') LIKE '%'", "xpath('/a/b') IS NULL", "xpath('number(/a/b)') = 5",
        "xpath('/a/b/text()') LIKE '%'", "xpath('/a/@b') = '5'", "xpath('/a/@b') LIKE '%'", "xpath('/a') LIKE '%'",
        "xpath('/a/b[2]') = '5'", "xpath('/a/b[last()]') = '5'", "xpath('/a/b') = 'größe'",
        "xpath('/a/b[12000]') = '5'", "xpath('/a/b') = 'a\nb\nc'", "xpath('/a/@b') = 'x y z'", "xpath('/a/b') = '6'",
        "xpath('number(/a/b)') < 1",
    )  # fmt: skip
    agree(spark, [parse(text) for text in texts], [None, *HOSTILE])
