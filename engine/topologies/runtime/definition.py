"""Definitions of topologies: functions in Python modules, named as `module:function`."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.topologies.library.guidance import users_frame
from engine.topologies.library.topology import Topology, TopologyError
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["find", "read", "read_without_spark"]

_NO_SESSION = "'NoneType' object"
"""Part of the message of a function that uses the active session when there is none."""


def find(name: str) -> Callable[[], Topology]:
    """The function of that name, whose module is imported from the working directory or the installed packages.

    Raises:
        UsageError: the name has no colon, or there is no such module or function.
        TopologyError: the module cannot be imported.
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
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            msg = f"'{name}': there is no module {error.name}; it is looked for in {here} and the installed packages"
            raise UsageError(msg) from error
        raise TopologyError([f"'{name}': the module cannot be imported: {_where(error)}"]) from error
    except (Exception, SystemExit) as error:
        hint = "; make Columns in the function, since Spark starts after the import" if _is_of_spark(error) else ""
        raise TopologyError([f"'{name}': the module cannot be imported: {_where(error)}{hint}"]) from error
    function: Callable[[], Topology] | None = getattr(module, function_name, None)
    if not callable(function):
        functions = [each for each, value in vars(module).items() if callable(value) and not each.startswith("_")]
        msg = f"'{name}': {module_name} has no function {function_name}; it has {', '.join(functions) or 'none'}"
        raise UsageError(msg)
    return function


def read(name: str) -> Topology:
    """The topology that the function of that name returns; a Spark session is running.

    Raises:
        UsageError: as `find`.
        TopologyError: as `find`; or the function fails, or returns something else, or the topology has faults.
    """
    function = find(name)
    try:
        topology = function()
    except BridgeError:
        raise
    except (Exception, SystemExit) as error:
        raise TopologyError([f"'{name}' fails: {_where(error)}"]) from error
    if not isinstance(topology, Topology):
        what = "None" if topology is None else f"a {type(topology).__name__}"
        raise TopologyError([f"'{name}' returns {what}, not a topology: end it with `return builder.build()`"])
    return topology


def read_without_spark(name: str) -> Topology | None:
    """The topology as `read` returns it, without a Spark session; None if its function seems to need one.

    A function that makes Columns does. It is not to be called so in a process that starts a session later: the function
    may have started one of its own.

    Raises as `read`.
    """
    find(name)
    try:
        return read(name)
    except TopologyError as error:
        if _is_of_spark(error.__cause__) or _NO_SESSION in str(error):
            return None
        raise


def _is_of_spark(error: BaseException | None) -> bool:
    """True if Spark's Python library has raised the error, as it does for a Column without a session."""
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    return bool(frames) and any(f"/{library}/" in frames[-1].filename for library in ("pyspark", "py4j"))


def _where(error: BaseException) -> str:
    """The error with file, line and column of the user's code."""
    text = str(error).splitlines()[0] if str(error) else ""
    if isinstance(error, SyntaxError) and error.filename:
        place = ":".join(str(each) for each in (error.filename, error.lineno, error.offset) if each)
        return f"{place}: {type(error).__name__}: {error.msg}"
    last = users_frame(error) or traceback.extract_tb(error.__traceback__)[-1]
    place = ":".join(str(each) for each in (last.filename, last.lineno, _column(last)) if each)
    return f"{place}: {type(error).__name__}: {text}"


def _column(frame: traceback.FrameSummary) -> int | None:
    """The byte of the line, from 1, at which the expression begins; None if it is not known."""
    column = frame.colno
    return None if column is None else column + 1
