"""A clock that stands still until a test moves it."""

from __future__ import annotations

__all__ = ["Clock"]


class Clock:
    """Seconds as a test wants them."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
