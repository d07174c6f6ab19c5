"""Output of commands for a terminal: consoles, printable text, times, the line of an error."""

from __future__ import annotations

import base64
import logging
import re
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from engine.printable import LONGEST_REASON, has_controls, json_text, printable, shortened
from engine.record_json import json_bytes, record_json
from engine.times import iso

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

    from engine.kafka.reader import LocatedRecord
    from engine.message import Record

__all__ = [
    "BodyFormat",
    "Item",
    "complain",
    "console",
    "item_json",
    "item_text",
    "json_bytes",
    "note",
    "progress",
    "progress_bar",
    "quiet_log",
    "record_json",
    "record_lines",
    "show_bytes",
    "version",
]

_WIDE = 200
_SHOWN_BYTES = 4096
_SHOWN_HEADERS = 60
_WIDTH = 40


class BodyFormat(StrEnum):
    """Formats in which a body that is not text is printed."""

    HEX = "hex"
    BASE64 = "base64"


def console() -> Console:
    """Standard output; wide where it is not a terminal, so that nothing is cut for a pipe."""
    from rich.console import Console

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


@contextmanager
def quiet_log() -> Iterator[None]:
    """Keeps what connectors log for operators out of the output of a command, which says it itself."""
    import structlog

    configured = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.configure(**configured)


def version() -> str:
    """Version of the project."""
    from importlib import metadata

    return metadata.version("jms-bridge")


def _text(value: bytes) -> str | None:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return None if has_controls(text.replace("\r\n", "\n")) else text


def _starts_with_place(text: str) -> bool:
    return re.match(r"[^\s:]+:(\d+:)*(\d+:)? (error|warning): ", text) is not None


@dataclass(frozen=True, slots=True)
class Item:
    """Something to show: a record and where it was found."""

    title: str
    """The first line for people."""
    place: Mapping[str, Any]
    """The first members of the JSON object."""
    record: Record

    @staticmethod
    def of(located: LocatedRecord) -> Item:
        """A record of a Kafka topic."""
        position, time = located.position, iso(located.time_ms)
        place = {"topic": position.topic, "partition": position.partition, "offset": position.offset, "time": time}
        return Item(f"{position}  {time}", place, located.record)


def item_text(item: Item, form: BodyFormat = BodyFormat.HEX) -> str:
    """A block of lines: the title, key, headers and body."""
    return "\n".join([printable(item.title), *record_lines(item.record, form), ""])


def progress(confirmed: int, sent: int, count: int) -> str:
    """The end of an error's line: how many of `count` messages arrived, and of how many sent ones that is not known."""
    if count == 1:
        return ""
    unknown = f"; {sent - confirmed} more were sent, and may have arrived" if sent > confirmed else ""
    return f", after {confirmed} of {count} messages{unknown}"


def progress_bar(*columns: ProgressColumn) -> Progress:
    """A bar on stderr with these columns, which is shown on a terminal only and vanishes at the end."""
    from rich.console import Console
    from rich.progress import Progress

    terminal = Console(stderr=True)
    # Lines for the same terminal go above the bar; what goes into a pipe is left alone.
    redirects = sys.stdout.isatty()
    return Progress(
        *columns, console=terminal, transient=True, disable=not terminal.is_terminal, redirect_stdout=redirects
    )


def record_lines(record: Record, form: BodyFormat = BodyFormat.HEX) -> list[str]:
    """Key, each header and the body, aligned; long values are cut."""
    shown = record.headers[:_SHOWN_HEADERS]
    width = min(max((len(name) for name, _ in shown), default=4), _WIDTH)

    def line(name: str, value: bytes | None) -> str:
        label = printable(shortened(name, LONGEST_REASON))
        return f"  {label:<{width}}  {printable(show_bytes(value, form, _SHOWN_BYTES))}"

    lines = [] if record.key is None else [line("key", record.key)]
    lines += [line(name, value) for name, value in shown]
    if len(record.headers) > len(shown):
        lines.append(f"  … {len(record.headers) - len(shown)} headers more (--json shows all)")
    size = len(record.value or b"")
    lines.append(f"  {'body':<{width}}  {size} byte{'' if size == 1 else 's'}")
    return lines + [f"    {text}" for text in printable(show_bytes(record.value, form, _SHOWN_BYTES)).splitlines()]


def item_json(item: Item) -> str:
    """A record as a line of JSON, with `body_base64` and `value_base64` for bytes that are not UTF-8."""
    return json_text({**item.place, **record_json(item.record)})
