"""Attempts of one run of a topology: which errors another attempt may cure, and the pauses between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from engine.delivery.back_off import BackOff
from engine.kafka.errors import UnusableTopicError
from engine.kafka.retry import Outage
from engine.spark.failures import RecordRefusedError
from engine.spark.hadoop_path import StorageUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Attempts"]

_MOST_REFUSED = 1000
"""Most records that a run remembers as refused by Kafka."""

_log = structlog.get_logger(__name__)


class Attempts:
    """Attempts of one run: which errors another attempt may cure, and the pauses between them."""

    def __init__(self, outage: Outage, name: str, degraded: Callable[[str], None] | None) -> None:
        """Creates it before the first attempt; `degraded` is that of `run_topology`."""
        self._name = name
        self._degraded = degraded
        self._outage = outage
        self._lacking = BackOff()
        self._lacks = 0
        self.has_begun = False
        """True once a query was about to start."""
        self.refused: list[str] = []
        """The records that Kafka has refused, see `RecordRefusedError.refusal`."""

    def begun(self) -> None:
        """Takes note that Kafka has all that the topology needs."""
        self._outage.over()
        self._lacks, self.has_begun = 0, True

    def again(self, reason: str) -> None:
        """Reports why the query starts again at once."""
        _log.info("query starts again", topology=self._name, reason=reason)
        if self._degraded is not None:
            self._degraded(reason)

    def pause(self, error: Exception) -> float:
        """The seconds to wait before the next attempt; raises the error if that is useless or nobody waits for it."""
        if isinstance(error, RecordRefusedError):
            self.refused[:] = [*self.refused, error.refusal][-_MOST_REFUSED:]
            _log.warning("query starts again without a record", topology=self._name, reason=str(error))
            return 0.0
        if isinstance(error, UnusableTopicError):
            self._lacks += 1
            # Kafka may have missed for a moment only what it had at the start.
            is_final = self._degraded is None and (self._lacks > 1 or not self.has_begun)
        else:
            is_final = isinstance(error, StorageUnavailableError) and self._outage.is_too_long
            is_final = is_final or not (self.has_begun or self._degraded)
        if is_final:
            raise error
        seconds = self._seconds(error)
        _log.warning("query starts again", topology=self._name, reason=str(error), after_seconds=round(seconds, 1))
        return seconds

    def _seconds(self, error: Exception) -> float:
        """The pause after an error, which is reported; UnreachableError after `router.outage-timeout`."""
        if isinstance(error, UnusableTopicError):
            # Kafka is usable: it has answered.
            self._outage.over()
            seconds, what = self._lacking.next(), "waiting for a topic"
        else:
            seconds, what = self._outage.goes_on(error), "trying again"
        if self._degraded is not None:
            self._degraded(f"{what}: {error}")
        return seconds
