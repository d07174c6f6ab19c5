"""Predicates that only ask for texts, as the combinations of texts that make them true."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from routes.predicate.nodes import Comparison, Identifier, In, Literal, Logical, Node, Operator

__all__ = ["MAX_KEYS", "Key", "keys"]

Key = Mapping[str, str]
"""Text by name; the predicate is true for a message that has all of them."""

MAX_KEYS = 20_000
"""A predicate with more combinations than this is not taken apart."""

_REPLACEMENT = "\ufffd"


def keys(node: Node) -> list[Key] | None:
    """The combinations for which a predicate is true, none else; None if it asks for anything but texts."""
    match node:
        case Comparison(operator=Operator.EQ, left=Identifier(name=name), right=Literal(value=str() as text)):
            return _keys(name, (text,))
        case Comparison(operator=Operator.EQ, left=Literal(value=str() as text), right=Identifier(name=name)):
            return _keys(name, (text,))
        case In(operand=Identifier(name=name), values=texts, negated=False):
            return _keys(name, texts)
        case Logical(operator=Operator.OR, operands=operands):
            return _any(operands)
        case Logical(operands=operands):
            return _all(operands)
    return None


def _keys(name: str, texts: tuple[str, ...]) -> list[Key] | None:
    # Spark compares bytes, and bytes that are no UTF-8 read as U+FFFD: equality of bytes would miss them.
    if any(_REPLACEMENT in text for text in texts):
        return None
    return [{name: text} for text in texts]


def _any(operands: tuple[Node, ...]) -> list[Key] | None:
    found: list[Key] = []
    for operand in operands:
        more = keys(operand)
        if more is None or len(found) + len(more) > MAX_KEYS:
            return None
        found += more
    return found


def _all(operands: tuple[Node, ...]) -> list[Key] | None:
    found: list[Key] = [{}]
    for operand in operands:
        more = keys(operand)
        if more is None or len(found) * len(more) > MAX_KEYS:
            return None
        pairs = itertools.product(found, more)
        # A name cannot have two texts at once.
        found = [{**a, **b} for a, b in pairs if all(a.get(name, text) == text for name, text in b.items())]
    return found
