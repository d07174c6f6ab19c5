"""The header block of a NATS message: bytes to names and values, and back, so that nothing can be smuggled in.

Specification: ADR-4 of nats-io/nats-architecture-and-design. A name is printable ASCII without colon,
a value anything without CR, LF and NUL; here it is UTF-8. One space stands between colon and value, and is no part of
it; nats-py would take all white space from both ends of a value, and the last of repeated headers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from engine.connectors.base import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Known", "pack", "parse", "status"]

T = TypeVar("T")

_VERSION = "NATS/1.0"
_STATUS = re.compile(rb"NATS/1\.0 +(\d{3}) ?([^\r\n]*)")
_LINE = re.compile(r"\r\n[ \t]*+([^:\r\n]*[^:\s])[ \t]*:[ \t]?([^\r\n]*)")
_NAME = re.compile(r"[!-9;-~]+")
_ILLEGAL = re.compile(r"[\r\n\0]")
_MOST_KNOWN = 1000
_LONGEST_KNOWN = 100


class Known(dict[str, T]):
    """What a function says of names, by name: a program uses the same ones again and again."""

    def __init__(self, find: Callable[[str], T]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, name: str) -> T:
        found = self._find(name)
        if len(self) < _MOST_KNOWN and len(name) <= _LONGEST_KNOWN:
            self[name] = found
        return found


def parse(block: bytes) -> list[tuple[str, str]]:
    """Names and values in their order, repeated ones too; U+FFFD for what is no UTF-8. Lines without colon are none."""
    return _LINE.findall(block.decode("utf-8", "replace"))


def pack(headers: Sequence[tuple[str, str]]) -> bytes:
    """The block with these headers, in their order; empty without any.

    Raises:
        RefusedError: NATS cannot carry a name or value.
    """
    if not headers:
        return b""
    lines = [_VERSION]
    for name, value in headers:
        if not _LEGAL[name]:
            raise RefusedError(f"NATS cannot carry a header named {name[:60]!r}: names are printable ASCII without ':'")
        lines.append(f"{name}: {value}")
    lines += "", ""
    block, breaks = "\r\n".join(lines), len(lines) - 1
    if block.count("\r") != breaks or block.count("\n") != breaks or "\0" in block:
        name = next(name for name, value in headers if _ILLEGAL.search(value))
        raise RefusedError(f"NATS cannot carry header '{name}': its value has a line break or NUL")
    return block.encode("utf-8", "replace")


def status(block: bytes) -> tuple[int, str] | None:
    """Code and text of a message from the server itself, such as 503 for `no responders`; None for any other."""
    found = _STATUS.match(block)
    return (int(found[1]), found[2].decode("utf-8", "replace").strip()) if found else None


def _is_legal(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


_LEGAL = Known(_is_legal)
