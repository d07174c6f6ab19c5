"""States of a dead letter; light, since the command line imports it for its options."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["LetterState"]


class LetterState(StrEnum):
    """States of a dead letter: open, or settled by the last entry that the audit has for it."""

    OPEN = "open"
    """Neither replayed nor discarded nor put into quarantine."""
    REPLAYED = "replayed"
    DISCARDED = "discarded"
    QUARANTINED = "quarantined"
