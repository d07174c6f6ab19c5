"""Where the Columns of a message's fields and properties come from: the headers of its Kafka record.

A header is found by position in the array of names; that stays in generated code, where higher-order functions and
maps built for each record do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routes.predicate.nodes import ADDRESS
from routes.predicate.operands import UNDECLARED, Operand, declared, dynamic
from routes.properties import HEADER_FIELDS, JmsType, encode_type_name

__all__ = ["ColumnView", "HeaderView", "View", "extract"]

_TYPES = "jmsbridge.types"
_KINDS = "|".join(JmsType)
_PREFIX = "jms."
_REST = 2**31 - 1


class View(Protocol):
    """Gives the Columns of a message's values by name."""

    def text(self, name: str) -> Column:
        """The text of a field or property (`ADDRESS` too), whatever its type; NULL if the message has none."""

    def operand(self, name: str) -> Operand:
        """The value as predicates read it."""


class HeaderView:
    """Looks values up in the headers, each time one is used."""

    def __init__(self, headers: Column) -> None:
        """`headers`: array<struct<key: string, value: binary>>, nullable, as Spark's Kafka source gives it."""
        self._keys = headers.getField("key")
        self._values = headers.getField("value")

    def text(self, name: str) -> Column:
        """See `View`."""
        if name != ADDRESS:
            return self._header(_PREFIX + name)
        destination = self._header(f"{_PREFIX}JMSDestination")
        prefixed = destination.startswith("queue:") | destination.startswith("topic:")
        return F.when(prefixed, F.substring(destination, len("queue:") + 1, _REST)).otherwise(destination)

    def kind(self, name: str) -> Column:
        """The declared type of a property (string), `UNDECLARED` without one."""
        pair = rf"(?:^|,){re.escape(encode_type_name(name))}=({_KINDS})(?:,|\z)"
        return F.coalesce(F.regexp_extract(self._header(_TYPES), pair, 1), F.lit(UNDECLARED))

    def operand(self, name: str) -> Operand:
        """See `View`."""
        return _operand(name, self.text(name), self.kind(name))

    def _header(self, name: str) -> Column:
        # `get` gives NULL for position -1 (no such header) where the bracket operator would fail.
        return F.get(self._values, F.array_position(self._keys, name).cast("int") - 1).cast("string")


class ColumnView:
    """Reads values from columns that `extract` made; what it did not make is looked up in the headers."""

    def __init__(self, texts: Mapping[str, Column], operands: Mapping[str, Operand], headers: Column) -> None:
        self._texts = texts
        self._operands = operands
        self._headers = HeaderView(headers)

    def text(self, name: str) -> Column:
        """See `View`."""
        return self._texts[name] if name in self._texts else self._headers.text(name)

    def operand(self, name: str) -> Operand:
        """See `View`."""
        return self._operands[name] if name in self._operands else self._headers.operand(name)


def extract(frame: DataFrame, names: Iterable[str]) -> tuple[DataFrame, ColumnView]:
    """The frame with the values of these fields and properties taken out of its column `headers` once.

    The columns it gains are named `property_<number>_<part>`; Spark leaves out those that nothing reads. Called again
    on the same frame, it replaces them, and the view of the first call is void.
    """
    headers = HeaderView(F.col("headers"))
    numbered = dict(enumerate(dict.fromkeys(names)))
    raw = {_column(number, "text"): headers.text(name) for number, name in numbered.items()}
    frame = frame.withColumns(raw | {_column(number, "kind"): headers.kind(name) for number, name in numbered.items()})
    made: dict[str, Column] = {}
    texts: dict[str, Column] = {}
    operands: dict[str, Operand] = {}
    for number, name in numbered.items():
        texts[name] = F.col(_column(number, "text"))
        operand = _operand(name, texts[name], F.col(_column(number, "kind")))
        ways: dict[str, Any] = {}
        for way in ("text", "truth", "long", "single", "double", "present"):
            if (column := getattr(operand, way)) is not None:
                made[_column(number, f"as_{way}")] = column
                ways[way] = F.col(_column(number, f"as_{way}"))
        operands[name] = Operand(**ways)
    return frame.withColumns(made), ColumnView(texts, operands, F.col("headers"))


def _operand(name: str, raw: Column, kind: Column) -> Operand:
    fixed = JmsType.STRING if name == ADDRESS else HEADER_FIELDS.get(name)
    return dynamic(raw, kind) if fixed is None else declared(raw, fixed)


def _column(number: int, part: str) -> str:
    return f"property_{number}_{part}"
