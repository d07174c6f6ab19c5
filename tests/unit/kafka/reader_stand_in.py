"""A stand-in for the reader of a topic."""

from __future__ import annotations

from typing import Self

__all__ = ["ReaderStandIn"]


class ReaderStandIn:
    """Reader of a topic that asks no Kafka; a subclass has the methods with its records."""

    def __init__(self, *_: object) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...
