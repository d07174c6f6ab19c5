"""Arithmetic and numeric comparison on operands, with Java's binary numeric promotion (JLS 5.6) and no failure.

A number is exact, single or double, and which one may depend on the message. So each result has a Column for each of
the three, at most one of them not NULL, and each names each Column of its operands once: expressions stay small.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from routes.predicate import values
from routes.predicate.nodes import Operator
from routes.predicate.operands import Operand, constant

__all__ = ["calculate", "compare_numbers", "negate"]

_Binary = Callable[[Column, Column], Column]

_COMPARE: Mapping[Operator, _Binary] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}
_EXACTLY: Mapping[Operator, _Binary] = {
    Operator.ADD: F.try_add,
    Operator.SUB: F.try_subtract,
    Operator.MUL: F.try_multiply,
}
_APPROXIMATELY: Mapping[Operator, _Binary] = {
    Operator.ADD: operator.add,
    Operator.SUB: operator.sub,
    Operator.MUL: operator.mul,
    Operator.DIV: F.try_divide,
}


def calculate(sign: Operator, left: Operand, right: Operand) -> Operand:
    """The result of `left sign right`; NULL as `values.calculate` says."""
    if left.value is not None and right.value is not None:
        return constant(values.calculate(sign, left.value, right.value))
    long = None
    if left.long is not None and right.long is not None:
        exactly = _divide if sign is Operator.DIV else _EXACTLY[sign]
        long = exactly(left.long, right.long)
    approximately = _APPROXIMATELY[sign]
    single = _promoted(left, right, "single", lambda a, b: approximately(a, b).cast("float"))
    return _result(long, single, _promoted(left, right, "double", approximately), left, right)


def negate(operand: Operand) -> Operand:
    """Unary minus, as `values.negate` says."""
    long = None if operand.long is None else F.try_subtract(F.lit(0), operand.long)
    single, double = (None if part is None else -part for part in (operand.single, operand.double))
    return _result(long, single, double, operand)


def compare_numbers(sign: Operator, left: Operand, right: Operand) -> list[Column]:
    """Booleans of which at most one is not NULL: what the comparison says if both are numbers."""
    if left.number is not None and right.number is not None and (left.value is None) is not (right.value is None):
        return [_compare(sign, left.number, right.number, left, right)]
    parts = [] if left.long is None or right.long is None else [_COMPARE[sign](left.long, right.long)]
    for width in ("single", "double"):
        part = _promoted(left, right, width, lambda a, b: _compare(sign, a, b, left, right))
        parts += [] if part is None else [part]
    return parts


def _compare(sign: Operator, a: Column, b: Column, left: Operand, right: Operand) -> Column:
    # Spark holds NaN equal to itself and greater than all else; for Java it is not even equal to itself.
    compared = _COMPARE[sign](a, b)
    if left.value is None and right.value is None:
        nan = (F.isnan(a) | F.isnan(b)) & compared.isNotNull()
        return F.when(nan, sign is Operator.NE).otherwise(compared)
    greater = (Operator.GT, Operator.GE) if right.value is not None else (Operator.LT, Operator.LE)
    number = a if right.value is not None else b
    return compared & (number <= math.inf) if sign in greater else compared


def _divide(a: Column, b: Column) -> Column:
    # Spark's integer division fails for zero and for the least number by -1, and a guard would name the operands
    # twice. 19 digits behind the point are enough: no quotient of 64 bits is nearer to the next integer than 1e-19.
    digits = "decimal(19,0)"
    return F.try_divide(a.cast(digits), b.cast(digits)).try_cast("bigint")


def _promoted(left: Operand, right: Operand, width: str, apply: _Binary) -> Column | None:
    """`apply` to both as `width`, NULL unless one of them is that and none is wider."""
    a, b = getattr(left, width), getattr(right, width)
    if a is None and b is None:
        return None
    wide_a, wide_b = _widened(left, width), _widened(right, width)
    if wide_a is None or wide_b is None:
        return None
    if a is None or b is None:
        # Where only one can be of this width, it alone decides: NULL unless it is.
        return apply(wide_a if a is None else a, wide_b if b is None else b)
    return F.when(_has(left, width) | _has(right, width), apply(wide_a, wide_b))


def _widened(operand: Operand, width: str) -> Column | None:
    narrower = {"single": ("single", "long"), "double": ("double", "single", "long")}[width]
    kind = {"single": "float", "double": "double"}[width]
    parts = [getattr(operand, part) for part in narrower]
    casts = [part.cast(kind) for part in parts if part is not None]
    return F.coalesce(*casts) if casts else None


def _has(operand: Operand, width: str) -> Column:
    known: Column | None = getattr(operand, f"has_{width}")
    column: Column | None = getattr(operand, width)
    if known is not None:
        return known
    return F.lit(False) if column is None else column.isNotNull()


def _result(long: Column | None, single: Column | None, double: Column | None, *operands: Operand) -> Operand:
    present = [part.isNotNull() for part in (long, single, double) if part is not None]
    return Operand(
        long=long,
        single=single,
        double=double,
        present=reduce(operator.or_, present, F.lit(False)),
        has_single=reduce(operator.or_, (_has(operand, "single") for operand in operands)),
        has_double=reduce(operator.or_, (_has(operand, "double") for operand in operands)),
    )
