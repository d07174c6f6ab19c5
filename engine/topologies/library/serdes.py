"""Serdes: how the bytes of a record's key and value become fields, and fields become bytes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.topologies.library.schema_serdes import SchemaSerde

__all__ = [
    "ColumnSerde",
    "Key",
    "KeyForm",
    "KeyKind",
    "Serde",
    "SerdeKind",
    "binary",
    "check_serde",
    "json",
    "key_form",
    "text",
]

_TIMES = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "timeZone": "UTC"}
"""Timestamps in JSON are those of ISO 8601, in UTC."""


class KeyKind(StrEnum):
    """Form of a key in Kafka."""

    TEXT = "text"
    BYTES = "bytes"
    LONG = "long"
    """Eight bytes, most significant first, as Kafka's LongSerializer writes them."""


class SerdeKind(StrEnum):
    """Form of a value in Kafka."""

    BYTES = "bytes"
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class ColumnSerde:
    """Form of values that Spark's expressions read and write; make one with `binary`, `text` or `json`."""

    kind: SerdeKind
    schema: str = ""
    """Fields of a JSON object as text of Spark SQL, such as `customer string, amount double`."""

    def reader(self) -> Column:
        """A struct of the fields, from the column `value` of bytes; it fails for bytes that do not fit."""
        value = F.col("value")
        match self.kind:
            case SerdeKind.BYTES:
                return F.struct(value)
            case SerdeKind.TEXT:
                return F.struct(value.cast("string").alias("value"))
            case SerdeKind.JSON:
                return F.from_json(value.cast("string"), self.schema, {"mode": "FAILFAST", **_TIMES})

    def writer(self, fields: tuple[str, ...]) -> Column:
        """The bytes of a value with these fields; ValueError if they do not fit the serde."""
        if self.kind is SerdeKind.JSON:
            return F.to_json(F.struct(*(F.col(f"`{name}`") for name in fields)), _TIMES)
        if len(fields) != 1:
            msg = f"a value of {self.kind} has one field, not {len(fields)}: choose it with map_values, or write JSON"
            raise ValueError(msg)
        return F.col(f"`{fields[0]}`")

    def __str__(self) -> str:
        return f"{self.kind}({self.schema})" if self.schema else str(self.kind)


Serde: TypeAlias = ColumnSerde | SchemaSerde
"""Form of the values of a topic."""
KeyForm: TypeAlias = KeyKind | ColumnSerde | SchemaSerde
"""Form of the keys of a topic; a serde of columns is one of JSON."""
Key: TypeAlias = KeyKind | str | ColumnSerde | SchemaSerde
"""Form of the keys of a topic as it may be given."""


def binary() -> ColumnSerde:
    """Bytes as they are, in the field `value`."""
    return ColumnSerde(SerdeKind.BYTES)


def text() -> ColumnSerde:
    """UTF-8 text, in the field `value`."""
    return ColumnSerde(SerdeKind.TEXT)


def json(schema: str = "") -> ColumnSerde:
    """JSON objects with these fields, as text of Spark SQL; a sink needs no schema, since it writes all fields."""
    return ColumnSerde(SerdeKind.JSON, schema)


def key_form(given: Key) -> KeyForm:
    """The form of keys that is given as a name or a serde; ValueError for any other name."""
    if isinstance(given, SchemaSerde):
        return given
    if isinstance(given, ColumnSerde):
        return given if given.kind is SerdeKind.JSON else KeyKind(given.kind)
    if given in set(KeyKind):
        return KeyKind(given)
    forms = [*(f"{kind.value!r}" for kind in KeyKind), 'json("a int, …")', _SCHEMAS]
    msg = f"key={_shown(given)} is not a form of keys: write {', '.join(forms)}"
    raise ValueError(msg)


def check_serde(given: object) -> None:
    """Raises TypeError if the form of a topic's values is not a serde; None is one that is left out."""
    if given is not None and not isinstance(given, ColumnSerde | SchemaSerde):
        instead = _INSTEAD.get(given) if isinstance(given, str) else None
        if instead is None:
            is_fields = isinstance(given, str) and " " in given
            instead = f"json({given!r})" if is_fields else _INSTEAD.get(getattr(given, "__name__", ""), _SERDES)
        msg = f"the form of values is a serde, not {_shown(given)}: write value={instead}"
        raise TypeError(msg)


_SCHEMAS = "avro(…), json_schema(…) or protobuf(…)"
_SERDES = f'json("a int, …"), text(), binary(), {_SCHEMAS}'
_INSTEAD = {
    "json": 'json("a int, …")',
    "text": "text()",
    "string": "text()",
    "bytes": "binary()",
    "binary": "binary()",
    "avro": "avro(…)",
    "json_schema": "json_schema(…)",
    "protobuf": "protobuf(…)",
}
"""Serdes by the names that may be written for them."""


def _shown(given: object) -> str:
    return f"the function {getattr(given, '__name__', given)}" if callable(given) else repr(given)
