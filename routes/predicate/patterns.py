"""LIKE patterns, taken apart once for the evaluator and for Spark (Jakarta Messaging 3.1, 3.8.1.1).

`%` stands for any text, `_` for one character (a Unicode code point, line ends included), the escape character makes
the next one stand for itself, and all else stands for itself.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

__all__ = ["Pattern", "split"]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A LIKE pattern as the pieces between its `%`; None in a piece is a `_`."""

    pieces: tuple[tuple[str | None, ...], ...]

    @property
    def prefix(self) -> str:
        """The fixed text with which every matching text begins."""
        return "".join(itertools.takewhile(bool, (char or "" for char in self.pieces[0])))

    @property
    def regex(self) -> str:
        """A regular expression for the whole text, read alike by Python and Java, `.` matching line ends.

        Each piece between two `%` is matched where it comes first, without backtracking, so that no text can make a
        pattern with many `%` slow.
        """
        first, *rest = [_regex(piece) for piece in self.pieces]
        if not rest:
            return f"(?s){first}"
        middle = "".join(f"(?>.*?{piece})" for piece in rest[:-1] if piece)
        return f"(?s){first}{middle}.*{rest[-1]}"


def split(pattern: str, escape: str | None) -> Pattern:
    """Splits a pattern at its `%`.

    Raises:
        ValueError: the escape character stands before a character that it cannot escape.
    """
    pieces: list[tuple[str | None, ...]] = []
    piece: list[str | None] = []
    chars = iter(enumerate(pattern))
    for offset, char in chars:
        if char == escape:
            _, escaped = next(chars, (0, ""))
            if escaped not in ("%", "_", escape):
                raise ValueError(offset)
            piece.append(escaped)
        elif char == "%":
            pieces.append(tuple(piece))
            piece = []
        else:
            piece.append(None if char == "_" else char)
    return Pattern((*pieces, tuple(piece)))


def _regex(piece: tuple[str | None, ...]) -> str:
    return "".join("." if char is None else re.escape(char) for char in piece)
