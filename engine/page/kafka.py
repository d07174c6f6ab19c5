"""Asks Kafka on behalf of a page, and does what takes long: in a few threads beside, while a person waits.

A Kafka that does not answer costs the page some seconds, the server nothing: what takes longer goes on in its thread
until Kafka's client gives up, and while all threads are taken, pages say so at once.
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
"""How long a page waits for Kafka."""
_THREADS = 4

Result = TypeVar("Result")


class Threads:
    """The threads of one server."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, "page")
        self._free = BoundedSemaphore(_THREADS)

    async def ask(self, servers: str, work: Callable[[], Result], seconds: float = READ_SECONDS) -> Result:
        """What `work` finds out from Kafka.

        Raises:
            UnreachableError: it takes longer, or too many wait already.
        """
        busy = f"Kafka at {servers} still owes answers to other pages; is it running?"
        late = f"Kafka at {servers} did not answer within {seconds:g} s; is it running?"
        return await self.run(work, seconds, busy, late)

    async def run(self, work: Callable[[], Result], seconds: float, busy: str, late: str) -> Result:
        """What `work` returns.

        Raises:
            UnreachableError: with `busy` where all threads are at work, with `late` where it takes longer.
        """
        if not self._free.acquire(blocking=False):
            raise UnreachableError(busy)
        try:
            future = asyncio.get_running_loop().run_in_executor(self._pool, self._finish, work)
        except BaseException:
            self._free.release()
            raise
        # Whatever comes after the time is over is nobody's any more.
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
