"""Parser and writer for the header block of a NATS message; the writer refuses values that would inject headers.

Specification: ADR-4 of nats-io/nats-architecture-and-design. A name is printable ASCII without a colon; a value is
anything without CR, LF and NUL, here in UTF-8. One space between colon and value is a separator. nats-py's own parser
strips all white space from both ends of a value and keeps the last of repeated headers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from engine.connectors.base import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["NameCache", "pack", "parse", "status"]

T = TypeVar("T")

_VERSION = "NATS/1.0"
_STATUS = re.compile(rb"NATS/1\.0 +(\d{3}) ?([^\r\n]*)")
_LINE = re.compile(r"\r\n[ \t]*+([^:\r\n]*[^:\s])[ \t]*:[ \t]?([^\r\n]*)")
_NAME = re.compile(r"[!-9;-~]+")
_ILLEGAL = re.compile(r"[\r\n\0]")
_MOST_KNOWN = 1000
_LONGEST_KNOWN = 100


class NameCache(dict[str, T]):
    """Cache of a function's results by header name, since senders use the same few names again and again.

    Holds at most `_MOST_KNOWN` names, none longer than `_LONGEST_KNOWN` characters.
    """

    def __init__(self, find: Callable[[str], T]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, name: str) -> T:
        found = self._find(name)
        if len(self) < _MOST_KNOWN and len(name) <= _LONGEST_KNOWN:
            self[name] = found
        return found


def parse(block: bytes) -> list[tuple[str, str]]:
    """Returns names and values in their order, repeated headers included; lines without a colon are skipped.

    Bytes that are not UTF-8 become U+FFFD.
    """
    return _LINE.findall(block.decode("utf-8", "replace"))


def pack(headers: Sequence[tuple[str, str]]) -> bytes:
    """Returns the header block with these headers in their order; empty if there are none.

    Raises:
        RefusedError: NATS cannot carry one of the names or values.
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
    """Returns code and text of a status message from the server, such as 503 for `no responders`.

    None if the block has no status, as in messages of applications.
    """
    match = _STATUS.match(block)
    return (int(match[1]), match[2].decode("utf-8", "replace").strip()) if match else None


def _is_legal(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


_LEGAL = NameCache(_is_legal)
