"""Predicates of routes whose messages have a known format of body.

A condition about a body that cannot be read is unknown, so a route would pass the message by. A route that names its
format takes it, to fail it with a reason.
"""

from __future__ import annotations

from dataclasses import replace

from routes.predicate.nodes import (
    BodyFault,
    DocumentFormat,
    Literal,
    Logical,
    Not,
    Operator,
    Predicate,
    PredicateNode,
    asks_for_body,
)

__all__ = ["with_unreadable"]

_OPPOSITE = {Operator.AND: Operator.OR, Operator.OR: Operator.AND}


def with_unreadable(predicate: Predicate, body_format: DocumentFormat) -> Predicate:
    """Returns the predicate, made true also for a body of another format if another body could make it true."""
    could = Logical(Operator.AND, (_could_be(predicate.root, truth=True), BodyFault(body_format)))
    return replace(predicate, root=Logical(Operator.OR, (predicate.root, could)))


def _could_be(node: PredicateNode, *, truth: bool) -> PredicateNode:
    """Returns a condition on the headers that is true if some body gives `node` this truth."""
    match node:
        case Not():
            return _could_be(node.operand, truth=not truth)
        case Logical():
            operator = node.operator if truth else _OPPOSITE[node.operator]
            return Logical(operator, tuple(_could_be(operand, truth=truth) for operand in node.operands))
    if asks_for_body(node):
        return Literal(True)
    return node if truth else Not(node)
