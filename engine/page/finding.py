"""The page *Find*: the fields of a question, and records that appear while the search goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from engine.find.question import TopicKind
from engine.page import asked, forms
from engine.page.render import HEADERS, record_row, rendered
from engine.printable import json_text
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from engine.find.search import FoundRecord
    from engine.page.searches import Searches
    from engine.page.view import View

__all__ = ["MOST_ON_PAGE", "find_page", "find_rows"]

MOST_ON_PAGE = 100
"""Records that a search finds before it waits to be continued, unless `most` says otherwise."""


def find_page(view: View) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the page; its fields are in the URL, and a script asks `/find/rows` for the records."""

    async def page(request: Request) -> Response:
        query = request.query_params
        given = {name: [text for text in query.getlist(name) if text.strip()] for name in (*asked.FIND_FIELDS, "most")}
        fields = {name: texts for name, texts in given.items() if texts}
        fault, status = "", 200
        try:
            await run_in_threadpool(asked.find_question, query, MOST_ON_PAGE)
        except BridgeError as error:
            fault, status = str(error), asked.status_of(error)
        begins = not fault and bool(fields or "search" in query)
        return await rendered(
            request,
            view,
            "find.html",
            status=status,
            fault=fault,
            text=lambda name: "\n".join(given.get(name, ())),
            chosen=given["kind"],
            kinds=list(TopicKind),
            rows="/find/rows?" + urlencode(fields, doseq=True) if begins else "",
            lines="/api/find?" + urlencode(fields, doseq=True),
        )

    return page


def find_rows(view: View, searches: Searches) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the lines that the page asks for: rows of its table as HTML, and progress."""

    async def lines(request: Request) -> Response:
        try:
            forms.check_site(request)
            question = await run_in_threadpool(asked.find_question, request.query_params, MOST_ON_PAGE)
            return searches.begin(view.config(), question, _row)
        except BridgeError as error:
            body = json_text({"error": str(error)})
            return Response(body, asked.status_of(error), HEADERS, "application/json")

    return lines


def _row(found: FoundRecord) -> dict[str, object]:
    return {"row": record_row(found.located, found.kind)}
