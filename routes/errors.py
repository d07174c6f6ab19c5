"""Errors of the configuration and the routing language, and the root of every error in the project.

    BridgeError                 an error for the user; `exit_code` is the exit status of the process
    └── ConfigurationError      a configuration cannot be used; carries every fault found, not just the first
        └── PredicateError      a predicate cannot be used; one fault
            └── PredicateSyntaxError    a predicate breaks the grammar

Errors at run time are in `engine.errors`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BridgeError", "ConfigurationError", "Fault", "Level", "PredicateError", "PredicateSyntaxError"]


class Level(StrEnum):
    """Severity of a fault: an error stops the start, a warning is shown and passed over."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in a configuration, with its place and its remedy."""

    message: str
    """Description of the fault, lower case, the offending value quoted."""
    hint: str = ""
    """Remedy, or the expected value."""
    file: str = ""
    """Path as the user gave it; empty for text that came from no file."""
    line: int = 0
    """Line number from 1; 0 if no line is to blame (a missing key)."""
    column: int = 0
    """Column from 1, in characters of the line."""
    excerpt: str = ""
    """The line (or predicate) itself, shown with a caret under `column`."""
    key: str = ""
    """Key of the property at fault."""
    level: Level = Level.ERROR

    def __str__(self) -> str:
        """Returns `file:line:column: level: message`, the hint, and the line with its caret."""
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        text = f"{place}: {self.level}: {self.message}" if place else f"{self.level}: {self.message}"
        if self.hint:
            text += f" ({self.hint})"
        if self.excerpt:
            # Tabs before the caret are kept, so that it stands under its character in any terminal.
            pad = "".join("\t" if char == "\t" else " " for char in self.excerpt[: max(self.column - 1, 0)])
            text += f"\n    {self.excerpt}\n    {pad}^"
        return text

    def moved(self, *, file: str, line: int, column: int, excerpt: str, key: str) -> Fault:
        """Returns a copy of the fault, placed in the file that contains the faulty text."""
        return replace(self, file=file, line=line, column=column, excerpt=excerpt, key=key)


class BridgeError(Exception):
    """Base of all errors meant for a user: the text is complete, and needs no stack trace beside it."""

    exit_code: ClassVar[int] = 1


class ConfigurationError(BridgeError, ValueError):
    """Error for a configuration with faults; `faults` holds all of them in the order of the file."""

    exit_code = 2

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


class PredicateError(ConfigurationError):
    """Error for a predicate that cannot be used; `fault.column` counts from 1 inside the predicate's own text."""

    def __init__(self, fault: Fault) -> None:
        super().__init__([fault])
        self.fault = fault


class PredicateSyntaxError(PredicateError):
    """Error for a predicate that breaks the grammar, found before its meaning is checked."""
