"""Encoders of JSON bodies into values with a schema (`jmsbridge.serdes.BodyEncoder`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from engine.schemas.avro_bodies import AvroBodies
from engine.schemas.protobuf_bodies import ProtobufBodies
from engine.schemas.value_source import InvalidSchemaError

if TYPE_CHECKING:
    from engine.schemas.body_json import EncodingSchema

__all__ = ["Encoder", "encoder"]


class Encoder(Protocol):
    """Encoder of JSON bodies into values with one schema."""

    def encode(self, json: bytes, *, from_xml: bool) -> bytes:
        """Returns the value: what follows the first five bytes of Confluent's wire format.

        `from_xml`: the JSON was made of XML, so that its scalars are texts and its lists may be single values.

        Raises UnfitBodyError with the reason if the body does not fit.
        """


def encoder(kind: str, schema: EncodingSchema, message: str = "") -> Encoder:
    """Returns the encoder of a schema, whose kind is the name of its format in a registry.

    `message` is the full name of a message of Protobuf; empty: the first one of the schema.

    Raises InvalidSchemaError.
    """
    match kind:
        case "AVRO":
            return AvroBodies(schema)
        case "PROTOBUF":
            return ProtobufBodies(schema, message)
    msg = f"bodies cannot be encoded with a schema of {kind}"
    raise InvalidSchemaError(msg)
