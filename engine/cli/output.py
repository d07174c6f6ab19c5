"""Output of commands for a terminal: consoles, printable text, times, the line of an error."""

from __future__ import annotations

import base64
import re
import sys
from datetime import UTC, datetime
from enum import StrEnum
from importlib import metadata

from rich.console import Console

from engine.printable import has_controls, printable

__all__ = [
    "BodyFormat",
    "complain",
    "console",
    "json_bytes",
    "note",
    "show_bytes",
    "show_time",
    "version",
]

_WIDE = 200


class BodyFormat(StrEnum):
    """Formats in which a body that is not text is printed."""

    HEX = "hex"
    BASE64 = "base64"


def console() -> Console:
    """Standard output; wide where it is no terminal, so that nothing is cut for a pipe."""
    # Made for each use: it then writes to the sys.stdout of that moment.
    return Console(width=None if sys.stdout.isatty() else _WIDE, highlight=False, markup=False, emoji=False)


def complain(text: str) -> None:
    """An error on stderr, with the name of the program unless the text starts with a place in a file."""
    prefix = "" if _starts_with_place(text) else "jms-bridge: "
    sys.stderr.write(printable(f"{prefix}{text}\n"))


def note(text: str) -> None:
    """A remark for people on stderr, so that it does not end up among the data."""
    sys.stderr.write(printable(f"{text}\n"))


def show_bytes(value: bytes | None, form: BodyFormat = BodyFormat.HEX, limit: int | None = None) -> str:
    """Bytes for people: as text where they are UTF-8 without control characters, else in `form`."""
    if value is None:
        return "(none)"
    cut = value if limit is None else value[:limit]
    rest = f" … ({len(value)} bytes in all)" if len(cut) < len(value) else ""
    # Cutting may have split the last character.
    text = _text(cut) or (rest and next(filter(None, (_text(cut[:-n]) for n in (1, 2, 3))), None))
    if text is not None and text != "":
        return text + rest
    if not cut:
        return ""
    if form is BodyFormat.BASE64:
        return f"base64:{base64.b64encode(cut).decode()}{rest}"
    return f"hex:{cut.hex(' ', -4)}{rest}"


def json_bytes(name: str, value: bytes | None) -> dict[str, str | None]:
    """A JSON member for bytes: `name` with text, or `<name>_base64` where they are not UTF-8."""
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}


def show_time(milliseconds: int) -> str:
    """A Kafka timestamp in ISO 8601, UTC; as a number if it is beyond the calendar: its producer may write anything."""
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError):
        return str(milliseconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def version() -> str:
    """Version of the project."""
    return metadata.version("jms-bridge")


def _text(value: bytes) -> str | None:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return None if has_controls(text.replace("\r\n", "\n")) else text


def _starts_with_place(text: str) -> bool:
    return re.match(r"[^\s:]+:(\d+:)*(\d+:)? (error|warning): ", text) is not None
