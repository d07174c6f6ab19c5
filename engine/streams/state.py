"""State of a node that can be asked: rows by key, or all of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NodeState"]

_MOST = 1_000


class NodeState:
    """Rows of a node with state: of a table, or of an aggregate with its windows."""

    def __init__(self, look: Callable[[bytes | None, int], bytes]) -> None:
        """`look` gives the rows of a key, or of all keys, up to a number of them, as lines of JSON."""
        self._look = look

    def get(self, key: str | bytes) -> dict[str, Any] | None:
        """The fields under the key; None if there is none. Of a windowed aggregate, those of the first window."""
        found = self.rows(key, limit=1)
        return found[0] if found else None

    def rows(self, key: str | bytes | None = None, *, limit: int = _MOST) -> list[dict[str, Any]]:
        """Rows of a key, one for each window, or of all keys in the order of their bytes; each with its `key`."""
        text = self._look(key.encode() if isinstance(key, str) else key, limit)
        return [json.loads(line) for line in text.splitlines()]
