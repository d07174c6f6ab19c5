"""Kinds of values written in the routing language: predicates, and the header of a key."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from routes.errors import PredicateError
from routes.keys.values import BadValueError, ValueKind
from routes.predicate import parse
from routes.predicate.nodes import ADDRESS, PATHS, BodyPath, Identifier, IsNull, ValuePath

if TYPE_CHECKING:
    from routes.predicate.nodes import Predicate

__all__ = ["BODY_PATHS", "KEY_HEADER", "MASKED", "PREDICATE", "parse_header", "parse_reference"]

_PART = re.compile(r'(?:[^,"]|"[^"]*"?)+|(?:(?<=,)|^)(?=,|$)')
_PATH_HINT = 'as in msg.body.card, msg.body.lines[*].iban or msg.body."odd name"'
_MASKED_HINT = "as in iban, JMSCorrelationID, key, msg.body.card, msg.body.lines[*].iban or xpath('/order/card')"
_KEY_HINT = 'as in msg.header.CorrelationId, msg.header."any name", JMSType, region or msg.body.order.id'


def _parse_predicate(text: str) -> Predicate:
    if not text.strip():
        raise BadValueError("the predicate is empty", "TRUE takes every message")
    return parse(text)


def parse_header(text: str) -> str:
    """Returns the JMS name of a header, which may have any spelling of the language.

    Raises:
        BadValueError: the text is something else.
    """
    return _parse_name(text, bodies=False)


def parse_reference(text: str) -> str:
    """Returns the JMS name of the header, or the path into the body, that a key or part of a destination is taken from.

    Raises:
        BadValueError: the text is something else, or the path has `[*]`.
    """
    return _parse_name(text, bodies=True)


def _parse_name(text: str, *, bodies: bool) -> str:
    name = text.removeprefix("msg.header.")
    hint = _KEY_HINT if name == text or '"' in name else f'write msg.header."{name}"'
    try:
        tree = parse(f"{text} IS NULL").root if text.strip() else None
    except PredicateError as error:
        if bodies and text.startswith(PATHS):
            fault = error.fault
            raise BadValueError(f"'{text}': {fault.message}", fault.hint, fault.column - 1) from error
        raise BadValueError(f"'{text}' is not the name of a header", hint) from error
    if isinstance(tree, IsNull) and isinstance(tree.operand, Identifier) and tree.operand.name != ADDRESS:
        if tree.operand.name.startswith(PATHS):
            raise BadValueError(f"a property named {tree.operand.name} gives no key and no destination", hint)
        return tree.operand.name
    if bodies and isinstance(tree, IsNull) and isinstance(tree.operand, ValuePath):
        if not tree.operand.steps:
            raise BadValueError("'msg.body' is the whole body", "name a field of it, as in msg.body.order.id")
        if isinstance(tree.operand, BodyPath) and tree.operand.is_repeated:
            raise BadValueError(f"'{text}' names many values", "write [0] for the first element, [-1] for the last")
        return str(tree.operand)
    raise BadValueError(f"'{text}' is not the name of a header", hint)


def _parse_paths(text: str) -> tuple[BodyPath, ...]:
    """Parses paths into JSON bodies between commas, each of which may name many values."""
    paths: list[BodyPath] = []
    for part in _PART.finditer(text):
        spelt = part[0].strip()
        offset = part.end() - len(part[0].lstrip())
        try:
            path = _parse_path(spelt)
            if path in paths:
                raise BadValueError(f"'{spelt}' is listed twice", "name each path once")
        except BadValueError as error:
            raise BadValueError(str(error), error.hint, error.offset + offset) from error
        paths.append(path)
    return tuple(paths)


def _parse_masked(text: str) -> tuple[str | ValuePath, ...]:
    """Parses names of headers and paths into JSON or XML bodies between commas; a path may name many values."""
    masked: list[str | ValuePath] = []
    for part in _PART.finditer(text):
        spelt = part[0].strip()
        offset = part.end() - len(part[0].lstrip())
        try:
            each = _parse_value_path(spelt) if spelt.startswith(PATHS) else parse_header(spelt)
            if each in masked:
                raise BadValueError(f"'{spelt}' is listed twice", "name each once")
        except BadValueError as error:
            raise BadValueError(str(error), error.hint or _MASKED_HINT, error.offset + offset) from error
        masked.append(each)
    return tuple(masked)


def _parse_value_path(text: str) -> ValuePath:
    try:
        tree = parse(f"{text} IS NULL").root
    except PredicateError as error:
        fault = error.fault
        raise BadValueError(f"'{text}': {fault.message}", fault.hint or _MASKED_HINT, fault.column - 1) from error
    if not isinstance(tree, IsNull) or not isinstance(tree.operand, ValuePath):
        raise BadValueError(f"'{text}' is not a path into the body", _MASKED_HINT)
    return tree.operand


def _parse_path(text: str) -> BodyPath:
    if not text:
        raise BadValueError("a path is missing between commas", _PATH_HINT)
    if text.startswith("xpath"):
        raise BadValueError(f"'{text}' leads into XML, and only JSON bodies have masks", _PATH_HINT)
    try:
        tree = parse(f"{text} IS NULL").root
    except PredicateError as error:
        fault = error.fault
        if not text.startswith(PATHS) or fault.column > len(text):
            raise BadValueError(f"'{text}' is not a path into the body", _PATH_HINT) from error
        raise BadValueError(f"'{text}': {fault.message}", fault.hint or _PATH_HINT, fault.column - 1) from error
    path = tree.operand if isinstance(tree, IsNull) else None
    if not isinstance(path, BodyPath):
        raise BadValueError(f"'{text}' is not a path into the body", _PATH_HINT)
    if not path.steps:
        raise BadValueError("'msg.body' is the whole body", f"name fields of it, {_PATH_HINT}")
    return path


PREDICATE = ValueKind("predicate", "a predicate", _parse_predicate)
KEY_HEADER = ValueKind("header", "the name of a header", parse_reference)
BODY_PATHS = ValueKind("list of paths", "paths such as msg.body.card, msg.body.lines[*].iban", _parse_paths)
MASKED = ValueKind("list of names and paths", "names and paths such as iban, msg.body.card", _parse_masked)
