"""Drafts of topologies: the nodes and faults that a builder has collected so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Literal, TypeAlias, get_args

from engine.topologies.library import nodes
from engine.topologies.library.guidance import Guided
from engine.topologies.library.nodes import Expression, Node
from engine.topologies.library.windows import Duration, milliseconds

__all__ = ["Close", "GlobalTable", "Late", "TopologyDraft"]

Close: TypeAlias = Literal["stream-time", "clock"]
"""End of windows: by the times of records alone, or by the clock as well."""
Late: TypeAlias = Literal["drop", "dead-letter"]
"""Treatment of late records, which are counted anyway: dropped, or as records that fail."""


class TopologyDraft:
    """Nodes and faults of a topology that is being built."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._faults: list[str] = []

    def _named(self, name: str | None, kind: str) -> str:
        """The name of a new node: the given one, or one that numbers the nodes of its kind."""
        taken = {node.name for node in self._nodes}
        return name or next(each for each in (f"{kind}-{number}" for number in count(1)) if each not in taken)

    def _fault(self, name: str, fault: str) -> None:
        self._faults.append(f"'{name}': {fault}")

    def _duration(self, name: str, given: Duration, *, least: int = 0) -> int:
        try:
            return milliseconds(given, least=least)
        except ValueError as error:
            self._fault(name, str(error))
            return least

    def _change(self, name: str, fits: Callable[[Node], bool], fault: str, **settings: object) -> None:
        """Gives the node of that name other settings, or a fault if it does not fit."""
        at = next(at for at, node in enumerate(self._nodes) if node.name == name)
        if fits(self._nodes[at]):
            self._nodes[at] = replace(self._nodes[at], **settings)  # type: ignore[arg-type]
        else:
            self._fault(name, fault)

    def _suppress(self, name: str, until: Expression | None, close: str) -> None:
        """Has an aggregate give final results alone; a fault of the node for another one."""
        if close not in get_args(Close):
            allowed = " or ".join(f'"{each}"' for each in get_args(Close))
            self._fault(name, f"suppress(close={close!r}): windows close by {allowed}")
        fault = "suppress is for an aggregate without expire_after, right behind it; until and close are for windows"
        changes = {"only_final": True, "until": until, "follows_clock": close == "clock"}
        is_plain = until is None and close == "stream-time"
        self._change(name, lambda node: nodes.can_suppress(node, is_plain=is_plain), fault, **changes)

    def _check_stateless(self, name: str, timers: object, expire_after: object) -> None:
        """Makes faults of what is given to a process without state, and needs one."""
        for what, given in (("timers need", timers), ("expire_after needs", expire_after)):
            if given is not None:
                self._fault(name, f"{what} a state: give process() its fields, such as state='count int'")

    def _expire(self, name: str, ttl: Duration) -> None:
        """Has rows of a table expire; a fault of the node if it cannot."""
        fault = "expire_after is for a table, to_table or an aggregate without windows and history, right behind it"
        self._change(name, nodes.can_expire, fault, ttl_ms=self._duration(name, ttl, least=1))

    def _keep_history(self, name: str, history: Duration) -> None:
        """Has a table keep former values; a fault of the node if it cannot."""
        fault = "keep_history is for a table or to_table without expire_after, right behind it"
        self._change(name, nodes.can_keep_history, fault, history_ms=self._duration(name, history, least=1))

    def _join_times(
        self, name: str, within: Duration | tuple[Duration, Duration] | None, grace: Duration
    ) -> tuple[int, int, int]:
        """Milliseconds by which the other record of a join may be earlier, may be later, and may be late."""
        if within is None:
            self._fault(name, "the join of two streams needs `within`, how far apart their times may be")
            within = "1 ms"
        before, after = within if isinstance(within, tuple) else (within, within)
        return self._duration(name, before), self._duration(name, after), self._duration(name, grace)

    def _rejects(self, name: str, late: str) -> bool:
        """True if late records are to fail; a fault of the node of that name for another word than those of `Late`."""
        if late not in ("drop", "dead-letter"):
            self._fault(name, f"late is {late!r}, but has to be 'drop' or 'dead-letter'")
        return late == "dead-letter"


class GlobalTable(Guided):
    """Global table, for joins with streams by any expression; the streams need not be repartitioned."""

    def __init__(self, builder: TopologyDraft, name: str) -> None:
        self._builder = builder
        self.name = name
