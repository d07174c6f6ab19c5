"""Reads a properties file into entries with places: every character of a value has its line and column.

`javaproperties` splits the text into keys and values; this module walks over the raw source to add places, through
continuation lines and escapes. The meaning of keys is in `binding`.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from io import StringIO
from typing import TYPE_CHECKING

from javaproperties import InvalidUEscapeError, KeyValue, parse

from routes.errors import Fault, Level
from routes.keys.entry import Entry, OneLine, Spot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["MAX_BYTES", "Document", "read", "read_text"]

MAX_BYTES = 4 * 1024 * 1024
"""Greatest size of a file; in memory each character takes a hundred times as much, since its place is stored with
it."""

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "f": "\f", "r": "\r"}
_NEEDS_NO_WARNING = frozenset(_BLANKS + '\\=:#!"u')
_LINE_END = re.compile(r"\r\n|\r|\n")
_PLAIN = re.compile(r"[ \t\f]*(?P<key>[^=: \t\f\r\n\\]+)[ \t\f]*[=:]?[ \t\f]*(?P<value>[^\r\n\\]*)(?:\r\n|\r|\n)?")
"""An entry on one line without a backslash, as nearly all are."""


@dataclass(slots=True)
class Document:
    """The content of a properties file, and its faults of syntax."""

    file: str
    entries: list[Entry] = field(default_factory=list)
    """Entries in the order of the file, duplicates kept."""
    faults: list[Fault] = field(default_factory=list)
    text: str = field(default="", repr=False)
    """The whole text."""
    readable: bool = True
    """False if the file could not be read at all, which is then the only fault."""


def read(path: Path) -> Document:
    """Returns the entries of a UTF-8 file, with or without a byte order mark.

    A file that cannot be read gives one fault.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        return Document(str(path), faults=[_unreadable(path, error)], readable=False)
    if len(data) > MAX_BYTES:
        fault = Fault(f"the file has more than {MAX_BYTES >> 20} MiB", "it is hardly a configuration", str(path))
        return Document(str(path), faults=[fault], readable=False)
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        fault = _not_utf8(str(path), data[: error.start].decode("utf-8"))
        return Document(str(path), faults=[fault], readable=False)
    return read_text(text, str(path))


def read_text(text: str, file: str = "") -> Document:
    """Returns the entries of a text; an entry with a bad escape becomes a fault, and reading goes on."""
    document = Document(file, text=text)
    stream = StringIO(text, newline="")
    elements = parse(stream)
    start, line = 0, 1
    while True:
        try:
            element = next(elements, None)
            if element is None:
                return document
        except InvalidUEscapeError:
            # The library's generator is dead now; a new one goes on with the line after the bad entry.
            elements = parse(stream)
            element = KeyValue("", "", text[start : stream.tell()])
        if isinstance(element, KeyValue):
            _add(document, element.source, line)
        start = stream.tell()
        line += len(_LINE_END.findall(element.source))


def _add(document: Document, source: str, line: int) -> None:
    plain = _PLAIN.fullmatch(source)
    entry = _plain_entry(document.file, plain, line) if plain else _scanned_entry(document, source, line)
    if entry is None:
        return
    document.entries.append(entry)
    kept = len(entry.value.rstrip())
    if kept < len(entry.value):
        document.faults.append(
            entry.fault("the value ends in blanks, which are part of it", "remove them", kept, Level.WARNING)
        )


def _plain_entry(file: str, match: re.Match[str], line: int) -> Entry:
    return Entry(
        key=match["key"],
        value=match["value"],
        file=file,
        key_spot=Spot(line, match.start("key") + 1),
        value_spots=OneLine(Spot(line, match.start("value") + 1), len(match["value"]) + 1),
        first_line=line,
        source=tuple(_LINE_END.split(match.string)),
    )


def _scanned_entry(document: Document, source: str, line: int) -> Entry | None:
    """Returns the entry of any source, and adds the faults of its escapes; None if one of them is an error."""
    scan = _Scan(source, line)
    entry = Entry(
        key="".join(char for char, _ in scan.key),
        value="".join(char for char, _ in scan.value),
        file=document.file,
        key_spot=scan.key[0][1] if scan.key else scan.start,
        value_spots=(*(spot for _, spot in scan.value), scan.end),
        first_line=line,
        source=tuple(_LINE_END.split(source)),
    )
    document.faults += [entry.move_to(Fault(message, hint), spot) for message, hint, spot in scan.errors]
    if scan.errors:
        return None
    if scan.dropped is not None:
        fault = Fault("a single backslash is not part of the value", r"write \\ for one", level=Level.WARNING)
        document.faults.append(entry.move_to(fault, scan.dropped))
    return entry


class _Scan:
    """Key and value of one logical line, decoded, each character with its spot in the file."""

    def __init__(self, source: str, line: int) -> None:
        raw = list(_logical_line(source, line))
        self.start = raw[0][1] if raw else Spot(line, 1)
        self.end = self._after(raw)
        self.errors: list[tuple[str, str, Spot]] = []
        self.dropped: Spot | None = None
        """The first backslash that decoding drops, and that was probably meant to stay."""
        split = _key_length(raw)
        value_start = _value_start(raw, split)
        self.key = self._decode(raw[:split])
        self.value = self._decode(raw[value_start:], warn=True)

    @staticmethod
    def _after(raw: list[tuple[str, Spot]]) -> Spot:
        return Spot(raw[-1][1].line, raw[-1][1].column + 1) if raw else Spot(1, 1)

    def _decode(self, raw: list[tuple[str, Spot]], *, warn: bool = False) -> list[tuple[str, Spot]]:
        decoded: list[tuple[str, Spot]] = []
        index = 0
        while index < len(raw):
            char, spot = raw[index]
            if char != "\\" or index + 1 == len(raw):
                decoded.append((char, spot))
                index += 1
                continue
            following = raw[index + 1][0]
            if warn and following not in _NEEDS_NO_WARNING and self.dropped is None:
                self.dropped = spot
            if following != "u":
                decoded.append((_ESCAPES.get(following, following), spot))
                index += 2
                continue
            digits = "".join(char for char, _ in raw[index + 2 : index + 6])
            if re.fullmatch("[0-9A-Fa-f]{4}", digits):
                decoded.append((chr(int(digits, 16)), spot))
            else:
                self.errors.append((r"\u is not followed by four hexadecimal digits", r"as in \u00e9", spot))
            index += 6
        return self._join_surrogates(decoded)

    def _join_surrogates(self, decoded: list[tuple[str, Spot]]) -> list[tuple[str, Spot]]:
        joined: list[tuple[str, Spot]] = []
        for char, spot in decoded:
            before = joined[-1][0] if joined else ""
            if "\udc00" <= char <= "\udfff" and "\ud800" <= before <= "\udbff":
                pair = (before + char).encode("utf-16", "surrogatepass").decode("utf-16")
                joined[-1] = (pair, joined[-1][1])
            else:
                joined.append((char, spot))
        for char, spot in joined:
            if "\ud800" <= char <= "\udfff":
                self.errors.append(("half of a surrogate pair", r"write both halves, as in \ud83d\ude00", spot))
        return joined


def _logical_line(source: str, line: int) -> Iterator[tuple[str, Spot]]:
    """Yields the characters of key and value as Java joins them: without leading blanks, line ends, continuations."""
    for number, text in enumerate(_LINE_END.split(source), line):
        backslashes = len(text) - len(text.rstrip("\\"))
        end = len(text) - backslashes % 2
        for column in range(len(text) - len(text.lstrip(_BLANKS)), end):
            yield text[column], Spot(number, column + 1)


def _key_length(raw: list[tuple[str, Spot]]) -> int:
    escaped = False
    for index, (char, _) in enumerate(raw):
        if not escaped and char in "=:" + _BLANKS:
            return index
        escaped = char == "\\" and not escaped
    return len(raw)


def _value_start(raw: list[tuple[str, Spot]], index: int) -> int:
    """Returns the index at which the value begins: after blanks, at most one `=` or `:`, and blanks."""
    separator_seen = False
    while index < len(raw):
        char = raw[index][0]
        if char in "=:" and not separator_seen:
            separator_seen = True
        elif char not in _BLANKS:
            break
        index += 1
    return index


def _unreadable(path: Path, error: OSError) -> Fault:
    if isinstance(error, FileNotFoundError):
        return Fault("there is no such file", "`jms-bridge init` writes one to start from", str(path))
    if isinstance(error, IsADirectoryError):
        return Fault("this is a directory, not a properties file", "name the file itself", str(path))
    reason = (error.strerror or str(error)).lower()
    hint = "give the user who runs jms-bridge the right to read it" if isinstance(error, PermissionError) else ""
    return Fault(f"the file cannot be read: {reason}", hint, str(path))


def _not_utf8(file: str, before: str) -> Fault:
    """Returns the fault at the first bad byte. No excerpt: the line may hold a secret, and is not text anyway."""
    lines = _LINE_END.split(before)
    hint = r"save the file as UTF-8, or write the character as \uXXXX"
    return Fault("the file is not UTF-8 from here on", hint, file, len(lines), len(lines[-1]) + 1)
