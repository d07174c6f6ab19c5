"""State of a topology as it is now, asked from the bridge that runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from engine.errors import UnreachableError, UsageError
from engine.telemetry import client
from engine.telemetry.http_section import HttpConfig
from engine.topologies.library.state import NodeState, StateError, milliseconds
from engine.topologies.section import TopologiesConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.topologies.library.state import Key, Time

__all__ = ["LiveNodeState", "name_of_part"]

_SECONDS = 20.0
"""Time of a request: more than the bridge takes before it gives up."""
_PAGE = 1_000
_REFUSED = (400, 404)


class LiveNodeState(NodeState):
    """Rows of a node as they are when they are read, a page at a time, with all that is processed until then."""

    def __init__(self, config: HttpConfig, topology: str, node: str) -> None:
        """Looks the node up in the bridge.

        Args:
            config: address and login of the bridge.
            topology: name of the topology in the properties file.
            node: name of a node with state.

        Raises:
            StateError: there is no such topology or node in the bridge.
            UnreachableError: no bridge answers, or it refuses the login.
        """
        self._config = config
        self._path = f"/api/topologies/{quote(topology, safe='')}/state"
        nodes = [each["node"] for each in self._asked(self._path)["nodes"]]
        if node not in nodes:
            msg = f"no node '{node}' has state that can be asked; these have: {', '.join(nodes)}"
            raise StateError(msg)
        self._node = node

    def get(self, key: Key) -> dict[str, Any] | None:
        """The row of the key; None if there is none. Of windows ask `window` or `fetch`."""
        row = next(self.rows(key, limit=1), None)
        if row is not None and "window_start" in row:
            msg = f"'{self._node}' has a row for each window: ask window(key, start) or fetch(key)"
            raise StateError(msg)
        return row

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
            StateError: as that of `NodeState`, or a key is bytes that are not UTF-8.
            UnreachableError: the bridge gives no answer.
        """
        keys = {"key": key, "from": from_key, "to": to_key, "prefix": prefix}
        times = {"window_from": since, "window_to": until}
        given = {name: _text(each) for name, each in keys.items() if each is not None}
        given |= {name: str(milliseconds(each)) for name, each in times.items() if each is not None}
        return self._pages(given, limit)

    def _pages(self, given: dict[str, str], limit: int | None) -> Iterator[dict[str, Any]]:
        after: str | None = ""
        left = limit
        while after is not None and left != 0:
            page = {"limit": str(_PAGE if left is None else min(left, _PAGE)), "after": after, "live": "true"}
            path = f"{self._path}/{quote(self._node, safe='')}?{urlencode({**given, **page})}"
            answer = self._asked(path)
            yield from answer["rows"]
            after = answer["next"]
            left = None if left is None else left - len(answer["rows"])

    def _asked(self, path: str) -> dict[str, Any]:
        status, text = client.ask(self._config, path, _SECONDS)
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        where = client.base_url(self._config)
        if not isinstance(answer, dict):
            msg = f"{where} answers {status} and no JSON; is it the bridge of this configuration?"
            raise UnreachableError(msg)
        if status in _REFUSED:
            raise StateError(str(answer.get("error")))
        if "error" in answer:
            msg = f"{where}: {answer['error']}"
            raise UnreachableError(msg)
        if answer.get("live") is False:
            msg = f"{where} runs the topology on a Spark cluster, where only its last commit can be asked: without live"
            raise StateError(msg)
        return answer


def name_of_part(topologies: TopologiesConfig, build: str) -> str:
    """The name, in the properties file, of the topology that a function builds.

    Raises:
        UsageError: none or several of the topologies are built by this function.
    """
    names = [topology.name for topology in topologies if topology.build == build]
    if len(names) != 1:
        found = f"has several: {', '.join(names)}" if names else "has none"
        msg = f"live state is asked from a bridge with topologies.NAME.build={build}; the configuration {found}"
        raise UsageError(msg)
    return names[0]


def _text(key: Key) -> str:
    if isinstance(key, bytes):
        try:
            return key.decode()
        except UnicodeDecodeError as error:
            msg = f"live state is asked by text: the key {key!r} is not UTF-8"
            raise StateError(msg) from error
    return key if isinstance(key, str) else json.dumps(key)
