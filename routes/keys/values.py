"""Kinds of values: how each is written, checked and read. The field table gives every key one of these.

A parser takes the text and returns the value or raises BadValueError, whose offset counts inside the text. No parser
touches a file or the network.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any

__all__ = [
    "ANY_TEXT",
    "CREATE_TOPICS",
    "FLAG",
    "FUNCTION",
    "NAME",
    "PATH",
    "PLACE",
    "RATIO",
    "REPLICATION",
    "RETENTION",
    "STRONG_SECRET",
    "TEXT",
    "TOKEN",
    "BadValueError",
    "ValueKind",
    "choice",
    "duration",
    "one_of",
    "parse_text",
    "scheme_of",
    "size",
    "whole",
]

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?P<host>[^/\s]*)(?P<path>\S*)")
_STRONG_SECRET = 32
_BYTES = {"": 1, "B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}


class BadValueError(ValueError):
    """Error for a text that is not a value of its kind."""

    def __init__(self, message: str, hint: str = "", offset: int = 0, *, secret: bool = False) -> None:
        super().__init__(message)
        self.hint = hint
        self.offset = offset
        self.secret = secret
        """True if the text holds a secret; the message does not quote it then."""


@dataclass(frozen=True, slots=True)
class ValueKind:
    """A kind of value, with its parser."""

    name: str
    """Name of the kind in the reference."""
    expected: str
    """Description of the values, for a fault that must not quote the value."""
    parse: Callable[[str], Any] = field(compare=False)

    def reveals(self, text: str) -> bool:
        """Returns True if the text holds a secret by itself, such as a login in an address."""
        try:
            self.parse(text)
        except BadValueError as error:
            return error.secret
        except ValueError:
            return False
        return False


def choice(enum: type[StrEnum], *, any_case: bool = False) -> ValueKind:
    """Makes the kind of an enum's values."""
    values = [member.value for member in enum]
    listed = one_of(values)

    def parse(text: str) -> StrEnum:
        for value in values:
            if text == value or (any_case and text.lower() == value.lower()):
                return enum(value)
        near = get_close_matches(text.lower(), values, n=1)
        raise BadValueError(f"'{text}' is not {listed}", f"did you mean {near[0]}?" if near else "")

    return ValueKind(" \\| ".join(f"`{value}`" for value in values), listed, parse)


def whole(low: int, high: int) -> ValueKind:
    """Makes the kind of a whole number within bounds."""
    expected = f"a whole number from {low} to {high}"

    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text) or not low <= int(text) <= high:
            raise BadValueError(f"'{text}' is not {expected}")
        return int(text)

    return ValueKind(f"{low} to {high}", expected, parse)


def duration(low: str, high: str) -> ValueKind:
    """Makes the kind of a time with its unit, within bounds; the value is in seconds."""
    expected = f"a time from {low} to {high} with its unit: ms, s, m, h or d"

    def seconds(text: str) -> float:
        match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(ms|s|m|h|d)", text)
        if match is None:
            hint = f"write {text}s for seconds" if re.fullmatch(r"[0-9]+", text) else "as in 500ms, 30s, 5m, 12h, 7d"
            raise BadValueError(f"'{text}' is not {expected}", hint)
        return round(float(match[1]) * _SECONDS[match[2]], 6)

    def parse(text: str) -> float:
        value = seconds(text)
        if not seconds(low) <= value <= seconds(high):
            raise BadValueError(f"'{text}' is not {expected}")
        return value

    return ValueKind("duration", expected, parse)


def durations(low: str, high: str, most: int) -> ValueKind:
    """Makes the kind of a list of times within bounds, at most `most` of them; the value has seconds."""
    each = duration(low, high)
    expected = f"up to {most} times from {low} to {high}, separated by commas"

    def parse(text: str) -> tuple[float, ...]:
        parts = [part.strip() for part in text.split(",")]
        if len(parts) > most:
            raise BadValueError(f"'{text}' has {len(parts)} times; expected {expected}")
        return tuple(each.parse(part) for part in parts)

    return ValueKind("list of durations", expected, parse)


def size(low: str, high: str) -> ValueKind:
    """Makes the kind of a number of bytes, within bounds."""
    expected = f"a size from {low} to {high}"

    def amount(text: str) -> int:
        match = re.fullmatch(r"([0-9]{1,12})\s*(B|KiB|MiB|GiB|)", text)
        if match is None:
            raise BadValueError(f"'{text}' is not {expected}", "as in 512KiB, 8MiB or 1048576, which is bytes")
        return int(match[1]) * _BYTES[match[2]]

    def parse(text: str) -> int:
        value = amount(text)
        if not amount(low) <= value <= amount(high):
            raise BadValueError(f"'{text}' is not {expected}")
        return value

    return ValueKind("size", expected, parse)


def parse_text(text: str) -> str:
    """Returns the text; raises BadValueError if it is empty or holds control characters."""
    if not text.strip():
        raise BadValueError("the value is empty", "remove the line if nothing is to be set")
    for offset, char in enumerate(text):
        if ord(char) < 32 or ord(char) == 127:
            raise BadValueError(f"the value holds a control character, U+{ord(char):04X}", "", offset)
    return text


def _parse_flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise BadValueError(f"'{text}' is not true or false")
    return text == "true"


def _parse_name(text: str) -> str:
    parse_text(text)
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", text):
        offset = len(re.match(r"[A-Za-z0-9._-]*", text)[0])  # type: ignore[index]
        raise BadValueError(f"'{text}' is not a valid name", "letters, digits, '.', '_' and '-', 100 at most", offset)
    return text


def _parse_function(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", text):
        raise BadValueError(f"'{text}' is not a function", "module:function, such as examples.word_count:build")
    return text


def _parse_token(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._~+/-]+=*", text):
        hint = "letters, digits and - . _ ~ + /, as from: openssl rand -hex 32"
        raise BadValueError("the value is not a token", hint, secret=True)
    return text


def _parse_strong_secret(text: str) -> str:
    if len(text) < _STRONG_SECRET:
        hint = "a random one, as from: openssl rand -hex 32"
        raise BadValueError(f"the value has fewer than {_STRONG_SECRET} characters", hint, secret=True)
    return text


def _parse_create_topics(text: str) -> bool | None:
    if text not in ("auto", "true", "false"):
        raise BadValueError(f"'{text}' is not auto, true or false")
    return None if text == "auto" else text == "true"


def _parse_replication(text: str) -> int:
    if text == "broker":
        return -1
    try:
        return int(whole(1, 32767).parse(text))
    except BadValueError as error:
        raise BadValueError(f"{error}, or 'broker'") from None


def _parse_retention(text: str) -> float:
    return -0.001 if text == "forever" else float(duration("1s", "36500d").parse(text))


def _parse_ratio(text: str) -> float:
    if not re.fullmatch(r"0|1|[01]?\.[0-9]{1,9}", text) or float(text) > 1:
        raise BadValueError(f"'{text}' is not a number from 0 to 1", "as in 0.01 for one of a hundred")
    return float(text)


def _parse_path(text: str) -> Path:
    return Path(parse_text(text))


def _parse_place(text: str) -> Path | str:
    """The path of a local folder, or the URI of a folder on a file system of Hadoop, without a slash at its end."""
    match = _URI.fullmatch(parse_text(text))
    if match is None:
        return Path(text)
    if ":" in match["host"].rpartition("@")[0]:
        hint = "leave it out, and set spark.hadoop.… as the file system has it"
        raise BadValueError("the URI holds a login", hint, secret=True)
    if not match["path"].strip("/"):
        raise BadValueError(f"'{text}' names no folder", f"add one, as in {text.rstrip('/')}/jms-bridge")
    return text.rstrip("/")


def scheme_of(place: Path | str | None) -> str | None:
    """The scheme of a place that is a URI; None for a local path."""
    return place.partition(":")[0].lower() if isinstance(place, str) else None


def one_of(values: list[str]) -> str:
    """Lists values for a message to the user: `a, b or c`."""
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} or {values[-1]}"


ANY_TEXT = ValueKind("text", "text", lambda text: text)
"""Text of any kind, empty too: for values that are passed on to another program."""
TEXT = ValueKind("text", "text", parse_text)
TOKEN = ValueKind("token", "letters, digits and - . _ ~ + /", _parse_token)
"""A token that may follow `Bearer` (RFC 6750, section 2.1)."""
STRONG_SECRET = ValueKind("secret text", "text of 32 characters or more", _parse_strong_secret)
"""A secret that keys are made of: too long to be guessed."""
FLAG = ValueKind("`true` \\| `false`", "true or false", _parse_flag)
NAME = ValueKind("name", "a name of letters, digits, '.', '_' and '-'", _parse_name)
FUNCTION = ValueKind("module:function", "a function as module:function", _parse_function)
CREATE_TOPICS = ValueKind("`auto` \\| `true` \\| `false`", "auto, true or false", _parse_create_topics)
REPLICATION = ValueKind("1 to 32767 \\| `broker`", "a whole number from 1 to 32767, or broker", _parse_replication)
RETENTION = ValueKind("duration \\| `forever`", "a time with its unit (s, m, h or d), or forever", _parse_retention)
PATH = ValueKind("path", "a path", _parse_path)
PLACE = ValueKind("path \\| URI", "a path, or a URI such as hdfs://host:8020/folder", _parse_place)
"""A folder of this machine, which is a `Path`, or one on a file system of Hadoop, which is a text."""
RATIO = ValueKind("0 to 1", "a number from 0 to 1", _parse_ratio)
