"""Name translators: what the name of an AMQP property or annotation is called in JMS, and the other way.

In JMS a name has to be a Java identifier, so that a selector can speak of it; in AMQP it may be any text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from unicodedata import category

from routes.errors import BridgeError
from routes.name_translators import custom_translator
from routes.transformers import NAME_TRANSLATORS

__all__ = ["Translator", "translator"]

Translator = Callable[[str], str]

_START = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Sc", "Pc"))
_PART = _START | {"Nd", "Mc", "Mn", "Cf"}
_IGNORABLE = frozenset(map(chr, (*range(0x09), *range(0x0E, 0x1C), *range(0x7F, 0xA0))))
_PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_LONGEST_KNOWN = 100


def translator(name: str) -> Translator:
    """The translator of that name: one of `NAME_TRANSLATORS`, of an entry point, or `module:function`.

    Raises:
        BridgeError: there is none.
    """
    translate = _TRANSLATORS.get(NAME_TRANSLATORS.get(name, ""))
    return _cached(translate if translate is not None else _custom(name))


def _cached(translate: Translator) -> Translator:
    """A program uses the same names again and again; long ones are not worth the memory."""
    known = lru_cache(1000)(translate)
    return lambda name: known(name) if len(name) <= _LONGEST_KNOWN else translate(name)


def _custom(name: str) -> Translator:
    try:
        return _checked(name, custom_translator(name))
    except LookupError as error:
        raise BridgeError(str(error)) from error


def _checked(name: str, translate: Callable[[str], object]) -> Translator:
    """A function that somebody else wrote: what it does wrong is said as such."""

    def checked(source: str) -> str:
        try:
            translated = translate(source)
        except Exception as error:
            problem = f"name translator '{name}' failed on {source!r:.100}: {type(error).__name__}: {error}"
            raise BridgeError(problem) from error
        if not isinstance(translated, str):
            raise BridgeError(
                f"name translator '{name}' gave a {type(translated).__name__} for {source!r:.100}, no text"
            )
        return translated

    return checked


def _invalid_to_underscore(name: str) -> str:
    """Every character that may not stand where it does in a Java identifier becomes an underscore."""
    if _PLAIN.fullmatch(name):
        return name
    return "".join([char if _is_part(char) and (at or _is_start(char)) else "_" for at, char in enumerate(name)])


def _is_start(char: str) -> bool:
    """`Character.isJavaIdentifierStart`."""
    return category(char) in _START


def _is_part(char: str) -> bool:
    """`Character.isJavaIdentifierPart`."""
    return category(char) in _PART or char in _IGNORABLE


_TRANSLATORS: Mapping[str, Translator] = {
    "InvalidToUnderscore": _invalid_to_underscore,
    "UnderscoreToDash": lambda name: name.replace("_", "-"),
    "Null": lambda name: name,
}
