"""Texts of the faults of predicates: the text found, and the text expected.

Guesses at the user's intention are in `slips`.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from lark import UnexpectedToken

from routes.errors import Fault, PredicateError, PredicateSyntaxError
from routes.predicate import slips
from routes.predicate.nodes import (
    Arithmetic,
    Between,
    Comparison,
    Identifier,
    In,
    IsNull,
    Like,
    Literal,
    Logical,
    Negate,
    Not,
    PredicateNode,
)
from routes.predicate.numbers import literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lark import UnexpectedInput

__all__ = [
    "RANGE_HINT",
    "character",
    "condition_hint",
    "dash_hint",
    "error",
    "name",
    "number_hint",
    "number_operand_hint",
    "translate",
]

RANGE_HINT = "exact numbers go from -9223372036854775808 to 9223372036854775807; write 1e19 for a larger one"


_SHOWN_CHARACTERS = 40
_EXCERPT_CHARACTERS = 160
_LOOKALIKES = "‘’‚‛“”„‟«»`´"  # noqa: RUF001 (the point of it)

# Users' names for the terminals of the grammar, in the order in which they are listed.
_EXPECTED = {
    "a field or property": ("NAME", "ADDRESS", "HEADER", "QUOTED_HEADER", "QUOTED_NAME"),
    "a word": ("WORD",),
    "a number": ("NUMBER",),
    "a text in single quotes": ("TEXT",),
    "TRUE or FALSE": ("TRUE", "FALSE"),
    "a comparison": ("COMPARATOR", "SEED_COMPARATOR"),
    "arithmetic": ("STAR", "SLASH"),
    "AND": ("_AND", "_AMPERSANDS"),
    "OR": ("_OR", "_BARS"),
    "NOT": ("_BANG",),
    "NULL or NOT NULL": ("_NULL",),
    "','": ("_COMMA",),
    "'('": ("_OPEN",),
    "')'": ("_CLOSE",),
    "the end": ("$END",),
}


def error(text: str, position: int, message: str, hint: str = "") -> PredicateError:
    """Makes the error for a place in a predicate's text. The excerpt is one line, cut off well behind the place."""
    return PredicateError(_fault(text, position, message, hint))


def translate(text: str, unexpected: UnexpectedInput) -> PredicateSyntaxError:
    """Translates an error of the parser into the user's words."""
    return PredicateSyntaxError(_fault(text, *_problem(text, unexpected)))


def _fault(text: str, position: int, message: str, hint: str = "") -> Fault:
    excerpt = re.sub(r"[\r\n\f]", " ", text[: position + _EXCERPT_CHARACTERS])
    return Fault(message, hint, column=position + 1, excerpt=excerpt)


def _problem(text: str, unexpected: UnexpectedInput) -> tuple[int, str, str]:
    """Returns position, message and hint for an error of the parser."""
    token = unexpected.token if isinstance(unexpected, UnexpectedToken) else None
    at_end = token is not None and token.type == "$END"
    position = len(text.rstrip()) if at_end else (unexpected.pos_in_stream or 0)
    expected = (unexpected.accepts if isinstance(unexpected, UnexpectedToken) else None) or set()
    token_text = "" if at_end else str(token or text[position])
    if slip := slips.find(text, position, token_text, expected):
        return slip.position, slip.message, slip.hint
    if token is None:
        return position, *character(token_text)
    shown = f"{_short(token_text)!r}" if token_text else "the end"
    return position, f"found {shown}, expected {_join(_words(expected))}", ""


def character(char: str) -> tuple[str, str]:
    """Returns message and hint for a character that cannot stand at its place."""
    if char in _LOOKALIKES:
        return f"the quotation mark {char} is not one of the language", "text stands between ' and '"
    label = f"{char!r} ({unicodedata.name(char, 'no name')})" if not char.isascii() else f"{char!r}"
    if unicodedata.category(char)[0] in "ZC":
        return f"the character {label} is not white space in predicates", "use a plain blank"
    return f"the character {label} is not allowed here", "text goes in single quotes, a name in double quotes"


def name(node: PredicateNode) -> str:
    """Describes a part of a predicate, for a sentence such as `found the number 5`."""
    match node:
        case Literal(value=bool() as truth):
            return "TRUE" if truth else "FALSE"
        case Literal(value=str() as text):
            return f"the text '{_short(text)}'"
        case Literal():
            return f"the number {node.value}"
        case Identifier():
            return f"the name {_short(node.name)}"
        case Arithmetic() | Negate():
            return "arithmetic"
        case Logical():
            return f"a condition with {node.operator}"
        case Not():
            return "a condition with NOT"
        case Comparison() | Between() | In() | Like() | IsNull():
            return "a comparison"
    raise AssertionError(node)


def condition_hint(node: PredicateNode) -> str:
    """Returns the hint for a value in the place of a condition."""
    if isinstance(node, Literal) and isinstance(node.value, str):
        return "compare it: name = 'text'"
    return "compare it: name = 5"


def number_operand_hint(node: PredicateNode) -> str:
    """Returns the hint for something else in the place of a number."""
    if isinstance(node, Literal) and isinstance(node.value, str):
        if numbers_text(node.value):
            return f"write {node.value} without quotes"
        return "text can only be compared with = and <>, or with LIKE and IN"
    if isinstance(node, Literal):
        return "TRUE and FALSE can only be compared with = and <>"
    return "join conditions with AND or OR"


def numbers_text(text: str) -> bool:
    """Returns True if a text would be a number, were it not quoted."""
    return literal(text.removeprefix("-")) is not None


def number_hint(token: str) -> str:
    """Returns the hint for a word that starts like a number but is not one."""
    if re.fullmatch("0[0-9]+[lL]?", token):
        return f"a leading 0 makes it octal; write {token.lstrip('0')}, or '{token}' for the text"
    if re.fullmatch("[0-9._]+([eE][+-]?[0-9_]+)?[fFdD]?", token) and token.count(".") < 2:
        return "it is out of the range of its type"
    return f"write '{token}' for the text; a name that starts with a digit goes in double quotes"


def dash_hint(source: str) -> str:
    """Returns the hint for a calculation beside a text: `msg.address = foo-topic`, `msg.header.x-id == foo`."""
    if re.search(r"\s", source):
        return "numbers only compare with numbers"
    if source.startswith("msg.header."):
        return f'write msg.header."{source.removeprefix("msg.header.")}" for a header of that name'
    return f"write '{source}' for the text, or \"{source}\" for a property of that name"


def _words(expected: Iterable[str]) -> list[str]:
    terminals = set(expected)
    if "_BETWEEN" in terminals and "COMPARATOR" not in terminals:
        return ["BETWEEN", "IN", "LIKE"]
    return [word for word, names in _EXPECTED.items() if terminals.intersection(names)]


def _join(words: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else "nothing more"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
