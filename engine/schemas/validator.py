"""Checks of documents against a JSON Schema: of the draft that it names, else of 2020-12, with exact numbers.

Formats are not checked, patterns are those of Python, and nothing is fetched: a schema that refers to another document
is refused.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from engine.schemas.value_source import InvalidSchemaError
from routes.predicate.bodies import BYTE_ORDER_MARK, SURROGATE, Body, UnreadableBodyError
from routes.predicate.nodes import BodyPath, DocumentFormat

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["faults", "json_schema_root"]

_MOST_FAULTS = 3
_MOST_SCHEMAS = 100
_MOST_DIGITS = 1_000
"""Most characters of a number."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def faults(schema_text: str, document: bytes) -> list[str]:
    """Returns the places where a document does not fit a schema: three, and the number of further ones.

    Raises:
        InvalidSchemaError: the text is not a JSON Schema, or it refers to another document.
        UnreadableBodyError: the document is not JSON, or it is beyond the bounds of bodies.
    """
    checked = _validator(schema_text)
    try:
        errors = {_fault(error) for error in checked.iter_errors(_read(document))}
    except re.error as error:
        msg = f"the JSON Schema has the pattern '{error.pattern!s}', which cannot be used: {error}"
        raise InvalidSchemaError(msg) from error
    except BaseException as error:
        # The library's map of references, which is written in Rust, panics where the stack ends.
        if not isinstance(error, RecursionError) and type(error).__name__ != "PanicException":
            raise
        msg = "the JSON Schema is nested too deeply for this document, or refers to itself without end"
        raise InvalidSchemaError(msg) from error
    texts = [f"{path} does not fit '{keyword}'" for path, keyword in sorted(errors)]
    more = len(texts) - _MOST_FAULTS
    return [*texts[:_MOST_FAULTS], f"and {more} more"] if more > 0 else texts


def json_schema_root(schema_text: str) -> tuple[Any, Any, Any]:
    """Returns the specification of a schema's references, the schema, and the resolver of its references.

    Raises InvalidSchemaError: the text is not a JSON Schema, or it refers to another document.
    """
    from referencing import Registry

    checked = _validator(schema_text)
    specification = _specification(checked)
    root = specification.create_resource(checked.schema)
    return specification, checked.schema, Registry().resolver_with_root(root)


def _fault(error: Any) -> tuple[str, str]:
    """Path and keyword of an error. The schema `false`, which nothing fits, has no keyword."""
    path = str(BodyPath(tuple(error.absolute_path)))
    return SURROGATE.sub("\ufffd", path), error.validator or "false"


def _read(document: bytes) -> Any:
    wrong = Body(document).fault(DocumentFormat.JSON)
    if wrong is not None:
        raise UnreadableBodyError(wrong)
    try:
        return _parsed(document.removeprefix(BYTE_ORDER_MARK).decode())
    except ValueError as error:
        msg = f"the body cannot be read: {error}"
        raise UnreadableBodyError(msg) from error


def _parsed(text: str) -> Any:
    """Returns JSON with exact numbers; ValueError if there is none."""
    return json.loads(text, parse_int=_number, parse_float=_number)


def _number(text: str) -> Decimal:
    try:
        return Decimal(text if len(text) <= _MOST_DIGITS else "")
    except InvalidOperation as error:
        msg = f"the number {text[:20]} has more than {_MOST_DIGITS:,} digits, or too large an exponent"
        raise ValueError(msg) from error


@lru_cache(_MOST_SCHEMAS)
def _validator(schema_text: str) -> Any:
    """The validator of a schema."""
    from jsonschema import exceptions, validators
    from referencing import Registry

    try:
        # The schema of schemas is checked with numbers of Python, which that validator knows.
        plain, exact = json.loads(schema_text), _parsed(schema_text)
    except (ValueError, RecursionError) as error:
        msg = f"the schema is not JSON: {error}"
        raise InvalidSchemaError(msg) from error
    base = _draft(plain)
    try:
        base.check_schema(plain)
        _check_references(plain, base)
    except exceptions.SchemaError as error:
        msg = f"the text is not a JSON Schema: {error.json_path} does not fit '{error.validator}'"
        raise InvalidSchemaError(msg) from error
    except OverflowError as error:
        msg = f"the JSON Schema has a pattern that cannot be used: {error}"
        raise InvalidSchemaError(msg) from error
    except RecursionError as error:
        msg = "the JSON Schema is nested too deeply"
        raise InvalidSchemaError(msg) from error
    made = validators.extend(
        base,
        validators={name: check for name, check in _CHECKS.items() if name in base.VALIDATORS},
        type_checker=base.TYPE_CHECKER.redefine("integer", _is_integer),
    )
    # An empty registry, since the library's own one fetches other documents.
    return made(exact, registry=Registry())


def _draft(schema: Any) -> Any:
    """The class of validators of the draft that a schema names."""
    from jsonschema import validators

    if not isinstance(schema, dict) or "$schema" not in schema:
        return validators.Draft202012Validator
    name = schema["$schema"]
    validator = validators.validator_for(schema, default=None) if isinstance(name, str) else None
    if validator is None:
        msg = f"the JSON Schema names the draft {name!r}, which is not known: correct $schema"
        raise InvalidSchemaError(msg)
    return validator


def _check_references(schema: Any, base: Any) -> None:
    """Refuses references out of the document."""
    from referencing import Registry, exceptions

    specification = _specification(base)
    root = specification.create_resource(schema)
    waiting = [(root, Registry().resolver_with_root(root))]
    while waiting:
        resource, resolver = waiting.pop()
        part = resource.contents if isinstance(resource.contents, dict) else {}
        for reference in (part[name] for name in _REFERENCES if isinstance(part.get(name), str)):
            try:
                resolver.lookup(reference)
            except (exceptions.Unresolvable, ValueError) as error:
                msg = f"the JSON Schema has the reference '{reference}', which leads to nothing in it: inline that part"
                raise InvalidSchemaError(msg) from error
        waiting += [(each, resolver.in_subresource(each)) for each in resource.subresources()]


def _specification(base: Any) -> Any:
    """The specification of references in schemas of a class of validators."""
    from referencing import jsonschema

    return jsonschema.specification_with(base.META_SCHEMA.get("$schema"))


def _is_integer(_: Any, value: object) -> bool:
    return isinstance(value, Decimal) and _parts(value)[1] >= 0


def _multiple_of(validator: Any, of: Decimal, value: Any, _: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if validator.is_type(value, "number") and not _is_multiple(value, of):
        yield ValidationError("not a multiple")


def _is_multiple(value: Decimal, of: Decimal) -> bool:
    """Returns whether a number is a multiple of another one, exactly, whatever their exponents."""
    digits, exponent = _parts(value)
    step, other = _parts(of)
    # Digits without zeros at their end are not a multiple of ten.
    return digits == 0 or (exponent >= other and digits * pow(10, exponent - other, step) % step == 0)


def _parts(number: Decimal) -> tuple[int, int]:
    """Digits of a number with its sign and without zeros at their end, and the power of ten that they stand for."""
    sign, digits, exponent = number.as_tuple()
    written = "".join(map(str, digits))
    short = written.rstrip("0")
    value = int(short or "0")
    return (-value if sign else value), int(exponent) + len(written) - len(short) if short else 0


def _unique_items(validator: Any, is_asked: bool, value: Any, _: Any) -> Iterator[Any]:
    """The check of the library compares each element with each other."""
    from jsonschema.exceptions import ValidationError

    if is_asked and validator.is_type(value, "array") and len(set(map(_canonical, value))) < len(value):
        yield ValidationError("equal elements")


def _canonical(value: Any) -> str:
    """Text that equal values have in common, and others do not."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_canonical(each)}" for name, each in sorted(value.items())) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    if isinstance(value, Decimal):
        digits, exponent = _parts(value)
        return f"{digits}e{exponent}"
    return json.dumps(value)


_CHECKS = {"multipleOf": _multiple_of, "divisibleBy": _multiple_of, "uniqueItems": _unique_items}
