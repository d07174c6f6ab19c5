"""Documents of Protobuf messages, read by the descriptors of their schema (`jmsbridge.serdes.ProtobufDocuments`).

Damaged messages apart, in which a number has more bits than its type, Google's libraries read alike in both languages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.schemas.protobuf_files import ProtobufFiles
from engine.schemas.value_source import INT, InvalidSchemaError, InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.protobuf.descriptor import FieldDescriptor

    from engine.schemas.document_text import DocumentText
    from engine.schemas.protobuf_files import ProtobufFiles
    from engine.schemas.schema_text import RegisteredSchema
from engine.schemas.value_source import ValueSource

__all__ = ["ProtobufDocuments"]


class ProtobufDocuments:
    """Documents of the messages of one schema."""

    def __init__(self, schema: RegisteredSchema, bare: str | None = None) -> None:
        """Reads the schema; raises InvalidSchemaError.

        `bare` is the full name of the message that all values are, empty: the first one of the schema; None: each value
        begins with the indexes of its own message, as in Confluent's wire format.
        """
        files = ProtobufFiles(schema)
        self._pool, self._root = files.pool, files.root
        self.maps = files.maps
        """Full names of the messages that are entries of maps."""
        self._names: dict[str, dict[int, str]] = {}
        """The names of the numbers of each enum."""
        self._bare = None if bare is None else self.message(bare)

    def message(self, name: str) -> Any:
        """Returns the descriptor of a message by its full name, the first one without; raises InvalidSchemaError."""
        if not name and self._root.message_type:
            return self._type([0])
        try:
            return self._pool.FindMessageTypeByName(name)
        except KeyError as error:
            msg = f"the schema has no message '{name}'"
            raise InvalidSchemaError(msg) from error

    def write(self, source: ValueSource, out: DocumentText) -> None:
        """Writes the document of a message; raises InvalidValueError, UnreadableBodyError."""
        from google.protobuf.message import DecodeError
        from google.protobuf.message_factory import GetMessageClass

        message = GetMessageClass(self._bare or self._type(_indexes(source)))()
        try:
            message.ParseFromString(source.take(source.left))
        except DecodeError as error:
            raise InvalidValueError(str(error)) from error
        if missing := message.FindInitializationErrors():
            msg = f"it lacks the required field {missing[0]}"
            raise InvalidValueError(msg)
        self._write(message, out)

    def _type(self, indexes: list[int]) -> Any:
        """The descriptor of the message with these indexes."""
        among, name = self._root.message_type, self._root.package
        for each in indexes:
            if not 0 <= each < len(among):
                msg = f"the schema has no message with the indexes {indexes}"
                raise InvalidValueError(msg)
            name = f"{name}.{among[each].name}" if name else among[each].name
            among = among[each].nested_type
        return self._pool.FindMessageTypeByName(name)

    def _write(self, message: Any, out: DocumentText) -> None:
        out.open("{")
        for field in message.DESCRIPTOR.fields:
            if field.is_repeated:
                out.name(field.name)
                self._write_all(field, getattr(message, field.name), out)
            elif not field.has_presence or message.HasField(field.name):
                out.name(field.name)
                self._write_one(field, getattr(message, field.name), out)
        out.close("}")

    def _name(self, field: FieldDescriptor, number: int) -> str | None:
        """The name of an enum's number, of several the first."""
        enum = field.enum_type
        if enum.full_name not in self._names:
            self._names[enum.full_name] = {each.number: each.name for each in reversed(enum.values)}
        return self._names[enum.full_name].get(number)

    def _write_all(self, field: FieldDescriptor, values: Iterable[Any], out: DocumentText) -> None:
        if field.message_type is not None and field.message_type.full_name in self.maps:
            value = field.message_type.fields_by_number[2]
            out.open("{")
            for each in values:
                if isinstance(each.key, bytes) or (value.type == value.TYPE_STRING and isinstance(each.value, bytes)):
                    msg = "a text in a map of it is not UTF-8"
                    raise InvalidValueError(msg)
                out.name(str(each.key).lower() if isinstance(each.key, bool) else str(each.key))
                self._write_one(value, each.value, out)
            out.close("}")
            return
        out.open("[")
        for each in values:
            self._write_one(field, each, out)
        out.close("]")

    def _write_one(self, field: FieldDescriptor, value: Any, out: DocumentText) -> None:
        match field.type:
            case field.TYPE_MESSAGE | field.TYPE_GROUP:
                self._write(value, out)
            case field.TYPE_ENUM if (name := self._name(field, value)) is not None:
                out.text(name)
            case field.TYPE_STRING:
                out.text(_text(value))
            case field.TYPE_BYTES:
                out.data(value)
            case field.TYPE_BOOL:
                out.flag(value)
            case field.TYPE_FLOAT:
                out.floating(value, "f")
            case field.TYPE_DOUBLE:
                out.floating(value, "d")
            case _:
                out.plain(str(value))


def _text(value: Any) -> str:
    # A text that is not UTF-8, as proto2 allows outside maps, is read as bytes.
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _indexes(source: ValueSource) -> list[int]:
    """The indexes of a message in its file, which Confluent's wire format has between a schema's id and the value."""
    try:
        count = source.number(INT)
        if 0 <= count <= source.left:
            return [source.number(INT) for _ in range(count)] or [0]
    except (EOFError, InvalidValueError):
        pass
    msg = "the indexes of its message are damaged"
    raise InvalidValueError(msg)
