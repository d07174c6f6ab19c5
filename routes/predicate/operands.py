"""Values of a message as Spark sees them: one Column for each way a value may be read.

The twin of `values`: what is a Kind there is here the one Column of an operand that is not NULL. Native expressions
only, and none that can fail, whatever a message holds: casts are `try_cast`, behind patterns where Spark takes more
texts for numbers than the language does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from routes.predicate import numbers
from routes.predicate.values import Kind, Value
from routes.properties import JmsType

__all__ = ["Operand", "any_number", "constant", "declared", "dynamic"]

_INTEGERS = {JmsType.LONG: "bigint", JmsType.INT: "int", JmsType.SHORT: "smallint", JmsType.BYTE: "tinyint"}


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
    number: Column | None = None
    """double: any number as one; None where that is not enough to compare it with a constant, or a constant with it."""
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
            number = F.lit(float(value.value)) if numbers.alike(int(value.value)) else None
            return Operand(long=column.cast("bigint"), number=number, value=value)
        case Kind.SINGLE:
            return Operand(single=column.cast("float"), value=value)
        case Kind.DOUBLE:
            return Operand(double=column, number=column, value=value)
    return Operand(text=column, value=value)


def declared(raw: str, kind: JmsType) -> Mapping[str, str]:
    """SQL for each way to read a standard field, by the fields of `Operand`; `raw` names the column of its text."""
    if kind is JmsType.STRING:
        return {"text": raw, "present": f"{raw} IS NOT NULL"}
    if kind is JmsType.BOOLEAN:
        return {"truth": _truth(raw), "present": f"{_truth(raw)} IS NOT NULL"}
    long = f"CASE WHEN {_is(raw, numbers.INTEGER_TEXT)} THEN CAST(try_cast({raw} AS {_INTEGERS[kind]}) AS bigint) END"
    return {"long": long, "present": f"{long} IS NOT NULL"}


def dynamic(raw: str, kind: str) -> Mapping[str, str]:
    """The same for a property; `kind` names the column of its declared type, '' without one."""
    narrow = " ".join(f"WHEN '{name}' THEN CAST(try_cast({raw} AS {to}) AS bigint)" for name, to in _INTEGERS.items())
    integers = ", ".join(f"'{name}'" for name in _INTEGERS)
    approximate = _is(raw, f"{numbers.SPECIAL_TEXT}|{numbers.NUMBER_TEXT}")
    beyond_long = f"{_is(raw, numbers.NUMBER_TEXT)} AND try_cast({raw} AS bigint) IS NULL"
    long = (
        f"CASE WHEN {kind} IN ('', {integers}) AND {_is(raw, numbers.INTEGER_TEXT)}"
        f" THEN CASE {kind} {narrow} ELSE try_cast({raw} AS bigint) END END"
    )
    single = f"CASE WHEN {kind} = 'float' AND {approximate} THEN try_cast({raw} AS float) END"
    double = (
        f"CASE WHEN {kind} = '' AND {beyond_long} OR {kind} = 'double' AND {approximate}"
        f" THEN try_cast({raw} AS double) END"
    )
    well_formed = (
        f"CASE {kind} WHEN 'boolean' THEN lower({raw}) IN ('true', 'false')"
        f" WHEN 'float' THEN {approximate} WHEN 'double' THEN {approximate} ELSE ({long}) IS NOT NULL END"
    )
    return {
        "text": f"CASE WHEN {kind} IN ('', 'string') THEN {raw} END",
        "truth": f"CASE WHEN {kind} IN ('', 'boolean') THEN {_truth(raw)} END",
        "long": long,
        "single": single,
        "double": double,
        "present": f"{raw} IS NOT NULL AND ({kind} IN ('', 'string', 'bytes') OR {well_formed})",
    }


def any_number(long: str, single: str, double: str) -> str:
    """SQL for `number`, from the columns that `dynamic` made."""
    return f"coalesce(CAST({long} AS double), CAST({single} AS double), {double})"


def _truth(raw: str) -> str:
    return f"CASE lower({raw}) WHEN 'true' THEN true WHEN 'false' THEN false END"


def _is(raw: str, pattern: str) -> str:
    return rf"{raw} RLIKE r'\A(?:{pattern})\z'"
