"""A request to the controller of the embedded Kafka, which the Kafka client does not know."""

from __future__ import annotations

import socket
import struct

from engine.embedded.ports import LOOPBACK

__all__ = ["unregister_broker"]

_SECONDS = 5.0
_API_KEY, _VERSION, _CORRELATION_ID = 64, 0, 1
_CLIENT_ID = b"jms-bridge"
_NO_TAGS = b"\0"


def unregister_broker(port: int, broker_id: int) -> bool:
    """Removes the registration of a broker at the controller on loopback; returns False if the controller refuses.

    Kafka's protocol, request UnregisterBroker (KIP-631).

    Raises:
        OSError: the controller does not answer.
    """
    header = struct.pack(">hhih", _API_KEY, _VERSION, _CORRELATION_ID, len(_CLIENT_ID)) + _CLIENT_ID + _NO_TAGS
    request = header + struct.pack(">i", broker_id) + _NO_TAGS
    with socket.create_connection((LOOPBACK, port), timeout=_SECONDS) as connection:
        answer = connection.makefile("rb")
        connection.sendall(struct.pack(">i", len(request)) + request)
        (length,) = struct.unpack(">i", _read(answer.read(4), 4))
        _, _, error = struct.unpack_from(">i1sxxxxh", _read(answer.read(length), length))
    return bool(error == 0)


def _read(data: bytes, length: int) -> bytes:
    if len(data) < length:
        raise ConnectionError("the controller has closed the connection")
    return data
