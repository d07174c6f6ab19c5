"""Texts that a predicate asks for: the combinations that make it true, or without which it cannot be true."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from routes.predicate.nodes import Comparison, Identifier, In, Literal, Logical, Operator, PredicateNode

__all__ = ["MAX_KEYS", "Key", "required", "sufficient"]

Key = Mapping[str, str]
"""A key: text by name of the field or property; a message has the key if it has all of its texts."""

MAX_KEYS = 20_000
"""Greatest number of keys computed for a predicate; beyond it, its texts are not used."""

_REPLACEMENT = "\ufffd"


def sufficient(node: PredicateNode) -> list[Key] | None:
    """Returns keys such that the predicate is true for exactly the messages with one of them; None if there are none.

    An empty list belongs to a predicate that is never true: `a = 'x' AND a = 'y'`.
    """
    match node:
        case Logical(operator=Operator.OR):
            return _any(node.operands, sufficient)
        case Logical():
            found = [sufficient(operand) for operand in node.operands]
            return None if None in found else _product([keys for keys in found if keys is not None])
    return _asked(node)


def required(node: PredicateNode) -> list[Key] | None:
    """Returns keys such that the predicate is not true for messages with none of them; None if it asks for no text."""
    match node:
        case Logical(operator=Operator.OR):
            return _any(node.operands, required)
        case Logical():
            found = [keys for operand in node.operands if (keys := required(operand)) is not None]
            product = _product(found)
            return (min(found, key=len) if product is None else product) if found else None
    return _asked(node)


def _asked(node: PredicateNode) -> list[Key] | None:
    match node:
        case Comparison(operator=Operator.EQ, left=Identifier(name=name), right=Literal(value=str() as text)):
            return _keys(name, (text,))
        case Comparison(operator=Operator.EQ, left=Literal(value=str() as text), right=Identifier(name=name)):
            return _keys(name, (text,))
        case In(operand=Identifier(name=name), values=texts, negated=False):
            return _keys(name, texts)
    return None


def _keys(name: str, texts: Sequence[str]) -> list[Key] | None:
    # Spark compares bytes, and bytes that are no UTF-8 read as U+FFFD: equality of bytes would miss them.
    return None if any(_REPLACEMENT in text for text in texts) else [{name: text} for text in texts]


def _any(operands: Sequence[PredicateNode], keys_of: Callable[[PredicateNode], list[Key] | None]) -> list[Key] | None:
    found: list[Key] = []
    for operand in operands:
        more = keys_of(operand)
        if more is None or len(found) + len(more) > MAX_KEYS:
            return None
        found += more
    return found


def _product(operands: Sequence[list[Key]]) -> list[Key] | None:
    found: list[Key] = [{}]
    for more in operands:
        if len(found) * len(more) > MAX_KEYS:
            return None
        pairs = itertools.product(found, more)
        # A name cannot have two texts at once.
        found = [{**a, **b} for a, b in pairs if all(a.get(name, text) == text for name, text in b.items())]
    return found
