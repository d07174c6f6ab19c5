"""State of a node that can be asked: rows by key, by ranges of keys, and by the windows that begin in a time."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from engine.topologies.library.nodes import SHOWN, Aggregate
from engine.topologies.library.program import JVM_ERRORS
from engine.topologies.library.serdes import KeyKind
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from engine.topologies.library.program import Program

__all__ = ["NodeState", "StateError", "milliseconds"]

Key: TypeAlias = "str | bytes | int | Mapping[str, Any]"
Time: TypeAlias = "datetime | int"
"""A datetime, of UTC if it names no zone, or milliseconds since 1970."""

_PAGE = 1_000
_PAGE_BYTES = 1 << 20
_PLACE = re.compile(r"([01]):([0-9]{1,4}\.(?:[0-9a-f]{2})*)")
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


class StateError(BridgeError, ValueError):
    """The state of a node cannot be asked, or not in this way."""

    exit_code = 64


class NodeState:
    """Rows of a node with state: of a table, or of an aggregate with its windows.

    A row is a dict of its fields, with its key in `key`. Rows come partition by partition, those with short keys first,
    keys of one length in the order of their bytes, and windows of a key by their starts. They are read as they are
    taken. A key may be given as text, as bytes, or as a number, one with fields as a
    mapping or its JSON.
    """

    def __init__(self, program: Program, node: str, ask: Callable[..., Any]) -> None:
        """Looks the node up.

        `ask` gives the `jmsbridge.streams.StateRows` for the arguments of a `StateRange`, from `place` on.

        Raises:
            StateError: the node has no state that can be shown, or there is none of that name.
        """
        shown = {each.name: each for each in program.topology.nodes if isinstance(each, SHOWN)}
        if node not in shown:
            msg = f"no node '{node}' has state that can be asked; these have: {', '.join(shown) or 'none'}"
            raise StateError(msg)
        shown_node = shown[node]
        self._name = node
        self._program = program
        self._kind = next((each for each in KeyKind if each.upper() == program.key_kind(node)), None)
        self._has_windows = isinstance(shown_node, Aggregate) and shown_node.windows is not None
        self._ask = ask

    def get(self, key: Key) -> dict[str, Any] | None:
        """The row of the key; None if there is none. Of windows ask `window` or `fetch`."""
        if self._has_windows:
            msg = f"'{self._name}' has a row for each window: ask window(key, start) or fetch(key)"
            raise StateError(msg)
        return next(self.rows(key), None)

    def range(self, from_key: Key | None, to_key: Key | None, *, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """The rows of the keys from one to another, both included; None: no limit on that side."""
        return self.rows(from_key=from_key, to_key=to_key, limit=limit)

    def prefix(self, prefix: str | bytes, *, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """The rows of the keys that begin with a text."""
        return self.rows(prefix=prefix, limit=limit)

    def all(self, *, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """All rows."""
        return self.rows(limit=limit)

    def window(self, key: Key, start: Time) -> dict[str, Any] | None:
        """The row of the window of the key that begins at a time; None if there is none."""
        return next(self.rows(key, since=start, until=start), None)

    def fetch(
        self, key: Key, since: Time | None = None, until: Time | None = None, *, limit: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """The windows of the key that begin from one time to another, both included."""
        return self.rows(key, since=since, until=until, limit=limit)

    def fetch_all(
        self, since: Time | None = None, until: Time | None = None, *, limit: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """The windows of all keys that begin from one time to another, both included."""
        return self.rows(since=since, until=until, limit=limit)

    def rows(
        self,
        key: Key | None = None,
        *,
        from_key: Key | None = None,
        to_key: Key | None = None,
        prefix: str | bytes | None = None,
        since: Time | None = None,
        until: Time | None = None,
        limit: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """The rows that fit all that is given, `limit` of them at most.

        Raises:
            StateError: the node has no windows and times are given, or a key is given that cannot be one of its keys.
        """
        ranges = self._ranges_of(key, from_key, to_key, prefix, since, until)
        return self._read(ranges, limit)

    def page(
        self,
        key: Key | None = None,
        *,
        from_key: Key | None = None,
        to_key: Key | None = None,
        prefix: str | bytes | None = None,
        since: Time | None = None,
        until: Time | None = None,
        limit: int = _PAGE,
        after: str = "",
        most_bytes: int = _PAGE_BYTES,
    ) -> tuple[list[dict[str, Any]], str]:
        """Some of the rows that `rows` gives, and the place at which the next ones begin: empty if there are none.

        `after` is the place of these rows, which an earlier call for the same rows has given, or empty. No row is added
        to `limit` rows, nor to rows that have `most_bytes` bytes as JSON.

        Raises:
            StateError: as `rows`, or `after` is not such a place.
        """
        ranges = self._ranges_of(key, from_key, to_key, prefix, since, until)
        number, place = _place(after)
        lines: list[bytes] = []
        length = 0
        for index in range(number, len(ranges)):
            rows = self._ask(*ranges[index], place=place)
            read = bytes(rows.take(limit - len(lines), most_bytes - length))
            length += len(read)
            lines += read.splitlines()
            if place := rows.place():
                return [json.loads(line) for line in lines], f"{index}:{place}"
            if index + 1 < len(ranges) and (len(lines) == limit or length >= most_bytes):
                return [json.loads(line) for line in lines], f"{index + 1}:0."
        return [json.loads(line) for line in lines], ""

    def _ranges_of(
        self,
        key: Key | None,
        from_key: Key | None,
        to_key: Key | None,
        prefix: str | bytes | None,
        since: Time | None,
        until: Time | None,
    ) -> list[tuple[Any, ...]]:
        """The arguments of each `StateRange` to read; raises as `rows`."""
        if key is not None and not (from_key is None and to_key is None and prefix is None):
            msg = "one key does not go with a range or a prefix of keys: leave out one or the others"
            raise StateError(msg)
        if not self._has_windows and not (since is None and until is None):
            msg = f"'{self._name}' has no windows: ask without times"
            raise StateError(msg)
        if self._kind is None and not (from_key is None and to_key is None and prefix is None):
            msg = f"the keys of '{self._name}' have no order: ask for one key, or for all"
            raise StateError(msg)
        if prefix is not None and self._kind is KeyKind.LONG:
            msg = f"the keys of '{self._name}' are numbers: ask for a range of them in place of a prefix"
            raise StateError(msg)
        start = None if prefix is None else self._bytes(prefix)
        times = milliseconds(since, _LEAST), milliseconds(until, _MOST)
        first, last = (key, key) if key is not None else (from_key, to_key)
        return [(low, high, start, *times) for low, high in self._ranges(first, last)]

    def _ranges(self, first: Key | None, last: Key | None) -> list[tuple[bytes | None, bytes | None]]:
        """The keys from one to another as ranges in the order of bytes, in which negative numbers are the last."""
        low, high = (None if each is None else self._bytes(each) for each in (first, last))
        if self._kind is not KeyKind.LONG or (low is None and high is None):
            return [(low, high)]
        low, high = low or _long(_LEAST), high or _long(_MOST)
        if low[0] >> 7 == high[0] >> 7:
            return [(low, high)]
        return [(low, _long(-1)), (_long(0), high)] if low > high else []

    def _bytes(self, key: Key) -> bytes:
        if isinstance(key, bytes):
            return key
        if self._kind is None:
            return self._typed(key)
        if self._kind is not KeyKind.LONG:
            return str(key).encode()
        try:
            return _long(int(str(key)))
        except (ValueError, OverflowError) as error:
            msg = f"the keys of '{self._name}' are whole numbers of 64 bits, not {key!r}"
            raise StateError(msg) from error

    def _typed(self, key: Key) -> bytes:
        text = key if isinstance(key, str) else json.dumps(key)
        try:
            return bytes(self._program.planner.keyBytes(self._name, text.encode()))
        except JVM_ERRORS as error:
            msg = f"the keys of '{self._name}' are {self._program.key_kind(self._name)}, not {text} as JSON"
            raise StateError(msg) from error

    def _read(self, ranges: list[tuple[Any, ...]], limit: int | None) -> Iterator[dict[str, Any]]:
        """The rows of one range after the other, some at a time."""
        left = _MOST if limit is None else limit
        for bounds in ranges:
            rows = self._ask(*bounds, place="")
            while left > 0 and (page := bytes(rows.take(min(left, _PAGE), _PAGE_BYTES)).splitlines()):
                left -= len(page)
                yield from map(json.loads, page)


def _place(text: str) -> tuple[int, str]:
    """The number of the range and the place in it, of the place that `NodeState.page` gives."""
    if not text:
        return 0, ""
    if not (match := _PLACE.fullmatch(text)):
        msg = f"{text[:100]!r} is not the place of a page: take `next` of the page before it"
        raise StateError(msg)
    return int(match[1]), match[2]


def _long(number: int) -> bytes:
    return number.to_bytes(8, "big", signed=True)


def milliseconds(time: Time | None, default: int = 0) -> int:
    """The milliseconds since 1970 of a time; `default` for None. StateError for a number of more than 64 bits."""
    if isinstance(time, datetime):
        return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1_000)
    number = default if time is None else time
    if not _LEAST <= number <= _MOST:
        msg = f"{time} is not a time: milliseconds since 1970 are a number of 64 bits"
        raise StateError(msg)
    return number
