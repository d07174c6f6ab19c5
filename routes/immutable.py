"""A decorator for small immutable values, of which every message takes several.

Such a class is a dataclass that a type checker takes for a frozen one. No check is made when the program runs: a frozen
dataclass goes through `object.__setattr__` for each field, and takes three to five times as long to make.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

__all__ = ["immutable"]

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def immutable(cls: type[T]) -> type[T]:
    """Makes the class a dataclass with slots, equality and a hash, whose fields are not assigned after it is made."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
