"""Branches of a stream, one after the other, of which each record takes the first whose condition accepts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = ["Branches"]

S = TypeVar("S")
C = TypeVar("C")


class Branches(Generic[S, C]):
    """A split that is being built; `default_branch` and `no_default_branch` return its streams in order."""

    def __init__(self, add: Callable[[str, C | None], S]) -> None:
        """Creates a split without branches; `add` adds a branch by name and condition, and gives its stream."""
        self._add = add
        self._streams: list[S] = []

    def branch(self, condition: C, *, name: str) -> Branches[S, C]:
        """Adds a branch for records that no earlier branch took, if the condition is true."""
        self._streams.append(self._add(name, condition))
        return self

    def default_branch(self, name: str) -> tuple[S, ...]:
        """Ends the split; returns its streams, the last of them with the records that no branch took."""
        self._streams.append(self._add(name, None))
        return tuple(self._streams)

    def no_default_branch(self) -> tuple[S, ...]:
        """Ends the split; returns its streams. Records that no branch took end at the split."""
        return tuple(self._streams)
