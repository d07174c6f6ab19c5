"""Where the Columns of a message's fields and properties come from: the headers of its Kafka record.

A header is found by position in the array of names; that stays in generated code, where higher-order functions and
maps built for each record do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from routes.predicate.nodes import ADDRESS
from routes.predicate.operands import Operand, any_number, declared, dynamic
from routes.properties import HEADER_FIELDS, JmsType, encode_type_name

__all__ = ["ColumnView", "HeaderView", "View", "extract", "header_names"]

_TYPES = "jmsbridge.types"
_KINDS = "|".join(JmsType)
_PREFIX = "jms."
_REST = 2**31 - 1


class View(Protocol):
    """Gives the Columns of a message's values by name."""

    def text(self, name: str) -> Column:
        """The text of a field or property (`ADDRESS` too), whatever its type; NULL if the message has none.

        Bytes that are no UTF-8 are in it as they came.
        """

    def kind(self, name: str) -> Column:
        """The declared type of a property (string), empty without one, never NULL; that of a field is not asked."""


class HeaderView:
    """Looks a value up in the headers wherever it is used: for the few that are used once."""

    def __init__(self, headers: Column, names: Column | None = None) -> None:
        """`headers`: array<struct<key: string, value: binary>>, nullable, as Spark's Kafka source gives it.

        `names` are their keys alone, for whoever looks up several: a column made once by `header_names`.
        """
        self._headers = headers
        self._names = headers.getField("key") if names is None else names

    def text(self, name: str) -> Column:
        """See `View`."""
        if name != ADDRESS:
            return self.header(_PREFIX + name)
        destination = self.header(f"{_PREFIX}JMSDestination")
        prefixed = destination.startswith("queue:") | destination.startswith("topic:")
        return F.when(prefixed, F.substring(destination, len("queue:") + 1, _REST)).otherwise(destination)

    def kind(self, name: str) -> Column:
        """See `View`."""
        return _kind(self.header(_TYPES), name)

    def has(self, name: str) -> Column:
        """Whether there is a Kafka header of that name, with a value or without."""
        return F.coalesce(F.array_contains(self._names, name), F.lit(False))

    def header(self, name: str) -> Column:
        """The text of the first Kafka header of that name; NULL without one or its value."""
        # `get` gives NULL for position -1 (no such header) where the bracket operator would fail. The field of one
        # header, not one of an array of all values: that would copy every value for each look-up.
        index = F.array_position(self._names, name).cast("int") - 1
        return F.get(self._headers, index).getField("value").cast("string")


def header_names(headers: Column) -> Column:
    """The names of the headers, as a column that Spark keeps instead of making it again for each look-up."""
    # Taking a field counts as cheap and is repeated wherever it is used; `coalesce` does not.
    return F.coalesce(headers.getField("key"), F.array().cast("array<string>"))


class ColumnView:
    """Reads values from columns that `extract` made; text and type of other names are looked up in the headers."""

    def __init__(
        self, columns: Mapping[str, tuple[str, str]], operands: Mapping[str, Operand], headers: HeaderView
    ) -> None:
        self._columns = columns
        self._operands = operands
        self._headers = headers

    def text(self, name: str) -> Column:
        """See `View`."""
        return F.col(self._columns[name][0]) if name in self._columns else self._headers.text(name)

    def kind(self, name: str) -> Column:
        """See `View`."""
        return F.col(self._columns[name][1]) if name in self._columns else self._headers.kind(name)

    def operand(self, name: str) -> Operand:
        """The value as predicates read it. KeyError unless the name was among those given to `extract`."""
        return self._operands[name]


def extract(frame: DataFrame, names: Iterable[str], headers: HeaderView | None = None) -> tuple[DataFrame, ColumnView]:
    """The frame with the values of these fields and properties taken out of its headers once.

    `headers` looks into columns of the frame, without it into the one named `headers`. The columns that the frame gains
    are named `property_…`; Spark leaves out those that nothing reads. Called again on the same frame, it replaces them,
    and the view of the first call is void.
    """
    if headers is None:
        frame = frame.withColumn("property_names", header_names(F.col("headers")))
        headers = HeaderView(F.col("headers"), F.col("property_names"))
    columns = {name: (f"property_{n}", f"property_{n}_type") for n, name in enumerate(dict.fromkeys(names))}
    found: dict[str, Column] = {"property_types": headers.header(_TYPES)}
    kinds: dict[str, Column] = {}
    read: dict[str, Column] = {}
    numbers: dict[str, Column] = {}
    operands: dict[str, Operand] = {}
    for name, (raw, kind) in columns.items():
        found[raw] = headers.text(name)
        kinds[kind] = _kind(F.col("property_types"), name)
        made = {f"{raw}_{way}": F.expr(sql) for way, sql in _ways(name, raw, kind).items()}
        read |= made
        if f"{raw}_double" in made:
            made[f"{raw}_number"] = F.expr(any_number(f"{raw}_long", f"{raw}_single", f"{raw}_double"))
            numbers[f"{raw}_number"] = made[f"{raw}_number"]
        ways = {column.removeprefix(f"{raw}_"): F.col(column) for column in made}
        operands[name] = Operand(**ways)  # type: ignore[arg-type]
    for level in (found, kinds, read, numbers):
        frame = frame.withColumns(level)
    return frame, ColumnView(columns, operands, headers)


def _ways(name: str, raw: str, kind: str) -> Mapping[str, str]:
    fixed = JmsType.STRING if name == ADDRESS else HEADER_FIELDS.get(name)
    return dynamic(raw, kind) if fixed is None else declared(raw, fixed)


def _kind(types: Column, name: str) -> Column:
    pair = rf"(?:^|,){re.escape(encode_type_name(name))}=({_KINDS})(?:,|\z)"
    return F.coalesce(F.regexp_extract(types, pair, 1), F.lit(""))
