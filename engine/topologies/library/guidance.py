"""Answers to calls that users of Kafka Streams and of Spark try on a stream or a table: the name that it has here."""

from __future__ import annotations

import re
import sysconfig
import traceback
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from pyspark.sql import Column

__all__ = ["Guided", "check_aggregates", "header_faults", "refuse_functions", "users_frame"]

_NAMES: Mapping[str, str] = {
    "agg": "aggregate",
    "allowed_lateness": "windowed_by with a grace",
    "branch": "split",
    "distinct": "deduplicate",
    "drop_duplicates": "deduplicate",
    "explode": "flat_map",
    "flat_map_values": "flat_map",
    "for_each": "peek",
    "foreach": "peek",
    "globaltable": "global_table",
    "map": "map_values or select_key",
    "map_partitions": "process",
    "print": "peek",
    "process_values": "process",
    "select": "map_values",
    "through": "repartition, or to(topic)",
    "transform": "process",
    "transform_values": "process",
    "union": "merge",
    "union_all": "merge",
    "where": "filter",
    "window": "windowed_by",
    "set_header": "with_headers",
    "set_headers": "with_headers",
    "with_column": "map_values",
    "with_column_renamed": "map_values",
    "write_stream": "to",
}
"""Names in Kafka Streams and Spark, in small letters, by the names here."""
_HEADERS = """with_headers({"kind": "'order'", "trace": None})"""
_NO_TIME = "jmsbridge.no-time"
"""Header by which internal topics tell records without a time, see `jmsbridge.streams.TaskContext`."""
_GROUPINGS = ("group_by", "groupby")
_OTHERS = ("site-packages", "importlib", "<string>", sysconfig.get_path("stdlib"), str(Path(__file__).parents[1]))
"""Parts of the names of files that are not the user's."""
_FIGURES = ("avg", "max", "mean", "min", "sum")
_WAYS: Mapping[tuple[str, str], str] = {
    ("Stream", "Grouped"): "group the records first, with group_by_key() or group_by(key)",
    ("Stream", "Table"): "make it a table first, with to_table()",
    ("Grouped", "Table"): "aggregate the records first, with count() or aggregate(…)",
    ("Grouped", "Stream"): "aggregate the records first, with count() or aggregate(…)",
    ("Table", "Stream"): "make it a stream first, with to_stream()",
    ("Table", "Grouped"): "group the rows first, with group_by(key)",
    ("GroupedTable", "Table"): "aggregate the rows first, with count() or aggregate(…)",
    ("StreamsBuilder", "Stream"): "read a topic first, with stream(topic)",
}
"""Call that leads from one class to one that has the name."""


class Guided:
    """Base of classes whose users may know other tools: an unknown name gives an error that says the right one."""

    def __getattr__(self, name: str) -> NoReturn:
        """Raises AttributeError with the name that is meant, as far as it can be told."""
        kind = type(self).__name__
        text = f"{kind} has no '{name}'"
        if not name.startswith("_") and (hint := _hint(type(self), name)):
            text += f": {hint}"
        raise AttributeError(text, name=name, obj=self)


def refuse_functions(method: str, given: object) -> None:
    """Raises TypeError if a method that takes named aggregates or fields is given something else as its first argument.

    `given` is the name of the node, as text, or None.
    """
    if given is not None and not isinstance(given, str):
        given_kind = "a function" if callable(given) else f"{type(given).__name__}"
        like = 'total="amount * 2"' if method == "map_values" else 'total="sum(amount)"'
        msg = f"{method} takes results by their names, not {given_kind}: {method}({like})"
        raise TypeError(msg)


def check_aggregates(method: str, columns: Mapping[str, object], name: object) -> None:
    """Raises TypeError for a function in the place of aggregates, and for `name="…"`, which would be a field.

    `name` is the name of the node, which is given before `columns`; None: there is none.
    """
    refuse_functions(method, name)
    given = columns.get("name")
    if name is None and isinstance(given, str) and re.fullmatch(r"[\w.-]+", given):
        msg = f'{method} takes the name of its node first: {method}("{given}", …); name= would be a field of the result'
        raise TypeError(msg)
    for field, column in columns.items():
        if not isinstance(column, str | Column):
            msg = f'{method} takes text of Spark SQL or Columns, not {type(column).__name__}: {field}="sum(amount)"'
            raise TypeError(msg)


def header_faults(headers: object) -> Iterator[str]:
    """Faults of what `with_headers` is given that can be told without a session."""
    if not isinstance(headers, Mapping):
        yield f"with_headers takes a mapping from names to values, not {type(headers).__name__}: {_HEADERS}"
        return
    if not headers:
        yield f"it changes no header: name those that are set or removed, such as {_HEADERS}"
    for name in headers:
        if not isinstance(name, str) or not name or name == _NO_TIME:
            yield f"{name!r} is not a name that a header can be given: write a text other than '' and '{_NO_TIME}'"


def users_frame(error: BaseException) -> traceback.FrameSummary | None:
    """The innermost line of the user's code on the way to an error; None if there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    users_frames = [each for each in frames if not any(part in each.filename for part in _OTHERS)]
    return users_frames[-1] if users_frames else None


def _hint(kind: type, name: str) -> str:
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    if plain == f"to_{kind.__name__.lower()}":
        return "it is one already"
    if plain in _GROUPINGS and hasattr(kind, "group_by"):
        return "write group_by" + (" or group_by_key" if hasattr(kind, "group_by_key") else "")
    if (known := _NAMES.get(plain)) and hasattr(kind, re.match(r"\w*", known)[0]):  # type: ignore[index]
        return f"write {known}"
    if hasattr(kind, plain):
        return f"write {plain}"
    if plain in _FIGURES and hasattr(kind, "aggregate"):
        return f'write aggregate(result="{plain}(field)")'
    wanted = re.match(r"\w*", _NAMES.get(plain, plain))[0]  # type: ignore[index]
    for other_kind in Guided.__subclasses__():
        if hasattr(other_kind, wanted) and (way := _WAYS.get((kind.__name__, other_kind.__name__))):
            return way
    public = [name for name in dir(kind) if not name.startswith("_")]
    near = get_close_matches(plain, public, n=1)
    return f"did you mean {near[0]}?" if near else f"it has {', '.join(public)}"
