"""Headers of routed records and of dead letters, as Columns over the headers of the journal record.

The journal's headers already have the shape in which they are published, so style `text` leaves them as they are; the
styles `typed` and `short` rewrite every `jms.` header, which costs several times as much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.message import TYPES
from engine.router.plan.language import JMS_PREFIX
from engine.router.plan.row import PlanRow, interpreted
from engine.topologies.library.casts import BINARY, STRING, cast
from routes.model import HeaderStyle
from routes.properties import HEADER_FIELDS, SEED_NAMES, JmsType, encode_type_name

__all__ = ["header", "position", "styled"]


def header(name: str | Column, value: Column) -> Column:
    """A Kafka header with a text value, as a struct of key and value."""
    return F.struct((F.lit(name) if isinstance(name, str) else name).alias("key"), cast(value, BINARY).alias("value"))


def position(row: PlanRow) -> Column:
    """Position of the record as it was read: `topic:partition:offset`."""
    return F.concat_ws(":", row.topic, cast(row.partition, STRING), cast(row.offset, STRING))


def styled(headers: Column, style: HeaderStyle) -> Column:
    """The headers with the `jms.` ones in the given style, and all others unchanged."""
    if style is HeaderStyle.SHORT:
        return F.transform(headers, _short)
    if style is HeaderStyle.TYPED:
        types = _types(headers)
        return interpreted(F.transform(headers, lambda item: _typed(item, types)))
    return headers


_SHORT_NAMES = {JMS_PREFIX + name: JMS_PREFIX + short for short, name in SEED_NAMES.items()}


def _short(item: Column) -> Column:
    """The header with its short name: `jms.JMSMessageID` becomes `jms.MessageId`."""
    names = F.create_map(*(F.lit(text) for pair in _SHORT_NAMES.items() for text in pair))
    key = item.getField("key")
    return F.struct(F.coalesce(F.try_element_at(names, key), key).alias("key"), item.getField("value").alias("value"))


def _types(headers: Column) -> Column:
    """Text of the `jmsbridge.types` header after a comma; only a comma if the header is missing."""
    index = F.array_position(headers.getField("key"), TYPES) - 1
    declared = F.get(headers.getField("value"), index.cast("int")).cast("string")
    return F.concat(F.lit(","), F.coalesce(declared, F.lit("")))


def _typed(item: Column, types: Column) -> Column:
    """The header with its type in the name: `jms.region` becomes `jms.string.region`.

    The value becomes binary as its type demands; a value that does not fit its declared type stays text.
    """
    key, value = item.getField("key"), item.getField("value")
    name = F.substring(key, len(JMS_PREFIX) + 1, 1 << 30)
    kind = _declared(name, types)
    text = value.cast("string")
    encoded = F.lit(None).cast("binary")
    for jms_type, encode in _ENCODINGS.items():
        encoded = F.when(kind == jms_type, encode(text)).otherwise(encoded)
    fits = encoded.isNotNull()
    spelt = F.concat(F.lit(JMS_PREFIX), F.when(fits, kind).otherwise(F.lit(JmsType.STRING)), F.lit("."), name)
    typed = F.struct(spelt.alias("key"), F.when(fits, encoded).otherwise(value).alias("value"))
    return F.when(key.startswith(JMS_PREFIX), typed).otherwise(F.struct(key.alias("key"), value.alias("value")))


def _declared(name: Column, types: Column) -> Column:
    """Type of a standard field, or of a property that the types header declares; NULL for any other name."""
    fixed = F.create_map(*(F.lit(text) for pair in HEADER_FIELDS.items() for text in pair))
    wanted = name
    for reserved in "%,=":
        wanted = F.replace(wanted, F.lit(reserved), F.lit(encode_type_name(reserved)))
    wanted = F.concat(F.lit(","), wanted, F.lit("="))
    place = F.position(wanted, types)
    declared = F.substring_index(F.substring(types, place + F.length(wanted), F.length(types)), ",", 1)
    return F.coalesce(F.try_element_at(fixed, name), F.when(place > 0, declared))


def _integer(text: Column, sql_type: str, size: int) -> Column:
    return _big_endian(text.try_cast(sql_type).cast("bigint"), size)


def _big_endian(number: Column, size: int) -> Column:
    return F.unhex(F.right(F.lpad(F.hex(number), 16, "0"), F.lit(2 * size)))


def _ieee(text: Column, sql_type: str, exponent_bits: int, mantissa_bits: int) -> Column:
    """IEEE 754 bits of a number, big-endian, by exact arithmetic, since Spark has no function for them."""
    value = text.try_cast(sql_type).cast("double")
    size = F.abs(value)
    bias = (1 << exponent_bits - 1) - 1
    two = F.lit(2.0)
    guess = F.floor(F.log2(size))
    exponent = guess + F.when(F.pow(two, guess) > size, -1).when(F.pow(two, guess + 1) <= size, 1).otherwise(0)
    fraction = ((size / F.pow(two, exponent) - 1) * float(1 << mantissa_bits)).cast("bigint")
    normal = (exponent + bias) * (1 << mantissa_bits) + fraction
    tiny = size / F.pow(two, F.lit(float(1 - bias - mantissa_bits)))
    infinite = ((1 << exponent_bits) - 1) << mantissa_bits
    bits = (
        F.when(F.isnan(value), infinite | 1 << mantissa_bits - 1)
        .when(size == float("inf"), infinite)
        .when(size < 2.0 ** (1 - bias), tiny.cast("bigint"))
        .otherwise(normal)
    )
    negative = (value < 0) | text.startswith("-")
    width = 1 + exponent_bits + mantissa_bits
    sign = F.lit(-(1 << 63) if width == 64 else 1 << 31)
    return _big_endian(F.when(negative & ~F.isnan(value), bits.bitwiseOR(sign)).otherwise(bits), width // 8)


_ENCODINGS: Mapping[JmsType, Callable[[Column], Column]] = {
    JmsType.BOOLEAN: lambda text: text.cast("binary"),
    JmsType.BYTE: lambda text: _integer(text, "tinyint", 1),
    JmsType.SHORT: lambda text: _integer(text, "smallint", 2),
    JmsType.INT: lambda text: _integer(text, "int", 4),
    JmsType.LONG: lambda text: _integer(text, "bigint", 8),
    JmsType.FLOAT: lambda text: _ieee(text, "float", 8, 23),
    JmsType.DOUBLE: lambda text: _ieee(text, "double", 11, 52),
    JmsType.BYTES: lambda text: F.try_to_binary(text, F.lit("base64")),
}
"""Encoders by declared type, equal to Kafka's serializers as the Confluent bridge uses them: numbers big-endian,
booleans as text."""
