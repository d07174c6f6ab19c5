"""Runs slow work for a page, such as requests to Kafka, in a few threads and with a time limit.

If Kafka does not answer, the page takes some seconds and the server is not affected: work that takes longer goes on in
its thread until Kafka's client gives up. While all threads are taken, pages say so at once.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, TypeVar

from engine.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["READ_SECONDS", "Threads"]

READ_SECONDS = 2.5
"""Seconds that a page waits for Kafka."""
_THREADS = 4

Result = TypeVar("Result")


class Threads:
    """Pool of threads for the work of pages."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, "page")
        self._free = BoundedSemaphore(_THREADS)

    async def ask(self, servers: str, work: Callable[[], Result], seconds: float = READ_SECONDS) -> Result:
        """Runs `work`, which asks Kafka, and returns its result.

        Raises:
            UnreachableError: it takes longer than `seconds`, or all threads are taken.
        """
        busy = f"Kafka at {servers} still owes answers to other pages; is it running?"
        late = f"Kafka at {servers} did not answer within {seconds:g} s; is it running?"
        return await self.run(work, seconds, busy, late)

    async def run(self, work: Callable[[], Result], seconds: float, busy: str, late: str) -> Result:
        """Runs `work` in a thread and returns its result.

        Raises:
            UnreachableError: with `busy` if all threads are taken, with `late` if it takes longer than `seconds`.
        """
        if not self._free.acquire(blocking=False):
            raise UnreachableError(busy)
        try:
            future = asyncio.get_running_loop().run_in_executor(self._pool, self._finish, work)
        except BaseException:
            self._free.release()
            raise
        # An error after the time limit has no taker: retrieving it keeps asyncio from logging it.
        future.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        try:
            return await asyncio.wait_for(asyncio.shield(future), seconds)
        except TimeoutError as error:
            raise UnreachableError(late) from error

    def _finish(self, work: Callable[[], Result]) -> Result:
        try:
            return work()
        finally:
            self._free.release()
