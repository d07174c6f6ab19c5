"""Question to the state of a topology that runs, and its answer, as they go between the status page and its process."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["StateAnswer", "StateFault", "StateQuestion"]


class StateFault(StrEnum):
    """Kinds of reasons for which a question has no answer."""

    NONE = ""
    QUESTION = "question"
    """The question does not fit the node: another one may have an answer."""
    AWAY = "away"
    """The state cannot be read now: the same question may have an answer later."""


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
    from_key: str | None = None
    to_key: str | None = None
    after: str = ""
    """Place of the first row, `StateAnswer.next` of the page before; empty for the first page."""
    live: bool = True
    """True for the state with all that is processed, False for that of the last commit."""

    @property
    def fields(self) -> dict[str, Any]:
        """The question as fields of JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class StateAnswer:
    """Rows of a node, and how far the state is that they are from."""

    rows: tuple[Mapping[str, Any], ...] = ()
    next: str = ""
    """Place of the rows beyond the limit of the question or of an answer's size; empty if there are none."""
    live: bool = False
    """True for the state with all that is processed, False for that of the last commit."""
    positions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Offset of the next record that may be missing in the state, by topic and partition."""
    fault: str = ""
    """Reason for which there is no answer; empty if there is one."""
    kind: StateFault = StateFault.NONE
    """Kind of the reason."""

    @property
    def fields(self) -> dict[str, Any]:
        """The answer as fields of JSON."""
        return asdict(self)
