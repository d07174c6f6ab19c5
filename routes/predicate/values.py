"""Values in predicates at run time, with comparison and arithmetic (Jakarta Messaging 3.1, 3.8.1.1).

None stands for NULL, where a message has no value. `jmsbridge.predicate.Value` (`jvm/spark`) does the same for Spark.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, auto
from typing import Any

from routes.predicate import numbers
from routes.predicate.nodes import ADDRESS, Literal, Operator
from routes.properties import JmsType, Property

__all__ = ["ComparisonKind", "Lookup", "Value", "calculate", "compare", "constant", "find", "negate", "of_body", "read"]

Lookup = Callable[[str], Property | None]
"""Function that returns the value of a JMS field or property by its name: `Message.lookup`."""

_INTEGER_BITS = {JmsType.BYTE: 8, JmsType.SHORT: 16, JmsType.INT: 32, JmsType.LONG: 64}
_NUMBER = re.compile(numbers.NUMBER_TEXT)
_SPECIAL = re.compile(numbers.SPECIAL_TEXT)
_DESTINATION = re.compile("(?:queue|topic):")
_COMPARE: Mapping[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}


class ComparisonKind(Enum):
    """The kinds as which values are compared."""

    TEXT = auto()
    BOOLEAN = auto()
    EXACT = auto()
    SINGLE = auto()
    DOUBLE = auto()
    DECIMAL = auto()
    """A number of a body, with up to 38 digits."""
    BYTES = auto()
    """Unequal to everything, other bytes included."""
    UNTYPED = auto()
    """Text from a wire without types: read as the kind it is compared with."""


_NUMBERS = (ComparisonKind.EXACT, ComparisonKind.SINGLE, ComparisonKind.DOUBLE, ComparisonKind.DECIMAL)
_LIMIT = Decimal(2**64)


@dataclass(frozen=True, slots=True)
class Value:
    """A value other than NULL; text for TEXT, UNTYPED and BYTES, else bool, int or float."""

    kind: ComparisonKind
    value: str | bool | int | float | Decimal
    written: Decimal | None = None
    """The number that a constant of kind DOUBLE writes, which a double may only approximate."""

    @property
    def number(self) -> Value | None:
        """The number that the value is or reads as; None for other values."""
        if self.kind is ComparisonKind.UNTYPED:
            return _number(str(self.value))
        return self if self.kind in _NUMBERS else None

    @property
    def truth(self) -> bool | None:
        """The boolean that the value is or reads as, `true` and `false` in any case; None for other values."""
        if self.kind is ComparisonKind.UNTYPED:
            return _truth(str(self.value))
        return bool(self.value) if self.kind is ComparisonKind.BOOLEAN else None

    @property
    def text(self) -> str | None:
        """The text that the value is or reads as; None for other values."""
        return str(self.value) if self.kind in (ComparisonKind.TEXT, ComparisonKind.UNTYPED) else None


def of_body(value: str | bool | Decimal | None) -> Value | None:
    """Returns the value of what a body has; texts are never read as numbers."""
    match value:
        case None:
            return None
        case bool():
            return Value(ComparisonKind.BOOLEAN, value)
        case str():
            return Value(ComparisonKind.TEXT, value)
    return Value(ComparisonKind.DECIMAL, value)


def find(lookup: Lookup, name: str) -> Value | None:
    """Returns the value under a name of the message, `ADDRESS` among the names; None for NULL."""
    if name != ADDRESS:
        return read(lookup(name))
    destination = read(lookup("JMSDestination"))
    return (
        None
        if destination is None
        else Value(ComparisonKind.TEXT, _DESTINATION.sub("", str(destination.value), count=1))
    )


def read(found: Property | None) -> Value | None:
    """Returns the value of a property; None if it is missing, or its text is not of its declared type."""
    if found is None:
        return None
    text, kind = found.text, found.type
    if kind is None:
        return Value(ComparisonKind.UNTYPED, text)
    if kind is JmsType.STRING:
        return Value(ComparisonKind.TEXT, text)
    if kind is JmsType.BYTES:
        return Value(ComparisonKind.BYTES, text)
    if kind is JmsType.BOOLEAN:
        truth = _truth(text)
        return None if truth is None else Value(ComparisonKind.BOOLEAN, truth)
    if kind is JmsType.FLOAT or kind is JmsType.DOUBLE:
        return _approximate(text, single=kind is JmsType.FLOAT)
    value = numbers.exact(text)
    limit = 1 << (_INTEGER_BITS[kind] - 1)
    return Value(ComparisonKind.EXACT, value) if value is not None and -limit <= value < limit else None


def constant(literal: Literal) -> Value:
    """Returns the value of a literal."""
    match literal.value:
        case bool():
            return Value(ComparisonKind.BOOLEAN, literal.value)
        case int():
            return Value(ComparisonKind.EXACT, literal.value)
        case float():
            if literal.single:
                return Value(ComparisonKind.SINGLE, literal.value)
            return Value(ComparisonKind.DOUBLE, literal.value, literal.written)
    return Value(ComparisonKind.TEXT, literal.value)


def compare(sign: Operator, left: Value | None, right: Value | None) -> bool | None:
    """Compares two values: unknown if either is NULL, false if their kinds are unlike, else the operator's result."""
    if left is None or right is None:
        return None
    test = _COMPARE[sign]
    if sign in (Operator.EQ, Operator.NE):
        if left.text is not None and right.text is not None:
            return test(left.text, right.text)
        if left.truth is not None and right.truth is not None:
            return test(left.truth, right.truth)
    if left.number is not None and right.number is not None:
        if ComparisonKind.DECIMAL in (left.kind, right.kind):
            return test(*_exactly(left.number, right.number))
        _, first, second = _promote(left.number, right.number)
        return test(first, second)
    return False


def calculate(sign: Operator, left: Value | None, right: Value | None) -> Value | None:
    """Calculates with two values; NULL for an operand that is not a number, for division by zero, and past 64 bits."""
    first, second = (None if value is None else value.number for value in (left, right))
    if first is None or second is None:
        return None
    kind, a, b = _promote(_binary(first), _binary(second))
    if sign is Operator.DIV and b == 0:
        return None
    if isinstance(a, int) and isinstance(b, int):
        exact = _divide(a, b) if sign is Operator.DIV else _EXACTLY[sign](a, b)
        return Value(kind, exact) if numbers.fits(exact) else None
    result = _APPROXIMATELY[sign](a, b)
    # A double has more than twice the digits of a single, so that rounding its result once more gives the single's.
    return Value(kind, numbers.single(result) if kind is ComparisonKind.SINGLE else result)


def negate(value: Value | None) -> Value | None:
    """Negates a value; NULL if the operand is not a number, and for the least number of 64 bits."""
    number = None if value is None else value.number
    if number is None or isinstance(number.value, str):
        return None
    negative = -number.value
    return None if isinstance(negative, int) and not numbers.fits(negative) else Value(number.kind, negative)


_EXACTLY: Mapping[Operator, Callable[[int, int], int]] = {
    Operator.ADD: operator.add,
    Operator.SUB: operator.sub,
    Operator.MUL: operator.mul,
}
_APPROXIMATELY: Mapping[Operator, Callable[[float, float], float]] = {
    Operator.ADD: operator.add,
    Operator.SUB: operator.sub,
    Operator.MUL: operator.mul,
    Operator.DIV: operator.truediv,
}


def _exactly(left: Value, right: Value) -> tuple[Decimal | float, Decimal | float]:
    """Returns two numbers, of which one is of a body, as decimals; as the other's kind if that approximates."""
    if left.kind is ComparisonKind.DECIMAL and right.kind is ComparisonKind.DECIMAL:
        return Decimal(left.value), Decimal(right.value)
    if right.kind is ComparisonKind.DECIMAL:
        second, first = _exactly(right, left)
        return first, second
    if right.kind is ComparisonKind.EXACT or right.written is not None:
        return Decimal(left.value), Decimal(right.value if right.written is None else right.written)
    double = float(left.value)
    return (numbers.single(Decimal(left.value)) if right.kind is ComparisonKind.SINGLE else double), float(right.value)


def _binary(value: Value) -> Value:
    """Returns a number with which arithmetic calculates: that of a body as 64 bits, exactly if they can hold it."""
    if value.kind is not ComparisonKind.DECIMAL:
        return value
    number = Decimal(value.value)
    if number.copy_abs() < _LIMIT and number == (whole := int(number)) and numbers.fits(whole):
        return Value(ComparisonKind.EXACT, whole)
    return Value(ComparisonKind.DOUBLE, float(number))


def _promote(left: Value, right: Value) -> tuple[ComparisonKind, int | float, int | float]:
    """Returns both numbers as the wider of their kinds: Java's binary numeric promotion (JLS 5.6)."""
    kinds = {left.kind, right.kind}
    if kinds == {ComparisonKind.EXACT}:
        return ComparisonKind.EXACT, int(left.value), int(right.value)
    if ComparisonKind.DOUBLE in kinds:
        return ComparisonKind.DOUBLE, float(left.value), float(right.value)
    first, second = (numbers.single(value.value) for value in (left, right) if not isinstance(value.value, str))
    return ComparisonKind.SINGLE, first, second


def _divide(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _number(text: str) -> Value | None:
    exact = numbers.exact(text)
    if exact is not None:
        return Value(ComparisonKind.EXACT, exact)
    return Value(ComparisonKind.DOUBLE, float(text)) if _NUMBER.fullmatch(text) else None


def _approximate(text: str, *, single: bool) -> Value | None:
    if not _NUMBER.fullmatch(text) and not _SPECIAL.fullmatch(text):
        return None
    if single:
        return Value(ComparisonKind.SINGLE, float(text) if _SPECIAL.fullmatch(text) else numbers.single_of(text))
    return Value(ComparisonKind.DOUBLE, float(text))


def _truth(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())
