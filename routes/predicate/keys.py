"""Requirements of predicates: texts, beginnings of texts and ranges of numbers without which a predicate is not true.

They are those of fields, properties and values of the body that a path without `[*]` names.

They are for finding the few predicates that may be true for a message among many, without trying each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from routes.predicate import patterns
from routes.predicate.nodes import (
    Between,
    BodyPath,
    Comparison,
    Identifier,
    In,
    Like,
    Literal,
    Logical,
    Operator,
    PredicateNode,
)

__all__ = ["MAX_KEYS", "Key", "Part", "Prefix", "Range", "Requirement", "required", "sufficient"]

Part = Identifier | BodyPath
"""Field or property, or a value of the body."""
Key = Mapping[Part, str]
"""A key: text by part of the message; a message has the key if it has all of its texts."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """The beginning of the text of a part."""

    part: Part
    text: str


@dataclass(frozen=True, slots=True)
class Range:
    """A range that the number of a part is in, taken as a double; somewhat wider than the predicate's."""

    part: Part
    low: float = -math.inf
    high: float = math.inf


Requirement = Key | Prefix | Range
"""Requirement on a message for a predicate to be true."""

MAX_KEYS = 20_000
"""Greatest number of requirements computed for a predicate; beyond it, they are not used."""

_Found = TypeVar("_Found", Key, Requirement)
_MIRRORED = {Operator.LT: Operator.GT, Operator.LE: Operator.GE, Operator.GT: Operator.LT, Operator.GE: Operator.LE}
_ROUNDING = 2.0**-22
"""Relative difference that numbers can have which are equal when compared as floats, and more."""

_REPLACEMENT = "\ufffd"


def sufficient(node: PredicateNode) -> list[Key] | None:
    """Returns keys such that the predicate is true for exactly the messages with one of them; None if there are none.

    An empty list belongs to a predicate that is never true: `a = 'x' AND a = 'y'`.
    """
    match node:
        case Logical(operator=Operator.OR):
            return _any(node.operands, sufficient)
        case Logical():
            parts = [sufficient(operand) for operand in node.operands]
            return None if None in parts else _product([keys for keys in parts if keys is not None])
    return _asked(node)


def required(node: PredicateNode) -> list[Requirement] | None:
    """Returns requirements such that the predicate is not true for messages that meet none; None if there are none."""
    match node:
        case Logical(operator=Operator.OR):
            return _any(node.operands, required)
        case Logical():
            return _strictest([needed for operand in node.operands if (needed := required(operand)) is not None])
        case Between(negated=False):
            bounds = ((Operator.GE, node.low), (Operator.LE, node.high))
            return _strictest([needed for sign, bound in bounds if (needed := _range(sign, node.operand, bound))])
        case In(negated=False) if node.numbers and (part := _part(node.operand)):
            keys = _keys(part, node.texts)
            ranges = [_range(Operator.EQ, part, number) for number in node.numbers]
            return None if keys is None else [*keys, *itertools.chain.from_iterable(filter(None, ranges))]
        case Like(negated=False) if part := _part(node.operand):
            prefix = patterns.split(node.pattern, node.escape).prefix
            return [Prefix(part, prefix)] if prefix else None
    keys = _asked(node)
    if keys is None and isinstance(node, Comparison):
        mirrored = _MIRRORED.get(node.operator, node.operator)
        return _range(node.operator, node.left, node.right) or _range(mirrored, node.right, node.left)
    return None if keys is None else list(keys)


def _asked(node: PredicateNode) -> list[Key] | None:
    match node:
        case Comparison(operator=Operator.EQ, left=left, right=Literal(value=str() as text)) if part := _part(left):
            return _keys(part, (text,))
        case Comparison(operator=Operator.EQ, left=Literal(value=str() as text), right=right) if part := _part(right):
            return _keys(part, (text,))
        case In(texts=texts, negated=False, numbers=()) if part := _part(node.operand):
            return _keys(part, texts)
    return None


def _part(node: PredicateNode) -> Part | None:
    """The part of the message that a node stands for; None for other nodes, and for a path that names many values."""
    match node:
        case Identifier():
            return node
        case BodyPath() if None not in node.steps:
            return node
    return None


def _keys(part: Part, texts: Sequence[str]) -> list[Key] | None:
    # Spark compares bytes, and bytes that are not UTF-8 read as U+FFFD: equality of bytes would miss them.
    return None if any(_REPLACEMENT in text for text in texts) else [{part: text} for text in texts]


def _range(sign: Operator, operand: PredicateNode, bound: PredicateNode) -> list[Requirement] | None:
    """The range of a part that is compared with a constant number; None for other comparisons."""
    match _part(operand), bound:
        case Identifier() | BodyPath() as part, Literal(value=int() | float() as value) if not isinstance(value, bool):
            low, high = value - abs(value) * _ROUNDING, value + abs(value) * _ROUNDING
            match sign:
                case Operator.EQ:
                    return [Range(part, low, high)]
                case Operator.GT | Operator.GE:
                    return [Range(part, low=low)]
                case Operator.LT | Operator.LE:
                    return [Range(part, high=high)]
    return None


def _strictest(requirements: Sequence[list[Requirement]]) -> list[Requirement] | None:
    """Requirements of a predicate with all of these: all texts if there are any, otherwise the most selective ones."""
    if not requirements:
        return None
    texts = [[key for key in each if isinstance(key, Mapping)] for each in requirements if all(map(_is_key, each))]
    if texts:
        product = _product(texts)
        keys = min(texts, key=lambda each: len(each)) if product is None else product
        return list(keys)
    ranges = [each[0] for each in requirements if len(each) == 1 and isinstance(each[0], Range)]
    merged: Iterable[Requirement] = _intersections(ranges)
    return min((*requirements, *([each] for each in merged)), key=_breadth)


def _is_key(requirement: Requirement) -> bool:
    return isinstance(requirement, Mapping)


def _intersections(ranges: Iterable[Range]) -> Iterable[Range]:
    """The ranges, one for each part."""
    shared: dict[Part, Range] = {}
    for each in ranges:
        other = shared.get(each.part, each)
        shared[each.part] = Range(each.part, max(each.low, other.low), min(each.high, other.high))
    return shared.values()


def _breadth(requirements: Sequence[Requirement]) -> tuple[int, int]:
    """Sorts alternatives: few before many, of these texts and beginnings before ranges, and open ranges last."""
    open_ends = (each.low == -math.inf or each.high == math.inf for each in requirements if isinstance(each, Range))
    ranges = sum(isinstance(each, Range) for each in requirements)
    return len(requirements), ranges + sum(open_ends)


def _any(
    operands: Sequence[PredicateNode], keys_of: Callable[[PredicateNode], list[_Found] | None]
) -> list[_Found] | None:
    keys: list[_Found] = []
    for operand in operands:
        more = keys_of(operand)
        if more is None or len(keys) + len(more) > MAX_KEYS:
            return None
        keys += more
    return keys


def _product(operands: Sequence[list[Key]]) -> list[Key] | None:
    product: list[Key] = [{}]
    for more in operands:
        if len(product) * len(more) > MAX_KEYS:
            return None
        pairs = itertools.product(product, more)
        # A part cannot have two texts at once.
        product = [{**a, **b} for a, b in pairs if all(a.get(part, text) == text for part, text in b.items())]
    return product
