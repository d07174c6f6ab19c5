"""Java's modified UTF-8, in which ActiveMQ Classic keeps the texts of messages and sends them as they are.

It has a character beyond U+FFFF as two surrogates of three bytes each, as CESU-8, and NUL as `C0 80` (Java, class
`DataInput`). Any other text is the same as in UTF-8.
"""

from __future__ import annotations

import re

__all__ = ["from_modified_utf8", "to_modified_utf8"]

_NUL = b"\xc0\x80"
_DIFFERENT = re.compile(rb"[\x00\xf0-\xf4]")
"""NUL, and first bytes of characters beyond U+FFFF in UTF-8."""
_BEYOND = re.compile("[\U00010000-\U0010ffff]")


def from_modified_utf8(data: bytes) -> bytes:
    """Returns a text in UTF-8; bytes that are neither it nor modified UTF-8 unchanged.

    Both spellings may stand in one text, since senders over STOMP write UTF-8.
    """
    try:
        text = data.replace(_NUL, b"\0").decode("utf-8", "surrogatepass")
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le").encode()
    except UnicodeDecodeError:
        return data


def to_modified_utf8(data: bytes) -> bytes:
    """Returns a text of UTF-8 in modified UTF-8."""
    if not _DIFFERENT.search(data):
        return data
    return _BEYOND.sub(_surrogates, data.decode()).encode("utf-8", "surrogatepass").replace(b"\0", _NUL)


def _surrogates(match: re.Match[str]) -> str:
    number = ord(match[0]) - 0x10000
    return chr(0xD800 | number >> 10) + chr(0xDC00 | number & 0x3FF)
