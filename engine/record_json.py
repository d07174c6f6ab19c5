"""JSON of records and their bytes, the same from every command and from the API."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.record import Record

__all__ = ["json_bytes", "record_json"]


def json_bytes(name: str, value: bytes | None) -> dict[str, str | None]:
    """A JSON member for bytes: `name` with text, or `<name>_base64` where they are not UTF-8."""
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}


def record_json(record: Record) -> dict[str, Any]:
    """Key, headers (a list: order and repeated names matter) and body, nothing cut."""
    return {
        **json_bytes("key", record.key),
        "headers": [{"name": name, **json_bytes("value", value)} for name, value in record.headers],
        **json_bytes("body", record.value),
    }
