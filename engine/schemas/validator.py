"""Checks of JSON documents against a JSON Schema."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from engine.schemas.value_source import InvalidSchemaError
from routes.predicate.bodies import BOUNDS, BYTE_ORDER_MARK, UnreadableBodyError, nesting
from routes.predicate.nodes import BodyPath

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jsonschema.protocols import Validator

__all__ = ["faults"]

_MOST_FAULTS = 3
_MOST_DIGITS = 1_000
"""Most characters of a number in a document."""


def faults(schema: str, document: bytes) -> list[str]:
    """Returns where the document does not fit the schema, with the keyword; at most three places and their number.

    Raises:
        UnreadableBodyError: the document is not JSON, or exceeds the bounds of bodies.
        InvalidSchemaError: the text is not a JSON Schema, or refers to another document; nothing is fetched.
    """
    from referencing.exceptions import Unresolvable

    validator = _validator(schema)
    content = _document(document)
    try:
        found = {(_path(each.absolute_path), str(each.validator)) for each in validator.iter_errors(content)}
    except Unresolvable as error:
        msg = f"the JSON Schema refers to '{error.ref}', which is not in it"
        raise InvalidSchemaError(msg) from error
    except RecursionError as error:
        msg = "the JSON Schema refers to itself without end"
        raise InvalidSchemaError(msg) from error
    told = [f"{path} does not fit '{keyword}'" for path, keyword in sorted(found)]
    more = len(told) - _MOST_FAULTS
    return told[:_MOST_FAULTS] + [f"and {more} more"] * (more > 0)


def _path(steps: Any) -> str:
    return str(BodyPath(tuple(steps)))


@lru_cache(maxsize=100)
def _validator(schema: str) -> Validator:
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, extend, validator_for
    from referencing import Registry

    try:
        read = _read(schema)
        if not isinstance(read, dict | bool):
            msg = "it is neither an object nor a boolean"
            raise ValueError(msg)
        draft = validator_for(read, default=Draft202012Validator)
        draft.check_schema(read)
    except (ValueError, RecursionError, SchemaError) as error:
        first = str(error).partition("\n")[0]
        msg = f"the text is not a JSON Schema: {first}"
        raise InvalidSchemaError(msg) from error
    types = draft.TYPE_CHECKER.redefine("integer", _is_integer).redefine("number", _is_number)
    checked = extend(draft, {"multipleOf": _multiple_of}, type_checker=types)
    # A registry of nothing: no reference is looked for elsewhere.
    return checked(read, registry=Registry())


def _is_number(_: Any, value: Any) -> bool:
    return isinstance(value, Decimal)


def _is_integer(_: Any, value: Any) -> bool:
    return isinstance(value, Decimal) and (not value or _parts(value)[1] >= 0)


def _multiple_of(_: Any, divisor: Decimal, value: Any, __: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if isinstance(value, Decimal) and value:
        digits, exponent = _parts(value)
        others, other = _parts(divisor)
        # Digits without zeros at their end are not a multiple of ten.
        if exponent < other or digits * pow(10, exponent - other, others) % others:
            yield ValidationError("not a multiple")


def _parts(number: Decimal) -> tuple[int, int]:
    """The digits of a number without zeros at their end, and the power of ten that they are multiplied by."""
    _, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits))
    short = text.rstrip("0") or "0"
    return int(short), int(exponent) + len(text) - len(short)


def _document(document: bytes) -> Any:
    if len(document) > BOUNDS.size:
        msg = f"the document has more than {BOUNDS.size:,} bytes"
        raise UnreadableBodyError(msg)
    if nesting(document) > BOUNDS.depth:
        msg = f"the document is nested more than {BOUNDS.depth} deep"
        raise UnreadableBodyError(msg)
    try:
        return _read(document.removeprefix(BYTE_ORDER_MARK).decode())
    except ValueError as error:
        msg = f"the document is not JSON: {error}"
        raise UnreadableBodyError(msg) from error


def _read(text: str) -> Any:
    """A document whose numbers are exact; ValueError if there is none."""
    return json.loads(text, parse_int=_number, parse_float=_number, parse_constant=_number)


def _number(text: str) -> Decimal:
    try:
        number = Decimal(text if len(text) <= _MOST_DIGITS else "")
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        msg = f"the number {text[:40]} has more than {_MOST_DIGITS:,} digits, or is not finite"
        raise ValueError(msg)
    return number
