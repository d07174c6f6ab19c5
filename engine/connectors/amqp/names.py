"""Name translators, which map names of AMQP properties and annotations to JMS names and back.

An AMQP name may be any text. A JMS name has to be a Java identifier, so that selectors can refer to it. What the
default translator changes, a message tells in `Message.spellings`, so that sinks can write the name as it was.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from engine.property_names import is_identifier
from routes.errors import BridgeError

__all__ = [
    "GROUP",
    "NAME_TRANSLATORS",
    "PACKAGE",
    "TranslationError",
    "Translator",
    "custom_translator",
    "is_reversible",
    "spellings",
    "translator",
]

GROUP = "jms_bridge.name_translators"
"""Group of the entry points by which Python packages offer translators."""
PACKAGE = "com.swiftmq.impl.amqp.amqp.v01_00_00.transformer"
"""Package of SwiftMQ's classes, whose names can stand in place of the short ones."""

Translator = Callable[[str], str]
"""Maps a name; raises TranslationError for one that it cannot map."""

_PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_LONGEST_KNOWN = 100


class TranslationError(ValueError):
    """A custom name translator fails on a name of one message. The text is one line for users."""


def spellings(name: str, *suffixes: str) -> tuple[str, ...]:
    """Returns all spellings of a name: short, as a class of SwiftMQ, and as that class's full name."""
    classes = [f"{name}{suffix}" for suffix in suffixes]
    return (name, *classes, *(f"{PACKAGE}.{each}" for each in classes))


NAME_TRANSLATORS: Mapping[str, str] = {
    spelling: name
    for name in ("InvalidToUnderscore", "UnderscoreToDash", "Null")
    for spelling in spellings(name, "NameTranslator")
}
"""Every spelling of the built-in name translators, mapped to the short one."""


def translator(name: str) -> Translator:
    """Returns a translator by its name: one of `NAME_TRANSLATORS`, an entry point, or `module:function`.

    Raises:
        BridgeError: there is no such translator.
    """
    translate = _TRANSLATORS.get(NAME_TRANSLATORS.get(name, ""))
    return _cached(translate if translate is not None else _custom(name))


def is_reversible(name: str) -> bool:
    """Returns True if the translator only makes names that JMS allows, so that sinks may write the names as they were.

    Any other one is a choice of names, which holds for all systems.
    """
    return NAME_TRANSLATORS.get(name) == "InvalidToUnderscore"


def custom_translator(name: str) -> Callable[[str], object]:
    """Returns the function of an entry point of that name, else of `module:function`.

    Modules are also looked for in the working directory, as in the processes of a running bridge.

    Raises:
        LookupError: there is none; the text has the reason and the names that would be taken.
    """
    try:
        translate = _load(name)
    # A module may raise anything while it is imported.
    except Exception as error:
        known = ", ".join(dict.fromkeys(NAME_TRANSLATORS.values()))
        reason = str(error) or type(error).__name__
        message = f"there is no name translator '{name}': {reason}; write {known}, module:function, or the name of an "
        raise LookupError(f"{message}entry point of group {GROUP}") from error
    if not callable(translate):
        raise LookupError(f"name translator '{name}' is a {type(translate).__name__}, not a function of a name")
    return translate


def _load(name: str) -> Callable[[str], object]:
    here = str(Path.cwd())
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.append(here)
    try:
        for entry in entry_points(group=GROUP, name=name):
            return entry.load()  # type: ignore[no-any-return] # the caller checks that it is a function
        module, _, function = name.partition(":")
        return getattr(import_module(module), function)  # type: ignore[no-any-return]
    finally:
        if added:
            sys.path.remove(here)


def _cached(translate: Translator) -> Translator:
    """Caches the translations of short names, as programs repeat their names; long ones would cost memory."""
    known = lru_cache(1000)(translate)
    return lambda name: known(name) if len(name) <= _LONGEST_KNOWN else translate(name)


def _custom(name: str) -> Translator:
    try:
        return _checked(name, custom_translator(name))
    except LookupError as error:
        raise BridgeError(str(error)) from error


def _checked(name: str, translate: Callable[[str], object]) -> Translator:
    """Wraps a custom function: its exceptions and wrong results become a TranslationError that names it."""

    def checked(source: str) -> str:
        try:
            translated = translate(source)
        except Exception as error:
            problem = f"name translator '{name}' failed on {source!r:.100}: {type(error).__name__}: {error}"
            raise TranslationError(problem) from error
        if not isinstance(translated, str):
            raise TranslationError(
                f"name translator '{name}' gave a {type(translated).__name__} for {source!r:.100}, not a text"
            )
        return translated

    return checked


def _invalid_to_underscore(name: str) -> str:
    """Replaces each character that a Java identifier does not allow at its position by an underscore."""
    if _PLAIN.fullmatch(name):
        return name
    return "".join([char if is_identifier(char, at) else "_" for at, char in enumerate(name)])


_TRANSLATORS: Mapping[str, Translator] = {
    "InvalidToUnderscore": _invalid_to_underscore,
    "UnderscoreToDash": lambda name: name.replace("_", "-"),
    "Null": lambda name: name,
}
