"""Names of properties in each system: which names a system can carry, and the spelling of those that it cannot.

A message keeps the names that its sender wrote. A sink spells a name that its system cannot carry so that the name is
not lost, and a source of that system turns the spelling back. A character becomes `_HYPHEN_`, `_DOT_` (as in Apache
Camel's `JmsKeyFormatStrategy`) or `_UXXXX_` with its code point in hexadecimal digits; of a name that has a meaning of
its own in the system, such as the selector's word `NOT`, the first character does. A `_` at which a name of a sender
looks like such a spelling becomes `_U005F_`. `docs/connectors/names.md` has the table for users.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from unicodedata import category

from routes.immutable import immutable

__all__ = ["ANY", "JMS", "NATS", "SYMBOLS", "NameRules", "is_identifier", "not_kept", "take_not_kept"]

_WORDS = {"-": "HYPHEN", ".": "DOT"}
_CHARACTERS = {word: char for char, word in _WORDS.items()}
_BODY = "HYPHEN|DOT|U[0-9A-F]{4,6}"
_SPELLING = re.compile(f"_({_BODY})_")
_AMBIGUOUS = re.compile(f"_(?={_BODY})")
_LONGEST_KNOWN, _MOST_KNOWN = 100, 2000
_LONGEST_SHOWN = 100
_MOST_CODE = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)

_START = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Sc", "Pc"))
_PART = _START | {"Nd", "Mc", "Mn", "Cf"}
_IGNORABLE = frozenset(map(chr, (*range(0x09), *range(0x0E, 0x1C), *range(0x7F, 0xA0))))


def is_identifier(char: str, index: int) -> bool:
    """Returns True if a Java identifier may have the character at place `index`, counted from 0.

    The rules are those of `Character.isJavaIdentifierStart` and `Character.isJavaIdentifierPart`.
    """
    return category(char) in _PART or char in _IGNORABLE if index else category(char) in _START


@immutable
class NameRules:
    """Rules of one system for the names of properties."""

    carries: Callable[[str, int], bool]
    """Tells whether a name may have a character at a place, counted from 0."""
    has_meaning: Callable[[str], bool] = lambda _: False
    """Tells whether a name has a meaning of its own in the system, so that no property can have it."""

    def encoded(self, name: str) -> str:
        """Returns the name as the system carries it; `decoded` gives the name back."""
        return _encoded(self, name) if len(name) <= _LONGEST_KNOWN else _encode(self, name)

    def decoded(self, name: str) -> str:
        """Returns the name for which the system carries `name`; a name that no sink would write stays as it is."""
        return name if "_" not in name else _decoded(self, name) if len(name) <= _LONGEST_KNOWN else _decode(self, name)


def _encode(rules: NameRules, name: str) -> str:
    plain = _spelled(rules, name)
    return plain if _decode(rules, plain) == name else _spelled(rules, name, is_distinct=True)


def _decode(rules: NameRules, name: str) -> str:
    decoded = _SPELLING.sub(_character, name)
    plain = _spelled(rules, decoded)
    # A distinct spelling is written only where the plain one would be read as another name.
    is_written = name == plain or (
        name == _spelled(rules, decoded, is_distinct=True) and _decode(rules, plain) != decoded
    )
    return decoded if is_written else name


_encoded, _decoded = lru_cache(_MOST_KNOWN)(_encode), lru_cache(_MOST_KNOWN)(_decode)
"""Cached translations of short names: senders repeat theirs, and long ones would cost memory."""


def _spelled(rules: NameRules, name: str, *, is_distinct: bool = False) -> str:
    """Returns the spelling of a name; if `is_distinct`, no `_` of the name itself looks like the start of one."""
    ambiguous = {found.start() for found in _AMBIGUOUS.finditer(name)} if is_distinct else frozenset[int]()
    has_meaning = rules.has_meaning(name)
    return "".join(
        [
            char
            if rules.carries(char, at) and at not in ambiguous and (at or not has_meaning)
            else f"_{_WORDS.get(char) or f'U{ord(char):04X}'}_"
            for at, char in enumerate(name)
        ]
    )


def _character(match: re.Match[str]) -> str:
    word = match[1]
    if word in _CHARACTERS:
        return _CHARACTERS[word]
    code = int(word[1:], 16)
    # UTF-8 has no surrogates.
    return chr(code) if code <= _MOST_CODE and code not in _SURROGATES else match[0]


_SELECTOR_WORDS = frozenset(("NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"))
JMS = NameRules(is_identifier, lambda name: name.upper() in _SELECTOR_WORDS)
"""JMS: identifiers of Java that are not words of selectors in any case (Jakarta Messaging 3.1, 3.5.1 and 3.8.1.1)."""

NATS = NameRules(lambda char, _: "!" <= char <= "~" and char != ":")
"""NATS: printable ASCII without a colon (ADR-4 of nats-architecture-and-design)."""

SYMBOLS = NameRules(lambda char, _: char.isascii())
"""Annotations and footers of AMQP: symbols, which are ASCII (AMQP 1.0, 1.6.21)."""
ANY = NameRules(lambda *_: True)
"""Systems that carry every name: Kafka, STOMP, application properties of AMQP, file names of a dropbox."""


class _NotKept:
    """Number of headers that this process could not keep since somebody took the number; thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._number = 0

    def add(self, number: int) -> None:
        with self._lock:
            self._number += number

    def take(self) -> int:
        with self._lock:
            number, self._number = self._number, 0
        return number


_not_kept = _NotKept()


def not_kept(name: str, why: str, number: int = 1) -> None:
    """Counts and logs a header or property that does not reach the next system as its sender wrote it.

    `why` is a short reason for operators; the log limits lines of this kind.
    """
    # Imported here, so that commands that only read the configuration do without.
    import structlog

    _not_kept.add(number)
    structlog.get_logger(__name__).warning("header not kept", name=name[:_LONGEST_SHOWN], why=why)


def take_not_kept() -> int:
    """Returns the number of headers that were not kept since the last call, for the part's metric."""
    return _not_kept.take()
