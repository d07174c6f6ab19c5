"""Searches of pages and of the API: a few at once, each in a thread of its own, ended when its reader goes away."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore, Event
from typing import TYPE_CHECKING

import structlog
from starlette.responses import StreamingResponse

from engine.errors import UnreachableError
from engine.find.search import FindProgress, FoundRecord, find
from engine.page.render import HEADERS
from engine.printable import json_text
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from starlette.types import Receive, Scope, Send

    from engine.find.question import FindQuestion
    from routes.model import Config

__all__ = ["LINES", "SearchResponse", "Searches", "progress_json"]

LINES = "application/x-ndjson"
"""Media type of JSON lines."""
_SEARCHES = 2
_UNBUFFERED = {"X-Accel-Buffering": "no"}
"""Header by which a proxy such as nginx passes each line on at once."""
_log = structlog.get_logger(__name__)


class Searches:
    """The searches that run at one time. Safe from any thread."""

    def __init__(self) -> None:
        self._free = BoundedSemaphore(_SEARCHES)

    def begin(
        self, config: Config, question: FindQuestion, record: Callable[[FoundRecord], dict[str, object]]
    ) -> SearchResponse:
        """Makes the response of a search: a line of JSON for each record, by `record`, and for each progress.

        Raises:
            UnreachableError: as many searches as may run at once do.
        """
        if not self._free.acquire(blocking=False):
            msg = f"{_SEARCHES} searches are running, which is as many as may; try again when one has ended"
            raise UnreachableError(msg)
        try:
            return SearchResponse(_Search(config, question, record, self._free.release))
        except BaseException:
            self._free.release()
            raise


class SearchResponse(StreamingResponse):
    """Response with the lines of a search, which ends with it, also if the client goes away."""

    def __init__(self, search: _Search) -> None:
        super().__init__(search.lines(), headers=HEADERS | _UNBUFFERED, media_type=LINES)
        self._search = search

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the lines as the search finds them."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._search.end()


class _Search:
    def __init__(
        self,
        config: Config,
        question: FindQuestion,
        record: Callable[[FoundRecord], dict[str, object]],
        done: Callable[[], None],
    ) -> None:
        self._config = config
        self._question = question
        self._record = record
        self._done = done
        self._stop = Event()
        self._found: Iterator[FoundRecord | FindProgress] | None = None
        self._thread = ThreadPoolExecutor(1, "search")

    async def lines(self) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        while (line := await loop.run_in_executor(self._thread, self._text)) is not None:
            yield line

    def end(self) -> None:
        """Ends the search as soon as its thread notices."""
        self._stop.set()
        self._thread.submit(self._close)
        self._thread.shutdown(wait=False)

    def _text(self) -> str | None:
        line = self._line()
        return None if line is None else json_text(line) + "\n"

    def _line(self) -> dict[str, object] | None:
        try:
            if self._found is None:
                self._found = find(self._config, self._question, self._stop)
            item = next(self._found, None)
            if isinstance(item, FoundRecord):
                return self._record(item)
        except BridgeError as error:
            self._found = iter(())
            return {"error": str(error)}
        except Exception:
            # The answer has begun: only a line can tell the reader that it is not complete.
            _log.exception("a search of the status page failed")
            self._found = iter(())
            return {"error": "the search failed by a fault of the bridge; its log has the details"}
        return None if item is None else {"progress": progress_json(item, self._question)}

    def _close(self) -> None:
        try:
            if close := getattr(self._found, "close", None):
                close()
        finally:
            self._done()


def progress_json(progress: FindProgress, question: FindQuestion) -> dict[str, object]:
    """A progress as a JSON object; `text` says it in a sentence."""
    return {
        "read": progress.read,
        "total": progress.total,
        "records": progress.records,
        "removed": progress.removed,
        "found": progress.found,
        "resume": progress.resume,
        "done": progress.done,
        "notes": list(progress.notes),
        "text": progress.summary(question),
    }
