"""A whole message from a file: JSON, or headers, an empty line and the body.

    {"address": "queue:orders", "headers": {"JMSCorrelationID": "42"}, "body": "hello",
     "properties": {"region": "emea", "amount": 5, "price": {"type": "float", "value": "1.5"}}}

    JMSDestination: queue:orders
    region: emea

    hello

JSON as `receive --json`, `journal tail --json` and `dlt show --json` print it is taken as well. A text value has no
declared type, as on a wire without types; a number is a long or a double, true and false are booleans.
"""

from __future__ import annotations

import base64
import binascii
import json
import sys
from pathlib import Path
from typing import Any

from engine.errors import UsageError
from engine.message import BodyType, Message, Record
from routes.properties import HEADER_FIELDS, SEED_NAMES, JmsType, Property

__all__ = ["read_file"]


def read_file(name: str) -> Record:
    """The message in a file (`-`: standard input) as a journal record; UsageError if it is none."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        msg = f"--file {name}: {error.strerror}"
        raise UsageError(msg) from error
    try:
        return _from_json(data) if data.lstrip().startswith(b"{") else _from_text(data)
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error, RecursionError) as error:
        msg = f"--file {name}: this is no message: {error}"
        raise UsageError(msg) from error


def _from_json(data: bytes) -> Record:
    content = json.loads(data)
    if isinstance(content.get("headers"), list):
        headers = tuple((item["name"], _bytes(item, "value")) for item in content["headers"])
        return Record(_bytes(content, "key"), _bytes(content, "body"), headers)
    unknown = content.keys() - {"address", "headers", "properties", "body", "body_base64", "body_type"}
    if unknown:
        msg = f"unknown member {', '.join(sorted(unknown))}; known are address, headers, properties, body, body_type"
        raise ValueError(msg)
    body = _bytes(content, "body") or b""
    kind = BodyType(content.get("body_type", BodyType.BYTES if "body_base64" in content else BodyType.TEXT))
    fields = {"JMSMessageID": "ID:example", **{name: str(value) for name, value in content.get("headers", {}).items()}}
    if "address" in content:
        fields["JMSDestination"] = content["address"]
    properties = {name: _property(value) for name, value in content.get("properties", {}).items()}
    return Message(body, kind, fields, properties).to_record()


def _from_text(data: bytes) -> Record:
    head, _, body = data.replace(b"\r\n", b"\n").partition(b"\n\n")
    fields: dict[str, str] = {"JMSMessageID": "ID:example"}
    properties: dict[str, Property] = {}
    for number, line in enumerate(head.decode().splitlines(), 1):
        name, found, value = (part.strip() for part in line.partition(":"))
        if not found or not name:
            msg = f"line {number}: expected NAME: VALUE"
            raise ValueError(msg)
        full = SEED_NAMES.get(name, name)
        if full in HEADER_FIELDS:
            fields[full] = value
        else:
            properties[name] = Property(value)
    return Message(body.removesuffix(b"\n"), headers=fields, properties=properties).to_record()


def _property(value: Any) -> Property:
    if isinstance(value, dict):
        return Property(str(value["value"]), JmsType(value["type"]))
    return Property(value) if isinstance(value, str) else Property.of(value)


def _bytes(content: dict[str, Any], name: str) -> bytes | None:
    if (encoded := content.get(f"{name}_base64")) is not None:
        return base64.b64decode(encoded, validate=True)
    text = content.get(name)
    return None if text is None else text.encode()
