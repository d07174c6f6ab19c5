"""Kind of value of `routes.NAME.in.schema` and `out.schema`: the name of a schema."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

from routes.keys.values import BadValueError, ValueKind, one_of, parse_text
from routes.schema_names import SchemaKind, SchemaName

__all__ = ["SCHEMA"]

_KINDS = [*SchemaKind]
_HINT = "as in avro:orders-value@3, json-schema:schemas/order.json or protobuf:orders.desc#shop.Order"
_VERSION = re.compile(r"(.+)@([1-9]\d{0,8})", re.DOTALL)
_MESSAGE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def _parse_schema(text: str) -> SchemaName:
    word, colon, rest = parse_text(text).partition(":")
    if not colon:
        raise BadValueError("a schema has a format and a name", _HINT)
    if word not in _KINDS:
        near = get_close_matches(word.lower(), _KINDS, n=1)
        raise BadValueError(f"'{word}' is not {one_of(_KINDS)}", f"did you mean {near[0]}?" if near else _HINT)
    kind, place = SchemaKind(word), rest.strip()
    place, sharp, message = place.partition("#") if kind is SchemaKind.PROTOBUF else (place, "", "")
    if not place:
        raise BadValueError("the name of the schema is missing", _HINT, len(text))
    if sharp and not _MESSAGE.fullmatch(message):
        raise BadValueError(f"'{message}' is not the name of a message", _HINT, text.index("#") + 1)
    if place.endswith(kind.suffix):
        return SchemaName(kind, Path(place), message=message)
    if kinds := [other for other in _KINDS if place.endswith(other.suffix) or "/" in place]:
        is_other = place.endswith(kinds[0].suffix)
        what = f"a file '{place}' has the form of {kinds[0]}" if is_other else f"the file '{place}' has another ending"
        raise BadValueError(what, f"files of {kind} end in {kind.suffix}", text.index(place))
    match = _VERSION.fullmatch(place)
    subject, version = (match[1], int(match[2])) if match else (place, 0)
    return SchemaName(kind, None, subject, version, message)


SCHEMA = ValueKind("schema", f"a schema, {_HINT}", _parse_schema)
