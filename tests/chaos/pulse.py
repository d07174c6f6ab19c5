"""Counts what is in each output twice a second, to tell when messages flow again."""

from __future__ import annotations

import time
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

import nats.errors
from confluent_kafka import KafkaException

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.chaos.outputs import Output

__all__ = ["Pulse"]

_PERIOD_SECONDS = 0.5
_ARRIVING_SECONDS = 0.2
"""For so long what was on its way before a fault may still arrive."""


class Pulse:
    """The counts of all outputs over time, from `start` to `stop`."""

    def __init__(self, outputs: Mapping[str, Output]) -> None:
        self._outputs = outputs
        self._samples: dict[str, list[tuple[float, int]]] = {name: [] for name in outputs}
        self._stop = Event()
        self._threads = [Thread(target=self._run, args=(name,), daemon=True) for name in outputs]
        self._failure: BaseException | None = None

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._failure:
            raise self._failure

    def recovered(self, witness: str, at: float, done: float) -> float | None:
        """Seconds from a fault to something new in an output, counted from when it was `done`; None: nothing yet.

        Both are moments of `time.monotonic`.
        """
        after = [sample for sample in self._samples[witness] if sample[0] > done + _ARRIVING_SECONDS]
        return next((seen - at for seen, count in after if count > after[0][1]), None)

    def still_seconds(self) -> float:
        """For how long nothing new has arrived anywhere."""
        return min(self._still(samples) for samples in self._samples.values())

    @staticmethod
    def _still(samples: list[tuple[float, int]]) -> float:
        if not samples:
            return 0.0
        first = next((at for at, count in samples if count == samples[-1][1]), 0.0)
        return time.monotonic() - first

    def _run(self, name: str) -> None:
        # Each output has a thread: one whose broker is away keeps nobody else waiting.
        try:
            while not self._stop.wait(_PERIOD_SECONDS):
                began = time.monotonic()
                # What nobody has sent to yet is not there, or has no number.
                with suppress(OSError, KafkaException, nats.errors.Error, KeyError, ValueError):
                    self._samples[name].append((began, self._outputs[name].count()))
        except BaseException as error:
            self._failure = error
