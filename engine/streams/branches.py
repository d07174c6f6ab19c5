"""Branches of a stream, one after the other, of which each record takes the first whose condition accepts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.streams import nodes

if TYPE_CHECKING:
    from engine.streams.dsl import Stream, StreamsBuilder
    from engine.streams.nodes import Expression

__all__ = ["Branches"]


class Branches:
    """A split that is being built; `default_branch` and `no_default_branch` return its streams in order."""

    def __init__(self, builder: StreamsBuilder, split: str, stream: Stream) -> None:
        self._builder = builder
        self._split = split
        self._stream = stream
        self._streams: list[Stream] = []

    def branch(self, condition: Expression, *, name: str) -> Branches:
        """Adds a branch for records that no earlier branch took, if the condition is true."""
        return self._branch(
            nodes.Branch(name, (self._split,), condition=self._builder._read("condition", condition, name))
        )

    def default_branch(self, name: str) -> tuple[Stream, ...]:
        """Ends the split; returns its streams, the last of them with the records that no branch took."""
        return tuple(self._branch(nodes.Branch(name, (self._split,), condition=None))._streams)

    def no_default_branch(self) -> tuple[Stream, ...]:
        """Ends the split; returns its streams. Records that no branch took end at the split."""
        return tuple(self._streams)

    def _branch(self, branch: nodes.Branch) -> Branches:
        self._streams.append(self._stream._then(branch))
        return self
