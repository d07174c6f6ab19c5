"""Evaluates predicates for one message in Python: for `explain`, and as the reference that `columns` is tested against.

The rules are those of Jakarta Messaging 3.1, 3.8.1, explained in docs/routing-language.md. Truth has three values:
True, False, and None for unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from routes.predicate import patterns
from routes.predicate.bodies import Body
from routes.predicate.nodes import (
    Arithmetic,
    Between,
    BodyFault,
    BodyPath,
    BodyText,
    Comparison,
    Identifier,
    In,
    IsNull,
    Like,
    Literal,
    Logical,
    Negate,
    Not,
    Operator,
    Predicate,
    PredicateNode,
    ValuePath,
    XmlPath,
    children,
    repeated,
)
from routes.predicate.values import ComparisonKind, Lookup, Value, calculate, compare, constant, find, negate, of_body

__all__ = ["Lookup", "Trace", "evaluate", "trace", "truth_for"]

_NO_BODY = Body(None)
_LARGE = Decimal(10) ** 38
_TRUE = Value(ComparisonKind.BOOLEAN, True)


@dataclass(frozen=True, slots=True)
class Trace:
    """The result of one part of a predicate for a message."""

    text: str
    """The part, as it is written."""
    value: str | bool | int | float | None
    """Truth of a condition, or the value that was compared; None: unknown, or NULL."""
    is_condition: bool
    """True if `value` is a truth value."""
    parts: tuple[Trace, ...] = ()
    """Results of the part's own parts, in the order written, without constants."""
    place: str = ""
    """Path to the one value that made a condition true, of those that a path names."""


def evaluate(predicate: Predicate, lookup: Lookup, body: Body = _NO_BODY) -> bool | None:
    """Returns whether a message is selected: True, False, or None for unknown.

    Never fails, whatever the message holds. Without `body` the message counts as one that has none.
    """
    return _Evaluator(lookup, body).truth(predicate.root)


def trace(predicate: Predicate, lookup: Lookup, body: Body = _NO_BODY) -> Trace:
    """Returns the value of every part of the predicate for one message, also of parts that decided nothing."""
    evaluator = _Evaluator(lookup, body)

    def follow(node: PredicateNode, is_condition: bool) -> Trace:
        joins = isinstance(node, Logical | Not)
        # Before its parts, which have the values of the element that it is true for.
        value = evaluator.truth(node) if is_condition else _plain(evaluator.value(node))
        parts = tuple(follow(part, joins) for part in children(node) if not isinstance(part, Literal))
        place = evaluator.places.get(node) if isinstance(node, ValuePath) else None
        return Trace(predicate.source(node), value, is_condition, parts, "" if place is None else str(place))

    return follow(predicate.root, is_condition=True)


def truth_for(condition: PredicateNode, part: PredicateNode, value: Value | None) -> bool | None:
    """Returns the truth of a condition for a message that has a value in a part, or None there, and nothing else."""
    return _SingleValueEvaluator(part, value).truth(condition)


class _Evaluator:
    def __init__(self, lookup: Lookup, body: Body) -> None:
        self._lookup = lookup
        self._body = body
        self._elements: dict[ValuePath, Value | None] = {}
        """The value of each repeated path that is looked at."""
        self.places: dict[ValuePath, ValuePath] = {}
        """The path that names this value alone."""

    def truth(self, node: PredicateNode) -> bool | None:
        path = repeated(node)
        return self._one(node) if path is None else self._some(node, path)

    def _some(self, node: PredicateNode, path: ValuePath) -> bool | None:
        """Returns whether a condition is true for one of the elements; None if there is no element."""
        truths: list[bool | None] = []
        for value, place in self._body.places(path):
            self._elements[path] = of_body(value)
            self.places[path] = place
            if truth := self._one(node):
                return truth
            truths.append(truth)
        self._elements.pop(path, None)
        self.places.pop(path, None)
        return _any(truths) if truths else None

    def _one(self, node: PredicateNode) -> bool | None:
        match node:
            case Logical():
                return (_all if node.operator is Operator.AND else _any)(map(self.truth, node.operands))
            case Not():
                return _not(self.truth(node.operand))
            case Comparison():
                return compare(node.operator, self.value(node.left), self.value(node.right))
            case Between():
                return self._between(node)
            case In():
                return self._membership(node)
            case Like():
                return self._likeness(node)
            case BodyFault():
                return self._body.fault(node.format) is not None
            case IsNull():
                return (self.value(node.operand) is None) is not node.negated
        return compare(Operator.EQ, self.value(node), _TRUE)

    def value(self, node: PredicateNode) -> Value | None:
        match node:
            case Identifier():
                return find(self._lookup, node.name)
            case BodyPath() | XmlPath():
                return self._elements.get(node) if node.is_repeated else of_body(*self._body.values(node))
            case BodyText():
                return of_body(self._body.text)
            case Literal():
                return constant(node)
            case Arithmetic():
                return calculate(node.operator, self.value(node.left), self.value(node.right))
            case Negate():
                return negate(self.value(node.operand))
        raise AssertionError(node)

    def _between(self, node: Between) -> bool | None:
        operand, low, high = self.value(node.operand), self.value(node.low), self.value(node.high)
        # The specification defines both forms; they are not each other's negation for values of unlike types.
        if node.negated:
            return _any((compare(Operator.LT, operand, low), compare(Operator.GT, operand, high)))
        return _all((compare(Operator.GE, operand, low), compare(Operator.LE, operand, high)))

    def _membership(self, node: In) -> bool | None:
        value = self.value(node.operand)
        if value is None:
            return None
        equals = (compare(Operator.EQ, value, constant(number)) for number in node.numbers)
        return (value.text in node.texts or any(equals)) is not node.negated

    def _likeness(self, node: Like) -> bool | None:
        value = self.value(node.operand)
        if value is None:
            return None
        if value.text is None:
            return node.negated
        matched = re.fullmatch(patterns.split(node.pattern, node.escape).regex, value.text)
        return (matched is not None) is not node.negated


class _SingleValueEvaluator(_Evaluator):
    def __init__(self, part: PredicateNode, value: Value | None) -> None:
        super().__init__(lambda _: None, _NO_BODY)
        self._part = part
        self._its_value = value

    def value(self, node: PredicateNode) -> Value | None:
        return self._its_value if node == self._part else super().value(node)


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _all(truths: Iterable[bool | None]) -> bool | None:
    known = list(truths)
    if False in known:
        return False
    return None if None in known else True


def _any(truths: Iterable[bool | None]) -> bool | None:
    return _not(_all(map(_not, truths)))


def _plain(value: Value | None) -> str | bool | int | float | None:
    if value is None:
        return None
    plain = value.value
    if not isinstance(plain, Decimal):
        return plain
    # As most would write it: 100, and not 1E+2.
    is_whole = plain.copy_abs() < _LARGE and plain == plain.to_integral_value()
    return int(plain) if is_whole else float(plain)
