"""Files of Protobuf schemas, as the library for Python has them."""

from __future__ import annotations

from base64 import b64decode
from importlib import import_module
from typing import TYPE_CHECKING

from engine.schemas.value_source import InvalidSchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

    from engine.schemas.body_json import EncodingSchema

__all__ = ["ProtobufFiles"]

_WELL_KNOWN = frozenset(
    f"google/protobuf/{name}.proto"
    for name in (
        "any",
        "api",
        "descriptor",
        "duration",
        "empty",
        "field_mask",
        "source_context",
        "struct",
        "timestamp",
        "type",
        "wrappers",
    )
)
_ROOT = "a schema"
"""Name of the file of the schema itself, which no other imports."""


class ProtobufFiles:
    """Files of a schema and of those that it imports, without extensions.

    Maps in them are lists of entries, which keep their order, and of which all are read.
    """

    def __init__(self, schema: EncodingSchema) -> None:
        """Reads the schema; raises InvalidSchemaError."""
        from google.protobuf.descriptor_pool import DescriptorPool

        self.pool = DescriptorPool()
        self.maps: set[str] = set()
        """Full names of the messages that are entries of maps."""
        self._names: set[str] = set()
        self.root: FileDescriptorProto = self._add(_ROOT, schema)
        """The file of the schema itself."""

    def _add(self, name: str, schema: EncodingSchema) -> FileDescriptorProto:
        """Adds the file of a schema under the name by which others import it, and before it those that it imports."""
        from google.protobuf.descriptor_pb2 import FileDescriptorProto
        from google.protobuf.message import DecodeError

        if ";" in schema.text or "{" in schema.text:
            msg = "the registry gives it as the text of a .proto file, which only the router compiles"
            raise InvalidSchemaError(msg)
        try:
            file = FileDescriptorProto.FromString(b64decode(schema.text, validate=True))
        except (ValueError, DecodeError) as error:
            msg = f"the Protobuf schema cannot be used: {error}"
            raise InvalidSchemaError(msg) from error
        references = {each.name: each.schema for each in schema.references}
        for each in file.dependency:
            if each in references and each not in self._names:
                self._add(each, references[each])
            else:
                self._add_well_known(each)
        return self._add_file(name, file)

    def _add_well_known(self, name: str) -> None:
        """Adds a file of Protobuf's own that is not there yet, with those that it imports."""
        if name in self._names:
            return
        if name not in _WELL_KNOWN:
            msg = f"the schema lacks '{name}', which it imports"
            raise InvalidSchemaError(msg)
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        file = FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
        for each in file.dependency:
            self._add_well_known(each)
        self._add_file(name, file)

    def _add_file(self, name: str, file: FileDescriptorProto) -> FileDescriptorProto:
        file.name = name
        del file.extension[:]
        self._prepare(file.message_type, file.package)
        try:
            self.pool.AddSerializedFile(file.SerializeToString())
        except TypeError as error:
            msg = f"the Protobuf schema cannot be used: {error}"
            raise InvalidSchemaError(msg) from error
        self._names.add(name)
        return file

    def _prepare(self, messages: Iterable[DescriptorProto], prefix: str) -> None:
        for each in messages:
            del each.extension[:]
            name = f"{prefix}.{each.name}" if prefix else each.name
            if each.options.map_entry:
                each.options.ClearField("map_entry")
                # As Java's library does, keys and values are written even if they are defaults.
                for field in each.field:
                    field.oneof_index = len(each.oneof_decl)
                    each.oneof_decl.add(name=f"_{field.name}")
                self.maps.add(name)
            self._prepare(each.nested_type, name)
