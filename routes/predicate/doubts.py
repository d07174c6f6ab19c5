"""Finds conditions in a predicate that no message can meet: legal, but hardly meant.

Properties may hold anything; the standard fields and the types of their values are known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING

from routes.predicate import faults, slips
from routes.predicate.implication import clashes, is_never_true
from routes.predicate.nodes import (
    ADDRESS,
    Between,
    Comparison,
    Identifier,
    In,
    Like,
    Literal,
    Logical,
    Not,
    Operator,
    Predicate,
    PredicateNode,
    children,
    walk,
)
from routes.properties import HEADER_FIELDS, JmsType

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Doubt", "ValueSort", "doubts", "instead", "sort_of", "unknown_field", "unknown_fields"]

_MODES = ("PERSISTENT", "NON_PERSISTENT")
_KINDS = ("queue:", "topic:")
_FIELD_TYPES = {**HEADER_FIELDS, ADDRESS: JmsType.STRING}


class ValueSort(StrEnum):
    """Sorts of values, in words for messages; objects and arrays compare with nothing."""

    TEXT = "text"
    NUMBER = "a number"
    TRUTH = "TRUE or FALSE"
    OBJECT = "an object"
    ARRAY = "an array"


_SORTS = {JmsType.STRING: ValueSort.TEXT, JmsType.BOOLEAN: ValueSort.TRUTH}


@dataclass(frozen=True, slots=True)
class Doubt:
    """A part of a predicate that is hardly meant as it is written, with message and hint for the user."""

    node: PredicateNode
    message: str
    hint: str


def doubts(predicate: Predicate) -> Iterator[Doubt]:
    """Yields all doubts about a predicate, in the order of its text."""
    conditions, is_doubted = {id(predicate.root)}, False
    for node in walk(predicate.root):
        if isinstance(node, Logical | Not):
            conditions |= set(map(id, children(node)))
        if isinstance(node, Identifier):
            yield from _unknown(node)
        yield from _about(predicate, node, is_condition=id(node) in conditions)
        for doubt in _never_together(predicate, node):
            is_doubted = True
            yield doubt
    if not is_doubted and is_never_true(predicate.root):
        hint = "its parts exclude each other: correct one of them"
        yield Doubt(predicate.root, "no message meets this condition", hint)


def unknown_fields(predicate: Predicate) -> Iterator[Doubt]:
    """Yields the doubts about names alone."""
    for node in walk(predicate.root):
        if isinstance(node, Identifier):
            yield from _unknown(node)


def unknown_field(name: str) -> tuple[str, str] | None:
    """Returns message and hint for a name that JMS keeps for its fields without using it; else None.

    `JMSX…` and `JMS_vendor…` are properties of providers. A name such as `body.price` is hardly that of a property.
    """
    if slips.BODY_PATH.match(name):
        return f"'{name}' is a property here", f"write {slips.respelled(name)} for the field of the body"
    if not name.startswith("JMS") or name.startswith(("JMSX", "JMS_")) or name in HEADER_FIELDS:
        return None
    same = [field for field in HEADER_FIELDS if field.lower() == name.lower()]
    near = same or get_close_matches(name, HEADER_FIELDS, n=1, cutoff=0.7)
    hint = f"did you mean {near[0]}?" if near else "JMS keeps names like this one for its own fields"
    return f"there is no field {name}", hint


def _unknown(node: Identifier) -> Iterator[Doubt]:
    if problem := unknown_field(node.name):
        yield Doubt(node, *problem)


def _about(predicate: Predicate, node: PredicateNode, *, is_condition: bool) -> Iterator[Doubt]:
    match node:
        case Comparison(left=Identifier() as field, right=Literal() as constant):
            yield from _compared(predicate, field, node.operator, constant)
        case Comparison(left=Literal() as constant, right=Identifier() as field):
            yield from _compared(predicate, field, node.operator, constant)
        case In(operand=Identifier() as field):
            yield from _listed(predicate, field, node)
        case Like(operand=Identifier() as field) | Between(operand=Identifier() as field):
            what, fits = ("texts", ValueSort.TEXT) if isinstance(node, Like) else ("numbers", ValueSort.NUMBER)
            sort = _sort(field.name)
            if sort not in ("", fits):
                word = type(node).__name__.upper()
                yield Doubt(node, f"{predicate.source(field)} is {sort}, and {word} asks for {what}", "compare with =")
            elif isinstance(node, Like) and field.name == ADDRESS and node.pattern.startswith(_KINDS):
                yield from _text(field, node.pattern, node)
        case Comparison(left=Identifier() as field, right=Identifier() as other):
            yield from _two_properties(predicate, field, node.operator, other)
        case Identifier(name=name) if is_condition and _sort(name) not in ("", ValueSort.TRUTH):
            yield Doubt(node, f"{predicate.source(node)} is {_sort(name)}, and never TRUE", "compare it")


def _never_together(predicate: Predicate, node: PredicateNode) -> Iterator[Doubt]:
    """Yields the doubts about conditions joined by AND, which BETWEEN also is."""
    joined = node.operands if isinstance(node, Logical) and node.operator is Operator.AND else ()
    for part, earlier, later in clashes((node, node) if isinstance(node, Between) else joined):
        name = predicate.source(part) if isinstance(part, Identifier) else str(part)
        if earlier is later:
            yield Doubt(later, f"no value of {name} meets this condition", "correct it, or remove it")
        else:
            message = f"no value of {name} meets this condition and {predicate.source(earlier)}"
            yield Doubt(later, message, "join them with OR, or correct one of them")


def _listed(predicate: Predicate, field: Identifier, node: In) -> Iterator[Doubt]:
    """Yields the doubts about the constants in a list that a field is looked for in."""
    sort, name = _sort(field.name), predicate.source(field)
    if sort not in ("", ValueSort.NUMBER):
        for number in node.numbers:
            yield Doubt(number, f"{name} is {sort}, never {faults.name(number)}", "compare with =")
    if sort not in ("", ValueSort.TEXT) and node.texts:
        hint = "write the numbers without quotes" if sort == ValueSort.NUMBER else "compare with ="
        yield Doubt(node, f"{name} is {sort}, and IN asks for texts", hint)
    else:
        yield from (doubt for text in node.texts for doubt in _text(field, text, node))


def _two_properties(predicate: Predicate, field: Identifier, operator: Operator, other: Identifier) -> Iterator[Doubt]:
    """Yields the doubt about `region = emea`; `msg.header.emea` and names of fields are meant."""
    word = predicate.source(other)
    if _sort(field.name) not in ("", ValueSort.TEXT):
        return
    if operator in (Operator.EQ, Operator.NE) and re.fullmatch(r"[\w$]+", word) and other.name not in _FIELD_TYPES:
        sign, name = "=" if operator is Operator.EQ else "<>", predicate.source(field)
        hint = f"for a text write {name} {sign} '{word}', for a property {name} {sign} msg.header.{word}"
        yield Doubt(other, f"this compares two properties, {name} and {word}", hint)


def _compared(predicate: Predicate, field: Identifier, operator: Operator, constant: Literal) -> Iterator[Doubt]:
    sort = _sort(field.name)
    name = predicate.source(field)
    if sort == "":
        return
    if operator not in (Operator.EQ, Operator.NE):
        if sort != ValueSort.NUMBER:
            yield Doubt(field, f"{name} is {sort}, and {operator} compares numbers", "compare with = or <>")
    elif sort_of(constant) != sort:
        message = f"{name} is {sort}, never {faults.name(constant)}"
        yield Doubt(constant, message, _instead(field, constant, predicate.source(constant)))
    elif isinstance(constant.value, str):
        yield from _text(field, constant.value, constant)


def _text(field: Identifier, text: str, node: PredicateNode) -> Iterator[Doubt]:
    """Yields the doubt about a text that a field is compared with, if there is one."""
    if field.name == ADDRESS and text.startswith(_KINDS):
        name = text.partition(":")[2].removeprefix("//")
        yield Doubt(node, f"'{text}' is not an address: msg.address is the name alone", f"write '{name}'")
    elif field.name == "JMSDeliveryMode" and text not in _MODES:
        near = get_close_matches(text.upper(), _MODES, n=1)
        hint = f"did you mean '{near[0]}'?" if near else "it is 'PERSISTENT' or 'NON_PERSISTENT'"
        yield Doubt(node, f"'{text}' is not a delivery mode", hint)


def _sort(name: str) -> str:
    """Returns the kind of a standard field's values in words; empty for a property."""
    declared = _FIELD_TYPES.get(name)
    return "" if declared is None else _SORTS.get(declared, ValueSort.NUMBER)


def sort_of(constant: Literal) -> ValueSort:
    """Returns the sort of a constant."""
    match constant.value:
        case bool():
            return ValueSort.TRUTH
        case str():
            return ValueSort.TEXT
    return ValueSort.NUMBER


def _instead(field: Identifier, constant: Literal, source: str) -> str:
    """Returns the hint for a constant of another type than the field."""
    if field.name == "JMSDeliveryMode":
        return f"write '{_MODES[constant.value == 1]}'" if constant.value in (1, 2) else "write 'PERSISTENT'"
    return instead(_sort(field.name), constant, source)


def instead(sort: str, constant: Literal, source: str) -> str:
    """Returns the hint for a constant, written as `source`, that is compared with values of another sort."""
    if sort == ValueSort.TEXT:
        return f"write '{source}'"
    if isinstance(constant.value, str) and (faults.numbers_text(constant.value) if sort == ValueSort.NUMBER else True):
        return f"write {constant.value} without quotes" if sort == ValueSort.NUMBER else "write TRUE or FALSE"
    return f"compare it with {sort}"
