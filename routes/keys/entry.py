"""An entry of a properties file: `key=value` with the place of each of its characters, and faults at such a place.

An entry that is secret never shows its value: not in `repr`, not in the excerpt of a fault.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, overload

from routes.errors import Fault, Level
from routes.keys.secrets import MASK, hide_credentials, is_secret_key

__all__ = ["Entry", "OneLine", "Spot"]


class Spot(NamedTuple):
    """A place in a file: line and column, both from 1; columns count characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class OneLine(Sequence[Spot]):
    """Places that follow each other in a line; each is made when it is asked for, which is rare."""

    first: Spot
    length: int

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, index: int) -> Spot: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Spot]: ...
    def __getitem__(self, index: int | slice) -> Spot | Sequence[Spot]:
        columns = range(self.first.column, self.first.column + self.length)[index]
        if isinstance(columns, int):
            return Spot(self.first.line, columns)
        return [Spot(self.first.line, column) for column in columns]


@dataclass(frozen=True, slots=True)
class Entry:
    """A key and its value, decoded but with references (`${env:NAME}`) as they stand in the file."""

    key: str
    value: str = field(repr=False)
    file: str
    key_spot: Spot
    value_spots: Sequence[Spot] = field(repr=False)
    """Place of each character of `value`, and of the end after the last."""
    first_line: int
    source: tuple[str, ...] = field(repr=False)
    """The lines that the entry is written on."""
    secret: bool = False

    @property
    def line(self) -> int:
        """The line of the key."""
        return self.key_spot.line

    def fault(self, message: str, hint: str = "", offset: int = 0, level: Level = Level.ERROR) -> Fault:
        """Returns a fault in the value, at the character `offset`."""
        return self.move(Fault(message, hint, level=level), offset)

    def key_fault(self, message: str, hint: str = "", level: Level = Level.ERROR) -> Fault:
        """Returns a fault in the key.

        The value is left out: under a misspelt key it may be anything, a password too.
        """
        return self._place(Fault(message, hint, level=level), self.key_spot, "…")

    def move(self, fault: Fault, offset: int) -> Fault:
        """Returns a fault placed at a character of the value."""
        return self.move_to(fault, self.value_spots[min(offset, len(self.value))])

    def move_to(self, fault: Fault, spot: Spot) -> Fault:
        """Returns a fault placed anywhere on the entry's lines, but not behind the start of a hidden value."""
        if self.hidden:
            return self._place(fault, min(spot, self.value_spots[0]), MASK)
        return self._place(fault, spot, None)

    @property
    def hidden(self) -> bool:
        """True if the value is never shown."""
        return self.secret or is_secret_key(self.key)

    def _place(self, fault: Fault, spot: Spot, instead: str | None) -> Fault:
        """Returns the fault at a spot of this entry, its excerpt with `instead` in place of the value."""
        excerpt = self.source[spot.line - self.first_line]
        if instead is not None:
            start = self.value_spots[0]
            shown = excerpt[: start.column - 1] if spot.line == start.line else re.match(r"\s*", excerpt)[0]  # type: ignore[index]
            excerpt = shown + (instead if self.value else "")
        return fault.moved(
            file=self.file, line=spot.line, column=spot.column, excerpt=hide_credentials(excerpt), key=self.key
        )
