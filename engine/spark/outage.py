"""How long Kafka has been of no use, and when that has been too long."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from engine.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from routes.model import Config

__all__ = ["Outage"]

_BACK_OFF_SECONDS = (1.0, 2.0, 5.0, 10.0)


class Outage:
    """When Kafka was last of use, and how often it was tried since."""

    def __init__(self, config: Config, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._clock = clock
        self._useful = clock()
        self._attempts = 0

    def over(self) -> None:
        """Kafka is of use now."""
        self._useful, self._attempts = self._clock(), 0

    def goes_on(self, error: Exception) -> float:
        """Counts one more failure; gives the seconds to wait before the next attempt."""
        self.check(error)
        self._attempts += 1
        return _BACK_OFF_SECONDS[min(self._attempts, len(_BACK_OFF_SECONDS)) - 1]

    def check(self, error: Exception | None) -> None:
        """UnreachableError when it has lasted for `router.outage-timeout`; `error` is what was heard last."""
        seconds = self._config.router.outage_timeout_seconds
        if self._clock() - self._useful <= seconds:
            return
        msg = (
            f"Kafka at {self._config.bootstrap_servers} has not been usable for {seconds:g} seconds "
            f"(router.outage-timeout): {error}. Start the bridge again when Kafka is back: nothing is lost"
        )
        raise UnreachableError(msg) from error
