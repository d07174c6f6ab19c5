"""Columns of a message's fields and properties, read from the headers of its Kafka record.

A header is found by position in the array of names; that stays in generated code, where higher-order functions and maps
built for each record do not.
"""

from __future__ import annotations

import re

from pyspark.sql import Column
from pyspark.sql import functions as F

from routes.predicate.nodes import ADDRESS
from routes.properties import JmsType, encode_type_name

__all__ = ["PREFIX", "HeaderView", "header_names"]

_TYPES = "jmsbridge.types"
_KINDS = "|".join(JmsType)
PREFIX = "jms."
"""Prefix of the Kafka headers that hold a JMS field or property; its name follows."""
_REST = 2**31 - 1


class HeaderView:
    """Columns that search the headers anew at each use: for the few values that are used once."""

    def __init__(self, headers: Column, names: Column | None = None) -> None:
        """Creates the view of a record's headers.

        Args:
            headers: array<struct<key: string, value: binary>>, nullable, as Spark's Kafka source gives it.
            names: the keys alone, if several values are looked up: a column made once by `header_names`.
        """
        self._headers = headers
        self._names = headers.getField("key") if names is None else names

    def text(self, name: str) -> Column:
        """Returns the text of a field or property (`ADDRESS` too), whatever its type; NULL if the message has none.

        Bytes that are no UTF-8 are in it as they came.
        """
        if name != ADDRESS:
            return self.header(PREFIX + name)
        destination = self.header(f"{PREFIX}JMSDestination")
        prefixed = destination.startswith("queue:") | destination.startswith("topic:")
        return F.when(prefixed, F.substring(destination, len("queue:") + 1, _REST)).otherwise(destination)

    def kind(self, name: str) -> Column:
        """Returns the declared type of a property (string), empty without one, never NULL.

        Not for fields, whose types are fixed.
        """
        return _kind(self.header(_TYPES), name)

    def has(self, name: str) -> Column:
        """Returns True if there is a Kafka header of that name, with a value or without."""
        return F.coalesce(F.array_contains(self._names, name), F.lit(False))

    def header(self, name: str) -> Column:
        """Returns the text of the first Kafka header of that name; NULL without one or its value."""
        # `get` gives NULL for position -1 (no such header) where the bracket operator would fail. The field is taken of
        # one header, not of all values as an array, which would copy every value for each look-up.
        index = F.array_position(self._names, name).cast("int") - 1
        return F.get(self._headers, index).getField("value").cast("string")


def header_names(headers: Column) -> Column:
    """Returns the names of the headers, as a column that Spark keeps instead of making it again for each look-up."""
    # Taking a field counts as cheap and is repeated wherever it is used; `coalesce` does not.
    return F.coalesce(headers.getField("key"), F.array().cast("array<string>"))


def _kind(types: Column, name: str) -> Column:
    pair = rf"(?:^|,){re.escape(encode_type_name(name))}=({_KINDS})(?:,|\z)"
    return F.coalesce(F.regexp_extract(types, pair, 1), F.lit(""))
