"""Bodies with the value or the reason that encoders have to give, and hostile ones."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

from google.protobuf import descriptor_pb2

__all__ = ["AVRO_EXAMPLES", "HOSTILE", "ORDER", "PROTOBUF_EXAMPLES", "SHOP"]

ORDER = json.dumps(
    {
        "type": "record",
        "name": "shop.Order",
        "fields": [
            {"name": "id", "type": "int"},
            {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
                {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}},
            ]}}, "default": []},
            {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
            {"name": "time", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
            {"name": "price", "type": ["null", {"type": "record", "name": "Price", "fields": [
                {"name": "currency", "type": "string"}, {"name": "value", "type": "double"},
            ]}]},
            {"name": "is_paid", "type": ["null", "boolean"]},
            {"name": "next", "type": ["null", "Order"], "default": None},
        ],
    }
)  # fmt: skip
REST = b"\0\0\0\0\0"
"""The fields day, time, price, is_paid and next without values."""

AVRO_EXAMPLES: list[tuple[str, bool, bytes | str]] = [
    ('{"id": 1}', False, b"\x02\0" + REST),
    ('\ufeff{"id": 7, "id": 1.0e0}', False, b"\x02\0" + REST),
    ('{"id": 1e2, "lines": [{"amount": -1.280}]}', False, b"\xc8\x01\x02\x02\x80\0" + REST),
    ('{"id": 1, "day": "1970-01-02"}', False, b"\x02\0\x02\x02\0\0\0\0"),
    ('{"id": 1, "time": "1970-01-01T01:00:00.0010+01:00"}', False, b"\x02\0\0\x02\x02\0\0\0"),
    ('{"order": {"@id": "1", "is_paid": "1"}}', True, b"\x02\0\0\0\0\x02\x01\0"),
    ('{"order": {"id": "1", "lines": {"amount": "1.5"}, "time": ""}}', True, b"\x02\x02\x04\0\x96\0" + REST),
    ('{"order": {"id": "1", "price": {"@currency": "E", "#text": "1"}}}', True,
     b"\x02\0\0\0\x02\x02E\0\0\0\0\0\0\xf0\x3f\0\0"),
    ('{"id": "abc"}', False, "msg.body.id does not fit: 'abc' is not a number of the type int"),
    ('{"id": 2147483648}', False, "msg.body.id does not fit: 2147483648 is not a number of the type int"),
    ('{"id": 1.5}', False, "msg.body.id does not fit: 1.5 is not a number of the type int"),
    ('{"lines": []}', False, "msg.body.id does not fit: it is missing, and the schema has no default for it"),
    ('{"id": 1, "lines": [{"amount": 1}, {"amount": 1.001}]}', False,
     "msg.body.lines[1].amount does not fit: 1.001 is not a number of the type decimal(5,2)"),
    ('{"id": 1, "lines": {}}', False, "msg.body.lines does not fit: an object is not an array"),
    ('{"id": 1, "an odd \\u001b name": 1}', False,
     'msg.body."an odd \\x1b name" does not fit: the schema has no such field'),
    ('{"order": {"@id": "1", "id": "1"}}', True, "msg.body.order.id does not fit: '@id' stands for the same field"),
    ('{"id": 1, "next": {"id": null}}', False,
     "msg.body.next.id does not fit: null is not a number of the type int"),
    ('{"id": "\\u001b' + "x" * 60 + '"}', False,
     "msg.body.id does not fit: '\\x1b" + "x" * 39 + "…' is not a number of the type int"),
    ('{"id": 1, "time": "1970-01-01T00:00:00.0001Z"}', False,
     "msg.body.time does not fit: '1970-01-01T00:00:00.0001Z' is not a number of the type long or a time with at most 3"
     " digits below the second, such as 2026-11-28T04:00:00.5Z"),
    ("[]", False, "msg.body does not fit: an array is not an object"),
]  # fmt: skip


def _shop() -> str:
    """The file of a message with a oneof, a required field and a map, in proto2."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto2")
    file.dependency.append("google/protobuf/timestamp.proto")
    message = file.message_type.add(name="Order")
    message.oneof_decl.add(name="payment")
    message.field.add(name="order_id", json_name="orderId", number=1, type=kinds.TYPE_UINT32, label=2)
    message.field.add(name="card", number=2, type=kinds.TYPE_STRING, label=1, oneof_index=0)
    message.field.add(name="cash", number=3, type=kinds.TYPE_BOOL, label=1, oneof_index=0)
    message.field.add(name="at", number=4, type=11, type_name=".google.protobuf.Timestamp", label=1)
    entry = message.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_INT32, label=1)
    entry.field.add(name="value", number=2, type=kinds.TYPE_INT64, label=1)
    message.field.add(name="counts", number=5, type=11, type_name=".shop.Order.CountsEntry", label=3)
    message.field.add(name="next", number=6, type=11, type_name=".shop.Order", label=1)
    return b64encode(file.SerializeToString()).decode()


SHOP = _shop()
PROTOBUF_EXAMPLES: list[tuple[str, bool, bytes | str]] = [
    ('{"orderId": 4294967295, "cash": null, "card": "x"}', False, b"\0\x08\xff\xff\xff\xff\x0f\x12\x01x"),
    ('{"order_id": 1, "counts": {"2": 3, "1": 4}}', False,
     b"\0\x08\x01\x2a\x04\x08\x02\x10\x03\x2a\x04\x08\x01\x10\x04"),
    ('{"order_id": 1, "at": "1970-01-01T00:00:01.000000002Z"}', False, b"\0\x08\x01\x22\x04\x08\x01\x10\x02"),
    ('{"order": {"@orderId": "1", "cash": "true", "at": ""}}', True, b"\0\x08\x01\x18\x01"),
    ('{"order_id": -1}', False, "msg.body.order_id does not fit: -1 is not a number of the type uint32"),
    ('{"next": {"order_id": 1}}', False, "msg.body.order_id does not fit: it is missing, and the schema requires it"),
    ('{"order_id": 1, "next": {}}', False,
     "msg.body.next.order_id does not fit: it is missing, and the schema requires it"),
    ('{"order_id": 1, "orderId": 1}', False, "msg.body.orderId does not fit: 'order_id' stands for the same field"),
    ('{"order_id": 1, "card": "x", "cash": true}', False,
     "msg.body.cash does not fit: 'card' is of the same oneof, 'payment'"),
    ('{"order_id": 1, "counts": {"01": 1}}', False,
     'msg.body.counts."01" does not fit: its name is not a key of the type int32'),
    ('{"order_id": 1, "other": 1}', False, "msg.body.other does not fit: the schema has no such field"),
    ('{"order_id": 1, "at": "now"}', False,
     "msg.body.at does not fit: 'now' is not an object or a time with at most 9 digits below the second, such as"
     " 2026-11-28T04:00:00.5Z"),
]  # fmt: skip

NUMBERS = ["1e999999999", "-1e-999999999", "0e999999999", "1e9999999999", "9" * 1_000, "9" * 1_001, "0." + "1" * 990]
_LARGEST = 4 << 20


def _hostile() -> list[bytes]:
    """Bodies of the largest size whose reading could take more than linear time or memory, and odd ones."""
    many: dict[str, Any] = {f"{number:x}": 1 for number in range(200_000)}
    texts = [
        *(f'{{"id": {each}}}' for each in NUMBERS),
        *(f'{{"id": 1, "lines": [{{"amount": {each}}}]}}' for each in NUMBERS),
        "[" * _LARGEST,
        '{"id":' * (_LARGEST // 6),
        '{"next":' * 99 + "1" + "}" * 99,
        '{"next":' * 101 + "1" + "}" * 101,
        '{"id": 1, "lines": [' + ",".join(['{"amount":1}'] * (_LARGEST // 14)) + "]}",
        '{"id": 1, "lines": [' + ",".join(["{}"] * (_LARGEST // 4)) + "]}",
        '{"id": "' + "1" * (_LARGEST - 100) + '"}',
        '{"id": 1, "' + "x" * (_LARGEST - 100) + '": 1}',
        '{"id": [' + ",".join(["9" * 1_000] * (_LARGEST // 1_010)) + "]}",
        '{"id": 1, "time": "1970-01-01T00:00:00.' + "0" * (_LARGEST - 100) + '1Z"}',
        '{"id": 1' + ',"id": 1' * (_LARGEST // 10) + "}",
        json.dumps(many),
        " " * (_LARGEST + 1),
        "",
        "null",
        "NaN",
        '{"id": Infinity}',
        '{"id": 01}',
        '{"id": "\\ud800"}',
        '{"\\ud800": 1, "\\udbff": 2}',
        '{"id": 1} x',
    ]
    return [each.encode() for each in texts] + [b'{"id": "\xff"}', b'\xff\xfe{\0"\0', "{}".encode("utf-16"), b"\0"]


HOSTILE = _hostile()
