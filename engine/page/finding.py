"""The page *Find*: the fields of a question, and records that appear while the search goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from engine.find.question import TopicKind
from engine.looks.look import LookWay
from engine.page import asked, forms
from engine.page.render import HEADERS, record_row, rendered
from engine.page.sight import Sight
from engine.printable import json_text
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.datastructures import QueryParams
    from starlette.requests import Request

    from engine.find.question import FindQuestion
    from engine.find.search import FoundRecord
    from engine.page.searches import Searches
    from engine.page.view import View

__all__ = ["MOST_ON_PAGE", "find_page", "find_rows", "question_of"]

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
            await run_in_threadpool(question_of, Sight(request, view), query)
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
            sight = Sight(request, view)
            question = await run_in_threadpool(question_of, sight, request.query_params)
            return searches.begin(view.config(), question, lambda found: _row(sight, found))
        except BridgeError as error:
            body = json_text({"error": str(error)})
            return Response(body, asked.status_of(error), HEADERS, "application/json")

    return lines


def question_of(sight: Sight, query: QueryParams) -> FindQuestion:
    """The question of a search, whose answers tell the user of `sight` no masked value.

    Raises:
        MaskedError: they would.
        UsageError: a parameter is wrong.
    """
    question = asked.find_question(query, MOST_ON_PAGE)
    sight.check_question(question)
    return question


def _row(sight: Sight, found: FoundRecord) -> dict[str, object]:
    seen = sight.masked(found.located)
    sight.note(LookWay.SEARCH, [seen])
    return {"row": record_row(seen, found.kind)}
