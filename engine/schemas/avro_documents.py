"""Documents of Avro values, written while the bytes are read by their schema (`jmsbridge.serdes.AvroDocuments`).

The schema becomes functions, one for each of its types, and none that it names twice. A library would give floats as
doubles, decimals with another scale, and lists as long as an array says it is.
"""

from __future__ import annotations

import json
import math
import struct
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from engine.schemas.value_source import INT, LONG, InvalidSchemaError, InvalidValueError, ValueSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias, TypeVar

    from engine.schemas.document_text import DocumentText
    from engine.schemas.schema_text import RegisteredSchema

    _Choice = TypeVar("_Choice")
    _Reader: TypeAlias = Callable[[ValueSource, DocumentText], None]

__all__ = ["AvroDocuments"]

_MOST_PRECISION = (1 << 31) - 1


class AvroDocuments:
    """Documents of the values of one schema."""

    def __init__(self, schema: RegisteredSchema) -> None:
        """Reads the schema; raises InvalidSchemaError."""
        names = _Names()
        _define(schema, names)
        self._read = names.reader(_parsed(schema.text), "")

    def write(self, source: ValueSource, out: DocumentText) -> None:
        """Writes the document of a value.

        Raises InvalidValueError, EOFError if the value has no end, and UnreadableBodyError.
        """
        self._read(source, out)
        if source.left:
            msg = "there are bytes behind its end"
            raise InvalidValueError(msg)


def _null(_: ValueSource, out: DocumentText) -> None:
    out.plain("null")


def _boolean(source: ValueSource, out: DocumentText) -> None:
    out.flag(source.take(1) == b"\x01")


def _int(source: ValueSource, out: DocumentText) -> None:
    out.plain(str(source.number(INT)))


def _long(source: ValueSource, out: DocumentText) -> None:
    out.plain(str(source.number(LONG)))


def _float(source: ValueSource, out: DocumentText) -> None:
    out.floating(struct.unpack("<f", source.take(4))[0], "f")


def _double(source: ValueSource, out: DocumentText) -> None:
    out.floating(struct.unpack("<d", source.take(8))[0], "d")


def _bytes(source: ValueSource, out: DocumentText) -> None:
    out.data(source.sized())


def _string(source: ValueSource, out: DocumentText) -> None:
    out.text(source.text())


_PRIMITIVE: dict[str, _Reader] = {
    "null": _null,
    "boolean": _boolean,
    "int": _int,
    "long": _long,
    "float": _float,
    "double": _double,
    "bytes": _bytes,
    "string": _string,
}


class _Names:
    """Readers of the types of schemas; those with names are known to the schemas that come later."""

    def __init__(self) -> None:
        self.readers: dict[str, _Reader] = {}

    def reader(self, schema: Any, namespace: str) -> _Reader:
        """The reader of a type; raises InvalidSchemaError."""
        match schema:
            case str():
                return _PRIMITIVE.get(schema) or self._known(schema, namespace)
            case [*branches]:
                return _union([self.reader(each, namespace) for each in branches])
            case {"type": "record" | "error", "name": str(), "fields": [*fields]}:
                name = self._defined(schema, namespace)
                inner = name.rpartition(".")[0]
                self.readers[name] = reader = _record(readers := [])
                readers += [(_text(each, "name"), self.reader(each.get("type"), inner)) for each in fields]
                return reader
            case {"type": "enum", "name": str(), "symbols": [*symbols]}:
                return self._named(schema, namespace, _enum([str(each) for each in symbols]))
            case {"type": "fixed", "name": str(), "size": int(size)} if size >= 0:
                return self._named(schema, namespace, _fixed(schema, size))
            case {"type": "array", "items": items}:
                return _array(self.reader(items, namespace))
            case {"type": "map", "values": values}:
                return _map(self.reader(values, namespace))
            case {"type": "bytes"} if (decimal := _decimal(schema, _MOST_PRECISION)) is not None:
                return lambda source, out: out.plain(decimal(source.sized()))
            case {"type": kind}:
                return self.reader(kind, namespace)
        msg = f"it has the type {json.dumps(schema)[:100]}, which Avro does not have"
        raise InvalidSchemaError(msg)

    def _known(self, name: str, namespace: str) -> _Reader:
        for full in (_full(name, namespace), name):
            if full in self.readers:
                return self.readers[full]
        msg = f"it names the type '{name}', which it does not define"
        raise InvalidSchemaError(msg)

    def _named(self, schema: dict[str, Any], namespace: str, reader: _Reader) -> _Reader:
        self.readers[self._defined(schema, namespace)] = reader
        return reader

    def _defined(self, schema: dict[str, Any], namespace: str) -> str:
        """The full name of a type that is not defined yet."""
        own = schema.get("namespace", namespace)
        name = _full(schema["name"], own if isinstance(own, str) else "")
        if name in self.readers:
            msg = f"it defines the type '{name}' twice"
            raise InvalidSchemaError(msg)
        return name


def _define(schema: RegisteredSchema, names: _Names) -> None:
    """Makes the types of the schemas known to which a schema refers."""
    for each in schema.references:
        _define(each.schema, names)
        if each.name not in names.readers:
            names.reader(_parsed(each.schema.text), "")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        msg = f"the text is not an Avro schema: {error}"
        raise InvalidSchemaError(msg) from error


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _text(content: Any, name: str) -> str:
    text = content.get(name) if isinstance(content, dict) else None
    if not isinstance(text, str):
        msg = f"a field of it has no {name}"
        raise InvalidSchemaError(msg)
    return text


def _record(fields: list[tuple[str, _Reader]]) -> _Reader:
    def read(source: ValueSource, out: DocumentText) -> None:
        out.open("{")
        for name, reader in fields:
            out.name(name)
            reader(source, out)
        out.close("}")

    return read


def _array(item: _Reader) -> _Reader:
    def read(source: ValueSource, out: DocumentText) -> None:
        out.open("[")
        while count := source.block():
            for _ in range(count):
                item(source, out)
        out.close("]")

    return read


def _map(value: _Reader) -> _Reader:
    def read(source: ValueSource, out: DocumentText) -> None:
        out.open("{")
        while count := source.block():
            for _ in range(count):
                out.name(source.text())
                value(source, out)
        out.close("}")

    return read


def _union(branches: list[_Reader]) -> _Reader:
    return lambda source, out: _chosen(branches, source)(source, out)


def _enum(symbols: list[str]) -> _Reader:
    return lambda source, out: out.text(_chosen(symbols, source))


def _chosen(among: list[_Choice], source: ValueSource) -> _Choice:
    choice = source.number(INT)
    if not 0 <= choice < len(among):
        msg = f"it has the choice {choice} where there are {len(among)}"
        raise InvalidValueError(msg)
    return among[choice]


def _fixed(schema: dict[str, Any], size: int) -> _Reader:
    # The digits that fit into so many bytes with a sign.
    decimal = _decimal(schema, math.floor(math.log10(2) * (8 * size - 1)))
    if decimal is None:
        return lambda source, out: out.data(source.take(size))
    return lambda source, out: out.plain(decimal(source.take(size)))


def _decimal(schema: dict[str, Any], most_digits: int) -> Callable[[bytes], str] | None:
    """The text of a decimal in bytes; None for another type, also one whose precision and scale are not valid."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if schema.get("logicalType") != "decimal" or type(precision) is not int or type(scale) is not int:
        return None
    if not 0 < precision <= most_digits or not 0 <= scale <= precision:
        return None

    def text(content: bytes) -> str:
        unscaled = int.from_bytes(content, signed=True)
        # Three bits are less than a digit: most values of too many digits are told without their digits.
        digits = str(Decimal(abs(unscaled))) if unscaled.bit_length() < 4 * precision + 4 else None
        if digits is None or len(digits) > precision:
            msg = f"it has a decimal with more than {precision} digits"
            raise InvalidValueError(msg)
        digits = digits.rjust(scale + 1, "0")
        whole = digits[: len(digits) - scale]
        return f"{'-' * (unscaled < 0)}{whole}{'.' * (scale > 0)}{digits[len(whole) :]}"

    return text
