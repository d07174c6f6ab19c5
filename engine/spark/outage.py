"""Duration of a Kafka outage, its limit, and the pauses between attempts."""

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
    """Time since Kafka was last usable, and number of attempts since then."""

    def __init__(self, config: Config, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._clock = clock
        self._useful = clock()
        self._attempts = 0

    def over(self) -> None:
        """Ends the outage: Kafka is usable now."""
        self._useful, self._attempts = self._clock(), 0

    def goes_on(self, error: Exception) -> float:
        """Counts a failed attempt; returns the seconds to wait before the next one. Raises as `check`."""
        self.check(error)
        self._attempts += 1
        return _BACK_OFF_SECONDS[min(self._attempts, len(_BACK_OFF_SECONDS)) - 1]

    def check(self, error: Exception | None) -> None:
        """Raises UnreachableError if the outage exceeds `router.outage-timeout`; `error` is the latest from Kafka."""
        seconds = self._config.router.outage_timeout_seconds
        if self._clock() - self._useful <= seconds:
            return
        msg = (
            f"Kafka at {self._config.bootstrap_servers} has not been usable for {seconds:g} seconds "
            f"(router.outage-timeout): {error}. Start the bridge again when Kafka is back: nothing is lost"
        )
        raise UnreachableError(msg) from error
