"""Random predicates and hostile messages, for holding the evaluator and Spark against each other."""

from __future__ import annotations

from random import Random

from engine.message import Record
from routes.errors import PredicateError
from routes.predicate import Predicate, parse
from routes.properties import JmsType, encode_type_name

NAMES = {"a": "a", "b": "b", "c": "c", '"x-y"': "x-y", "größe": "größe", '"p,q=r%"': "p,q=r%"}
"""Properties that messages have, by their spelling in predicates."""
FIELDS = ("JMSPriority", "JMSTimestamp", "JMSRedelivered", "JMSType", "msg.header.CorrelationId", "msg.address")
NUMBERS = (
    *("0", "1", "2", "3", "5", "7", "017", "0x1F", "16777217", "9007199254740993", "9223372036854775807", "5L"),
    *("0.0", "0.1", "0.1f", "0.5", "1.5", "5.", "2.5f", "7e3", "1e308", "3.4e38f", "1e-45f", "16777217f", "4.9e-324"),
)
TEXTS = (
    *("", "0", "1", "5", "-5", "+5", "05", " 5", "5 ", "5\n", "7", "1_000", "0x10", "5L", "5d", "1e3", "5.", ".5", "."),
    *("0.1", "-0.0", "0.10000000149011612", "1e-45", "3.4028235e38", "1e39", "1e999", "16777217", "16777217.0"),
    *("9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "NaN", "nan"),
    *("Infinity", "-Infinity", "true", "TRUE", "false", "False", "t", "foo", "foo-topic", "it's", "a%b", "a_b", "a\\b"),
    *("fo", "foofoo", "f\noo", "\u0665", "\U0001f600", "\ufffd", "a\ufffdb", "\u0130", "128", "40000", "3000000000"),
)
BYTES = (b"\xff", b"fo\xc3", b"\xed\xa0\x80", b"a\xf0\x9f\x98b", b"\xc0\x80", b"foo\x00", b"\xf0\x90oo")
PATTERNS = (
    "%",
    "_",
    "",
    "foo",
    "fo%",
    "%oo",
    "%o%",
    "f_o",
    "_oo%",
    "%f%o",
    "f%o%o",
    "a\\%b",
    "%\\_%",
    "a\ufffd%",
    ".*",
)
MALFORMED_TYPES = (
    *(b"", b",", b"a", b"a=", b"=int", b"a=INT", b"a=int ", b" a=int", b"a==int", b"%61=int", b"a=int,a=string"),
    *(b"a=string,b", b"xa=int,b=float", b"a=in,a=float", b"\xff,a=long", b"a=int\n,b=double", b"p%2cq%3dr%25=int"),
)


def predicate(random: Random) -> Predicate:
    """A predicate of any shape, up to a few levels deep."""
    while True:
        try:
            return parse(_condition(random, random.randint(0, 3)))
        except PredicateError:
            # Not all that can be drawn fits together, such as text in arithmetic.
            continue


def record(random: Random) -> Record:
    """A journal record whose headers may be doubled, empty, no UTF-8, of no type or of a wrong one."""
    headers: list[tuple[str, bytes | None]] = []
    types: list[str] = []
    for name in (*NAMES.values(), *("JMSPriority", "JMSTimestamp", "JMSRedelivered", "JMSType", "JMSCorrelationID")):
        copies = random.choice((0, 1, 1, 1, 1, 2))
        headers += [(f"jms.{name}", _value(random)) for _ in range(copies)]
        if random.random() < 0.7:
            types.append(f"{encode_type_name(name)}={random.choice(tuple(JmsType))}")
    if random.random() < 0.8:
        prefix = random.choice((b"queue:", b"topic:", b"", b"queue:topic:"))
        headers.append(("jms.JMSDestination", prefix + (_value(random) or b"")))
    if random.random() < 0.7:
        malformed = random.random() < 0.2
        headers.append(("jmsbridge.types", random.choice(MALFORMED_TYPES) if malformed else ",".join(types).encode()))
    random.shuffle(headers)
    return Record(None, b"", tuple(headers))


def _value(random: Random) -> bytes | None:
    kind = random.random()
    if kind < 0.05:
        return None
    return random.choice(BYTES) if kind < 0.15 else random.choice(TEXTS).encode()


def _condition(random: Random, depth: int) -> str:
    if depth > 0 and random.random() < 0.8:
        shape = random.choice(("{} AND {}", "{} OR {}", "{} && {}", "({} || {})", "NOT {}", "!({})", "({})"))
        return shape.format(*(_condition(random, depth - 1) for _ in range(shape.count("{}"))))
    negation = random.choice(("", "NOT "))
    match random.randrange(9):
        case 0:
            low, high = _value_text(random, 1), _value_text(random, 1)
            return f"{_value_text(random, 1)} {negation}BETWEEN {low} AND {high}"
        case 1:
            constants = [quoted(random.choice(TEXTS)) for _ in range(random.choice((0, 1, 2, 20)))]
            constants += [random.choice(NUMBERS) for _ in range(random.choice((0, 0, 1, 5)))]
            random.shuffle(constants)
            return f"{_name(random)} {negation}IN ({', '.join(constants or ['0'])})"
        case 2:
            escape = random.choice(("", " ESCAPE '\\'"))
            return f"{_name(random)} {negation}LIKE {quoted(random.choice(PATTERNS))}{escape}"
        case 3:
            return f"{_name(random)} IS {negation}NULL"
        case 4:
            return random.choice((_name(random), "TRUE", "FALSE"))
        case 5:
            word = random.choice(("foo", "foo-topic", "5", "-5", "0.1", "05", "true", "a/b", "IN"))
            return f"{_name(random)}{random.choice(('==', '!='))}{word}"
    sign = random.choice(("=", "<>", "<", "<=", ">", ">=", "=", "<>"))
    return f"{_value_text(random, 2)} {sign} {_value_text(random, 2)}"


def _value_text(random: Random, depth: int) -> str:
    if depth > 0 and random.random() < 0.35:
        if random.random() < 0.15:
            return f"-({_value_text(random, depth - 1)})"
        return f"({_value_text(random, depth - 1)} {random.choice('+-*/')} {_value_text(random, depth - 1)})"
    kind = random.random()
    if kind < 0.55:
        return _name(random)
    if kind < 0.85:
        return random.choice(("", "-")) + random.choice(NUMBERS)
    return random.choice(("TRUE", "FALSE", *(quoted(random.choice(TEXTS)) for _ in range(4))))


def _name(random: Random) -> str:
    return random.choice((*NAMES, *NAMES, *FIELDS, "missing"))


def quoted(text: str) -> str:
    """A text as a constant."""
    return "'" + text.replace("'", "''") + "'"
