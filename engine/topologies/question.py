"""Question to the state of a topology that runs, and its answer, as they go between the status page and its process."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["StateAnswer", "StateQuestion"]


@dataclass(frozen=True, slots=True)
class StateQuestion:
    """Question for rows of a node; a field that is None does not restrict them."""

    node: str
    key: str | None = None
    prefix: str | None = None
    since_ms: int | None = None
    """Least beginning of a window, in milliseconds since 1970."""
    until_ms: int | None = None
    """Greatest beginning of a window, in milliseconds since 1970."""
    limit: int = 50

    @property
    def fields(self) -> dict[str, Any]:
        """The question as fields of JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class StateAnswer:
    """Rows of a node as its last commit left them."""

    rows: tuple[Mapping[str, Any], ...] = ()
    has_more: bool = False
    """True if there are rows beyond the limit of the question or of an answer's size."""
    fault: str = ""
    """Reason for which there is no answer; empty if there is one."""

    @property
    def fields(self) -> dict[str, Any]:
        """The answer as fields of JSON."""
        return asdict(self)
