"""Values of a message as Spark sees them: one Column for each way a value may be read.

The twin of `values`: what is a Kind there is here the one Column of an operand that is not NULL. Native expressions
only, and none that can fail, whatever a message holds: casts are `try_cast`, behind patterns where Spark takes more
texts for numbers than the language does.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from routes.predicate import numbers
from routes.predicate.values import Kind, Value
from routes.properties import JmsType

__all__ = ["UNDECLARED", "Operand", "constant", "declared", "dynamic"]

UNDECLARED = ""
"""What a column of declared types holds where there is none, so that it is never NULL."""

_INTEGERS = {JmsType.BYTE: "tinyint", JmsType.SHORT: "smallint", JmsType.INT: "int", JmsType.LONG: "bigint"}
_SPECIAL_OR_NUMBER = f"{numbers.SPECIAL_TEXT}|{numbers.NUMBER_TEXT}"


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """A value in all the ways it may be read. A None says that it never reads so, whatever the message."""

    text: Column | None = None
    """string. Bytes that are no UTF-8 are still in it."""
    truth: Column | None = None
    """boolean."""
    long: Column | None = None
    """bigint: an exact number."""
    single: Column | None = None
    """float."""
    double: Column | None = None
    """double."""
    present: Column | None = None
    """boolean, never NULL: whether the value is there, whatever it is; None for a constant."""
    has_single: Column | None = None
    """boolean: whether a single went into an arithmetic result; None: ask whether `single` is NULL."""
    has_double: Column | None = None
    """The same for doubles."""
    value: Value | None = None
    """What it is, for a constant."""


def constant(value: Value | None) -> Operand:
    """The operand of what is the same for all messages; None is NULL."""
    if value is None:
        return Operand(present=F.lit(False))
    column = F.lit(value.value)
    match value.kind:
        case Kind.BOOLEAN:
            return Operand(truth=column, value=value)
        case Kind.EXACT:
            return Operand(long=column.cast("bigint"), value=value)
        case Kind.SINGLE:
            return Operand(single=column.cast("float"), value=value)
        case Kind.DOUBLE:
            return Operand(double=column, value=value)
    return Operand(text=column, value=value)


def declared(raw: Column, kind: JmsType) -> Operand:
    """The operand of a text whose type is fixed: a standard field."""
    if kind is JmsType.STRING:
        return Operand(text=raw, present=raw.isNotNull())
    if kind is JmsType.BOOLEAN:
        truth = _truth(raw)
        return Operand(truth=truth, present=truth.isNotNull())
    if kind in _INTEGERS:
        long = F.when(_matches(raw, numbers.INTEGER_TEXT), raw.try_cast(_INTEGERS[kind]).cast("bigint"))
        return Operand(long=long, present=long.isNotNull())
    raise ValueError(f"no standard field is of type {kind}")


def dynamic(raw: Column, kind: Column) -> Operand:
    """The operand of a property: its text, and its declared type or UNDECLARED beside it."""
    is_text = kind.isin(UNDECLARED, JmsType.STRING)
    truth = F.when(kind.isin(UNDECLARED, JmsType.BOOLEAN), _truth(raw))
    long = _long(raw, kind)
    single = F.when((kind == JmsType.FLOAT) & _matches(raw, _SPECIAL_OR_NUMBER), raw.try_cast("float"))
    double = F.when(
        ((kind == JmsType.DOUBLE) & _matches(raw, _SPECIAL_OR_NUMBER))
        | ((kind == UNDECLARED) & _matches(raw, numbers.NUMBER_TEXT) & raw.try_cast("bigint").isNull()),
        raw.try_cast("double"),
    )
    present = (
        F.when(is_text | (kind == JmsType.BYTES), raw.isNotNull())
        .when(kind == JmsType.BOOLEAN, truth.isNotNull())
        .otherwise(long.isNotNull() | single.isNotNull() | double.isNotNull())
    )
    return Operand(F.when(is_text, raw), truth, long, single, double, present)


def _long(raw: Column, kind: Column) -> Column:
    value = raw.try_cast("bigint")
    for narrow in (JmsType.BYTE, JmsType.SHORT, JmsType.INT):
        value = F.when(kind == narrow, raw.try_cast(_INTEGERS[narrow]).cast("bigint")).otherwise(value)
    return F.when(kind.isin(UNDECLARED, *_INTEGERS) & _matches(raw, numbers.INTEGER_TEXT), value)


def _truth(raw: Column) -> Column:
    word = F.lower(raw)
    return F.when(word == "true", True).when(word == "false", False)


def _matches(raw: Column, pattern: str) -> Column:
    return raw.rlike(rf"\A(?:{pattern})\z")
