"""One predicate as a native Spark Column, equal to what `evaluate` says for the same message.

Nothing in a message can make it fail under ANSI mode. Many rules at once are `dispatch`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from routes.predicate import patterns, values
from routes.predicate.arithmetic import calculate, compare_numbers, negate
from routes.predicate.nodes import (
    Arithmetic,
    Between,
    Comparison,
    Identifier,
    In,
    IsNull,
    Like,
    Literal,
    Logical,
    Negate,
    Node,
    Not,
    Operator,
    Predicate,
)
from routes.predicate.operands import Operand, constant
from routes.predicate.tables import look_up
from routes.predicate.views import ColumnView

__all__ = ["balanced", "compile_predicate"]

_REPLACEMENT = "\ufffd"
_FEW = 100


def compile_predicate(predicate: Predicate, view: ColumnView, *, exact: bool = True) -> Column:
    """A nullable boolean: true, false, or NULL for unknown.

    With `exact=False` unknown may come out as false and false as unknown, which no match can tell apart; it is shorter.
    """
    return _Compiler(view).condition(predicate.root, exact)


class _Compiler:
    def __init__(self, view: ColumnView) -> None:
        self._view = view

    def condition(self, node: Node, exact: bool) -> Column:
        """`exact`: whether false and unknown must be told apart."""
        match node:
            case Logical():
                return balanced(node.operator, [self.condition(operand, exact) for operand in node.operands])
            case Not():
                return ~self.condition(node.operand, exact=True)
            case Comparison():
                return self._compare(node.operator, node.left, node.right, exact)
            case Between():
                return self._between(node, exact)
            case IsNull():
                present = self._view.operand(node.operand.name).present
                assert present is not None
                return present if node.negated else ~present
            case In() | Like():
                return self._text(node, exact)
        return self._compare(Operator.EQ, node, Literal(True), exact)

    def _compare(self, sign: Operator, left: Node, right: Node, exact: bool) -> Column:
        a, b = self._operand(left), self._operand(right)
        if a.value is not None and b.value is not None:
            return F.lit(values.compare(sign, a.value, b.value))
        parts: list[Column] = []
        if sign in (Operator.EQ, Operator.NE):
            test = operator.eq if sign is Operator.EQ else operator.ne
            if a.text is not None and b.text is not None:
                parts.append(test(*_comparable(a, b)))
            if a.truth is not None and b.truth is not None:
                parts.append(test(a.truth, b.truth))
        parts += compare_numbers(sign, a, b)
        return _else(parts, False, exact, a, b)

    def _between(self, node: Between, exact: bool) -> Column:
        if node.negated:
            below = self._compare(Operator.LT, node.operand, node.low, exact)
            return below | self._compare(Operator.GT, node.operand, node.high, exact)
        above = self._compare(Operator.GE, node.operand, node.low, exact)
        return above & self._compare(Operator.LE, node.operand, node.high, exact)

    def _text(self, node: In | Like, exact: bool) -> Column:
        operand = self._view.operand(node.operand.name)
        if operand.text is None:
            parts = []
        elif isinstance(node, In):
            parts = [_in(operand.text, node.values)]
        else:
            parts = [_like(operand.text, patterns.split(node.pattern, node.escape))]
        if node.negated:
            return _else([~part for part in parts], True, True, operand)
        return _else(parts, False, exact, operand)

    def _operand(self, node: Node) -> Operand:
        match node:
            case Identifier():
                return self._view.operand(node.name)
            case Literal():
                return constant(values.constant(node))
            case Arithmetic():
                return calculate(node.operator, self._operand(node.left), self._operand(node.right))
            case Negate():
                return negate(self._operand(node.operand))
        raise AssertionError(node)


def _else(parts: Sequence[Column], unlike: bool, exact: bool, *operands: Operand) -> Column:
    """The part that is not NULL; if none is, `unlike` for operands that are there but of other kinds, else NULL."""
    conditions = [operand.present for operand in operands if operand.present is not None]
    otherwise = [F.when(balanced(Operator.AND, conditions), unlike)] if exact else []
    if not parts and not exact:
        return F.lit(False)
    return F.coalesce(*parts, *otherwise) if len(parts) + len(otherwise) > 1 else [*parts, *otherwise][0]


def _comparable(a: Operand, b: Operand) -> tuple[Column, Column]:
    """Both texts, with U+FFFD for what is no UTF-8 where that can make a difference."""
    assert a.text is not None
    assert b.text is not None
    constants = [operand.value.value for operand in (a, b) if operand.value is not None]
    if constants and _REPLACEMENT not in str(constants[0]):
        return a.text, b.text
    return F.make_valid_utf8(a.text), F.make_valid_utf8(b.text)


def _in(text: Column, texts: Sequence[str]) -> Column:
    if any(_REPLACEMENT in value for value in texts):
        text = F.make_valid_utf8(text)
    if len(texts) <= _FEW:
        return text.isin(*texts)
    return F.coalesce(look_up(text, dict.fromkeys(texts, 1)) == 1, F.when(text.isNotNull(), False))


def _like(text: Column, pattern: patterns.Pattern) -> Column:
    if any(_REPLACEMENT in piece for piece in pattern.pieces):
        return F.make_valid_utf8(text).rlike(pattern.java_regex)
    match pattern.literals:
        case (whole,):
            return text == whole
        case ("", ""):
            return F.when(text.isNotNull(), True)
        case (start, ""):
            return text.startswith(start)
        case ("", end):
            return text.endswith(end)
        case ("", middle, ""):
            return text.contains(middle)
        case None:
            # A `_` counts characters, so it must see those that Python sees.
            matched = F.make_valid_utf8(text).rlike(pattern.java_regex)
        case _:
            matched = text.rlike(pattern.java_regex)
    # Comparing the first bytes is far cheaper than a regular expression, and says no to most texts.
    return text.startswith(pattern.prefix) & matched if pattern.prefix else matched


def balanced(sign: Operator, conditions: Sequence[Column]) -> Column:
    """All conditions joined by AND or OR, as a tree and not a list, so that a thousand of them are ten deep."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    left, right = balanced(sign, conditions[:middle]), balanced(sign, conditions[middle:])
    return left & right if sign is Operator.AND else left | right
