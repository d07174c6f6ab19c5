"""Drafts of topologies: the nodes and faults that a builder has collected so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Literal, TypeAlias

from engine.topologies.library.nodes import Node
from engine.topologies.library.windows import Duration, milliseconds

__all__ = ["Late", "TopologyDraft"]

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

    def _rejects(self, name: str, late: str) -> bool:
        """True if late records are to fail; a fault of the node of that name for another word than those of `Late`."""
        if late not in ("drop", "dead-letter"):
            self._fault(name, f"late is {late!r}, but has to be 'drop' or 'dead-letter'")
        return late == "dead-letter"
