"""Headers of one message after the edits of its route; `jmsbridge.predicate.HeaderEdits` does the same for Spark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from engine.message import NAMES, TYPES, decode_names, encode_names
from routes.header_edits import LONGEST_TEXT, removal
from routes.keys.header_names import FIXED
from routes.properties import HEADER_FIELDS, decode_types, encode_types

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from routes.header_edits import HeaderEdits

__all__ = ["corrected", "edited"]

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]

_JMS = "jms."
_BARE = slice(len(_JMS), None)


def edited(headers: Headers, edits: HeaderEdits, text_of: Callable[[str], str | None]) -> Headers:
    """Returns the headers after the edits; `text_of` gives texts of the message as it came (`Message.text_of`)."""
    if not edits:
        return headers
    draft = _Draft(headers)
    draft.remove(removal(edits.removed))
    for old, new in edits.renamed:
        draft.rename(old, new)
    for name, template in edits.given:
        text = (template.fill(text_of) or "").encode("utf-8", "replace")
        draft.give(name, text if 0 < len(text) <= LONGEST_TEXT else None)
    return draft.finish()


def corrected(headers: Headers, removed: tuple[str, ...], given: Mapping[str, str]) -> Headers:
    """Returns the headers without those whose names are `removed`, and with the texts `given` by name."""
    draft = _Draft(headers)
    draft.remove(removal(removed))
    for name, text in given.items():
        draft.give(name, text.encode("utf-8", "surrogateescape"))
    return draft.finish()


class _Draft:
    """Headers while they are edited, with the types and the spellings that two of them declare."""

    def __init__(self, headers: Headers) -> None:
        self._headers = list(headers)
        first = dict(reversed(headers))
        types, names = ((first.get(name) or b"").decode("utf-8", "replace") for name in (TYPES, NAMES))
        self._types = dict(decode_types(types))
        # No bridge writes another spelling of a JMS field: a sender's leads to none.
        self._spellings = {
            spelling: name
            for spelling, name in decode_names(names).items()
            if not any(re.match(FIXED, each) for each in (spelling, name))
        }
        self._before = self._types.copy(), self._spellings.copy()

    def remove(self, pattern: str) -> None:
        """Removes the headers that have a name, under any of their spellings, which matches the pattern as a whole."""
        for name in [name[_BARE] for name, _ in self._headers if name.startswith(_JMS)]:
            names = (name, *(other for pair in self._spellings.items() if name in pair for other in pair))
            if any(re.fullmatch(pattern, each, re.DOTALL) for each in names):
                self._drop(name)

    def rename(self, old: str, new: str) -> None:
        """Gives a header a new name, and drops another one of that name."""
        source, target = self._resolved(old), self._resolved(new)
        if not self._has(source):
            return
        if target != source:
            self._drop(target)
        kind = None if new in HEADER_FIELDS else HEADER_FIELDS.get(source) or self._types.get(source)
        self._forget(source)
        self._forget(new)
        self._headers = [(_JMS + new if name == _JMS + source else name, value) for name, value in self._headers]
        if kind:
            self._types[new] = kind

    def give(self, name: str, text: bytes | None) -> None:
        """Gives a header a text, or drops it for lack of one."""
        target = self._resolved(name)
        if text is None or not self._has(target):
            self._forget(target)
        else:
            self._forget_types(target)
        self._headers = [header for header in self._headers if header[0] != _JMS + target]
        if text is not None:
            self._headers.append((_JMS + target, text))

    def finish(self) -> Headers:
        """Returns the headers, among them those of types and spellings as they are now."""
        types, spellings = self._before
        if self._types != types:
            self._declare(TYPES, encode_types(self._types.items()))
        if self._spellings != spellings:
            self._declare(NAMES, encode_names(self._spellings.items()))
        return tuple(self._headers)

    def _declare(self, header: str, text: str) -> None:
        self._headers = [each for each in self._headers if each[0] != header]
        if text:
            self._headers.append((header, text.encode("utf-8", "replace")))

    def _has(self, name: str) -> bool:
        return any(each == _JMS + name for each, _ in self._headers)

    def _resolved(self, name: str) -> str:
        """The name of the header that a name stands for."""
        other = self._spellings.get(name)
        return other if other is not None and not self._has(name) and self._has(other) else name

    def _drop(self, name: str) -> None:
        self._forget(name)
        self._headers = [header for header in self._headers if header[0] != _JMS + name]

    def _forget(self, name: str) -> None:
        """Forgets types and spellings of a header."""
        self._forget_types(name)
        self._spellings = {spelling: own for spelling, own in self._spellings.items() if name not in (spelling, own)}

    def _forget_types(self, name: str) -> None:
        """Forgets the types of a header under all spellings that no header of its own has."""
        for spelling, own in self._spellings.items():
            if own == name and not self._has(spelling):
                self._types.pop(spelling, None)
        self._types.pop(name, None)
