"""The header block of a NATS message: bytes to names and values, and back, so that nothing can be smuggled in.

Specification: ADR-4 of nats-io/nats-architecture-and-design. A name is printable ASCII without colon,
a value anything without CR, LF and NUL; here it is UTF-8. One space stands between colon and value, and is no part of
it; nats-py would take all white space from both ends of a value, and the last of repeated headers.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.connectors.base import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["pack", "parse", "status"]

_VERSION = "NATS/1.0"
_STATUS = re.compile(rb"NATS/1\.0 +(\d{3}) ?([^\r\n]*)")
_LINE = re.compile(r"\r\n[ \t]*+([^:\r\n]*[^:\s])[ \t]*:[ \t]?([^\r\n]*)")
_NAME = re.compile(r"[!-9;-~]+")
_LONGEST_KNOWN = 100


def parse(block: bytes) -> list[tuple[str, str]]:
    """Names and values in their order, repeated ones too; U+FFFD for what is no UTF-8. Lines without colon are none."""
    return _LINE.findall(block.decode("utf-8", "replace"))


def pack(headers: Iterable[tuple[str, str]]) -> bytes:
    """The block with these headers, in their order; empty without any.

    Raises:
        RefusedError: NATS cannot carry a name or value.
    """
    lines = [_VERSION]
    for name, value in headers:
        if not (_known(name) if len(name) <= _LONGEST_KNOWN else _is_legal(name)):
            raise RefusedError(f"NATS cannot carry a header named {name[:60]!r}: names are printable ASCII without ':'")
        if "\n" in value or "\r" in value or "\0" in value:
            raise RefusedError(f"NATS cannot carry header '{name}': its value has a line break or NUL")
        lines.append(f"{name}: {value}")
    if len(lines) == 1:
        return b""
    lines += "", ""
    return "\r\n".join(lines).encode("utf-8", "replace")


def status(block: bytes) -> tuple[int, str] | None:
    """Code and text of a message from the server itself, such as 503 for `no responders`; None for any other."""
    found = _STATUS.match(block)
    return (int(found[1]), found[2].decode("utf-8", "replace").strip()) if found else None


def _is_legal(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


_known = lru_cache(1000)(_is_legal)
"""A program uses the same names again and again."""
