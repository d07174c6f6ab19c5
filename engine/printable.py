"""Text that is safe and short enough for terminals and logs, and JSON made of such text."""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LONGEST_LINE", "LONGEST_REASON", "has_controls", "json_text", "listed", "printable", "shortened"]

LONGEST_REASON = 1000
"""Number of characters to which the reason of a dead letter is cut, when it is written and when it is shown."""
LONGEST_LINE = 8000
"""Number of characters to which a text in the log or about the state of a part is cut."""

_LISTED = 5
"""Number of texts that `listed` names."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
"""Matches C0 without tab and newline, DEL, C1, lone surrogates, and characters that change the direction of text."""


def printable(text: str) -> str:
    r"""The text with control characters escaped, such as `\x1b`, so that a message cannot control the terminal."""
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)


def has_controls(text: str) -> bool:
    """True if the text has a character that `printable` would escape."""
    return _CONTROL.search(text) is not None


def shortened(text: str, length: int) -> str:
    """The text; of one with more than `length` characters the beginning, and how many it has."""
    return text if len(text) <= length else f"{text[:length]} … ({len(text):,} characters in all)"


def listed(texts: Sequence[str]) -> str:
    """The first texts, separated by commas, and the number of the others."""
    more = len(texts) - _LISTED
    return ", ".join(texts[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def json_text(value: object, indent: int | None = None) -> str:
    r"""The value as JSON (RFC 8259): control characters escaped, such as `\u009b`, and non-finite numbers as null."""
    text = json.dumps(_finite(value), ensure_ascii=False, indent=indent, allow_nan=False)
    # JSON has such characters only inside strings; `json.dumps` has escaped those below U+0020 already.
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
