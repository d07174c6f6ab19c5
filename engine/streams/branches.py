"""Branches of a stream, one after the other, of which each record takes the first whose condition accepts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from engine.streams.nodes import Branch

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.streams.nodes import Expression

__all__ = ["Branches"]

S = TypeVar("S")


class Branches(Generic[S]):
    """A split that is being built; `default_branch` and `no_default_branch` return its streams in order."""

    def __init__(self, split: str, read: Callable[[str, Expression], Expression], add: Callable[[Branch], S]) -> None:
        """Creates a split without branches.

        Args:
            split: name of its node.
            read: gives the condition of the branch of a name, for what the user gave.
            add: adds the node of a branch, and gives its stream.
        """
        self._split = split
        self._read = read
        self._add = add
        self._streams: list[S] = []

    def branch(self, condition: Expression, *, name: str) -> Branches[S]:
        """Adds a branch for records that no earlier branch took, if the condition is true."""
        self._streams.append(self._add(Branch(name, (self._split,), condition=self._read(name, condition))))
        return self

    def default_branch(self, name: str) -> tuple[S, ...]:
        """Ends the split; returns its streams, the last of them with the records that no branch took."""
        self._streams.append(self._add(Branch(name, (self._split,), condition=None)))
        return tuple(self._streams)

    def no_default_branch(self) -> tuple[S, ...]:
        """Ends the split; returns its streams. Records that no branch took end at the split."""
        return tuple(self._streams)
