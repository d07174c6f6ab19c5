"""Common mistakes in predicates, recognised by the text around the place where parsing failed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Set

__all__ = ["BODY_PATH", "Slip", "find", "respelled"]

BODY_PATH = re.compile(r"(?:msg\.)?(?:body|payload)(?=[.\[])", re.IGNORECASE)
"""Beginning of a name that is meant for a field of the body."""


@dataclass(frozen=True, slots=True)
class Slip:
    """A mistake that the user most likely made, with its place."""

    position: int
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class _Place:
    text: str
    position: int
    found: str
    """The word or sign at `position`; empty at the end."""
    expected: Set[str]
    """Terminals of the grammar."""

    @property
    def before(self) -> str:
        return self.text[: self.position].rstrip()

    def slip(self, message: str, hint: str, position: int | None = None) -> Slip:
        return Slip(self.position if position is None else position, message, hint)


def find(text: str, position: int, actual: str, expected: Set[str]) -> Slip | None:
    """Returns the mistake at this place, if it is a known one."""
    place = _Place(text, position, actual, expected)
    return next(filter(None, (recognise(place) for recognise in _SLIPS)), None)


def respelled(name: str) -> str:
    """Returns how a path into the body is written that somebody began otherwise: `payload.a` is `msg.body.a`."""
    return BODY_PATH.sub("msg.body", name, count=1)


_PATHS = 'write msg.body.name, msg.body."odd name", msg.body.lines[0].price, [-1] for the last, [*] for each'


def _open_quote(place: _Place) -> Slip | None:
    if place.found == "'":
        return place.slip("the text that starts here has no closing quote", "a quote inside a text is doubled: 'it''s'")
    if place.found == '"':
        return place.slip("the name that starts here has no closing quote", "text goes in single quotes")
    return None


def _xpath(place: _Place) -> Slip | None:
    hint = "write xpath('/order/@priority')"
    if place.expected == {"TEXT"} and re.search(r"xpath\s*\($", place.before):
        return place.slip("xpath takes an expression in single quotes", hint)
    called = re.search(r"[\w$]+$", place.before)
    if place.found == "(" and called and "$END" in place.expected:
        return place.slip(f"there is no function {called[0]}", hint, called.start())
    return None


def _half_sign(place: _Place) -> Slip | None:
    if place.found in ("&", "|"):
        word = "AND" if place.found == "&" else "OR"
        return place.slip(f"a single {place.found} means nothing", f"write {place.found * 2} or {word}")
    return None


_SIGNS = {"=>": ">=", "=<": "<=", "><": "<>", "=!": "!=", "=~": "LIKE", "===": "==", "!==": "!=", "<=>": "="}


def _wrong_sign(place: _Place) -> Slip | None:
    for sign, right in _SIGNS.items():
        for start in range(max(place.position - len(sign) + 1, 0), place.position):
            if place.text.startswith(sign, start):
                return place.slip(f"there is no {sign}", f"write {right}", start)
    if place.found == "!" and re.match(r"!\s+=", place.text[place.position :]):
        return place.slip("there is a blank in !=", "write !=")
    return None


def _null(place: _Place) -> Slip | None:
    if place.found.upper() == "NULL" and "NAME" in place.expected:
        return place.slip("nothing is equal to NULL", "write IS NULL or IS NOT NULL")
    return None


def _reserved(place: _Place) -> Slip | None:
    words = {"NULL", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"}
    if place.found.upper() in words and "NAME" in place.expected:
        hint = f'a value is missing before it, or write "{place.found}" in double quotes for a property of that name'
        return place.slip(f"{place.found} is a word of the language", hint)
    return None


def _in_list(place: _Place) -> Slip | None:
    if "TEXT" not in place.expected or "NAME" in place.expected or "WORD" in place.expected:
        return None
    if not re.search(r"(?i)\bin\s*\([^()]*$", place.before):
        return None
    if place.found == ")":
        where = "IN () has no constants" if place.before.endswith("(") else "a constant is missing after the comma"
        return place.slip(where, "write IN ('a', 'b') or IN (1, 2)")
    what = f"IN takes texts in single quotes, and numbers, found {place.found}"
    return place.slip(what, f"write '{place.found.strip(chr(34))}'")


def _pattern(place: _Place) -> Slip | None:
    keyword = re.search(r"(?i)\b(like|escape)$", place.before)
    if keyword is None or "TEXT" not in place.expected or "NAME" in place.expected or "WORD" in place.expected:
        return None
    what = "a pattern" if keyword[1].upper() == "LIKE" else "one character"
    message = f"{keyword[1].upper()} takes {what} in single quotes"
    if not place.found:
        return place.slip(message, "write LIKE 'order-%'")
    return place.slip(f"{message}, found {place.found}", f"write '{place.found.strip(chr(34))}'")


def _broken_name(place: _Place) -> Slip | None:
    """Recognises `a.b`, `msg.foo`, `größe#2`: a name that ends where a sign of another kind begins."""
    name = re.search(r"[\w$]+$", place.text[: place.position])
    if name is None or not place.found or place.found[0] not in ".:@#%~" or "$END" not in place.expected:
        return None
    whole = name[0] + place.found
    if BODY_PATH.match(whole):
        return place.slip(f"{whole} is not a path into the body", _PATHS, name.start())
    if whole.lower().startswith("msg."):
        header = whole.removeprefix("msg.header.")
        known = "there are msg.address, msg.header.NAME, msg.body and msg.text, in small letters"
        hint = known if header == whole else f'write msg.header."{header}"'
        return place.slip(f"there is no {whole}", hint, name.start())
    if re.search(r"(=|<>)\s*$", place.text[: name.start()]):
        return place.slip(f"{whole} needs quotes", f"write '{whole}' for the text, or == before it", name.start())
    return place.slip(f"{whole} is not a name without quotes", f'write "{whole}" or msg.header."{whole}"', name.start())


def _parentheses(place: _Place) -> Slip | None:
    bare = re.sub(r"""'(?:[^']|'')*'|"[^"]*\"""", lambda quoted: "x" * len(quoted[0]), place.text[: place.position])
    opened: list[int] = []
    for offset, char in enumerate(bare):
        if char == "(":
            opened.append(offset)
        elif char == ")" and opened:
            opened.pop()
    if place.found == ")" and not opened:
        return place.slip("this ) closes nothing", "remove it, or add the ( that belongs to it")
    if not place.found and opened and "NAME" not in place.expected and "WORD" not in place.expected:
        return place.slip("this ( is never closed", "add the ) that belongs to it", opened[-1])
    return None


def _words(place: _Place) -> Slip | None:
    """Recognises `== foo bar`: only one word may stand after ==."""
    before = re.search(r"(?:==|!=)\s*([^\s()'\"=<>!&|]+)$", place.before)
    if before is None or not re.match(r"[\w$.]", place.found) or "NAME" in place.expected:
        return None
    phrase = f"{before[1]} {place.found}"
    return place.slip(f"found {place.found!r} after the word {before[1]!r}", f"a text with blanks: '{phrase}'")


_SLIPS: tuple[Callable[[_Place], Slip | None], ...] = (
    _open_quote,
    _xpath,
    _half_sign,
    _wrong_sign,
    _null,
    _in_list,
    _pattern,
    _broken_name,
    _parentheses,
    _words,
    _reserved,
)
