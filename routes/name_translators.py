"""Custom name translators: functions of Python modules, or entry points of Python packages."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from routes.transformers import NAME_TRANSLATORS

__all__ = ["GROUP", "custom_translator"]

GROUP = "jms_bridge.name_translators"
"""Group of the entry points by which Python packages offer translators."""


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
        for found in entry_points(group=GROUP, name=name):
            return found.load()  # type: ignore[no-any-return] # the caller checks that it is a function
        module, _, function = name.partition(":")
        return getattr(import_module(module), function)  # type: ignore[no-any-return]
    finally:
        if added:
            sys.path.remove(here)
