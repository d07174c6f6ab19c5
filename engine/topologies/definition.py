"""Definitions of topologies: functions in Python modules, named as `module:function`."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.streams.guidance import users_frame
from engine.streams.topology import Topology
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["find", "read"]


def find(name: str) -> Callable[[], Topology]:
    """The function of that name, whose module is imported from the working directory or the installed packages.

    Raises:
        UsageError: the name has no colon, there is no such module or function, or the module cannot be imported.
    """
    module_name, colon, function_name = name.partition(":")
    if not colon or not module_name or not function_name:
        msg = f"'{name}' names no function: write module:function, such as examples.word_count:build"
        raise UsageError(msg)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        msg = f"'{name}': there is no module {error.name}; modules are looked for in {here} and the installed packages"
        raise UsageError(msg) from error
    except Exception as error:
        msg = f"'{name}': the module cannot be imported: {_where(error)}"
        raise UsageError(msg) from error
    function: Callable[[], Topology] | None = getattr(module, function_name, None)
    if not callable(function):
        functions = [each for each, value in vars(module).items() if callable(value) and not each.startswith("_")]
        msg = f"'{name}': {module_name} has no function {function_name}; it has {', '.join(functions) or 'none'}"
        raise UsageError(msg)
    return function


def read(name: str) -> Topology:
    """The topology that the function of that name returns; a Spark session is running.

    Raises:
        UsageError: as `find`; or the function fails, or returns something else.
        TopologyError: the topology has faults.
    """
    function = find(name)
    try:
        topology = function()
    except BridgeError:
        raise
    except Exception as error:
        msg = f"'{name}' fails: {_where(error)}"
        raise UsageError(msg) from error
    if not isinstance(topology, Topology):
        what = "None" if topology is None else f"a {type(topology).__name__}"
        msg = f"'{name}' returns {what}, not a topology: end it with `return builder.build()`"
        raise UsageError(msg)
    return topology


def _where(error: Exception) -> str:
    """The error with file and line of the user's code."""
    last = users_frame(error) or traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename}:{last.lineno}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
