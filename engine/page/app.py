"""Addresses of the status page. `engine.telemetry.http_login` decides who may ask for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Route

from engine.dead_letters.bulk import BulkRun
from engine.page.actions import actions_page
from engine.page.api import api
from engine.page.bulk import bulk_page
from engine.page.charts import charts
from engine.page.corrections import correct
from engine.page.finding import find_page, find_rows
from engine.page.letters import audit, letter, letters, settle
from engine.page.looks import looks_page
from engine.page.messages import body, message, messages, records, timeline_page
from engine.page.overview import overview, routes, settings
from engine.page.parts import change_part
from engine.page.render import HEADERS
from engine.page.searches import Searches
from engine.page.sending import send
from engine.page.threads import Threads
from engine.page.topologies import topologies
from engine.page.topology_state import state
from engine.page.tryout import tryout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from engine.page.view import View

__all__ = ["pages"]

_LETTER = "/dead-letters/letter/{partition}/{offset}"
_BOTH = ["GET", "POST"]
_METHODS = {
    "/try": _BOTH,
    "/send": _BOTH,
    f"{_LETTER}/correct": ["POST"],
    "/dead-letters/settle": ["POST"],
    "/dead-letters/all": _BOTH,
    "/parts": ["POST"],
}
_STATIC = Path(__file__).with_name("static")
_FILES = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}


def pages(view: View) -> Sequence[BaseRoute]:
    """The routes that `engine.telemetry.http` serves beside its own."""
    threads, stories, searches, bulk = Threads(), Threads(), Searches(), BulkRun()
    found = {
        "/": overview(view),
        "/parts": change_part(view),
        "/charts": charts(view),
        "/routes": routes(view),
        "/topologies": topologies(view),
        "/topologies/state": state(view, threads),
        "/try": tryout(view),
        "/send": send(view, threads),
        "/dead-letters": letters(view, threads, bulk),
        _LETTER: letter(view, threads),
        f"{_LETTER}/correct": correct(view, threads, bulk),
        "/dead-letters/settle": settle(view, threads, bulk),
        "/dead-letters/all": bulk_page(view, bulk),
        "/dead-letters/audit": audit(view, threads),
        "/looks": looks_page(view, threads),
        "/actions": actions_page(view, threads),
        "/messages": messages(view, threads),
        "/messages/{topic}": records(view, threads),
        "/messages/{topic}/{partition}/{offset}": message(view, threads),
        "/messages/{topic}/{partition}/{offset}/timeline": timeline_page(view, stories),
        "/messages/{topic}/{partition}/{offset}/body": body(view, threads),
        "/find": find_page(view),
        "/find/rows": find_rows(view, searches),
        "/settings": settings(view),
        **api(view, threads, stories, searches),
        **{f"/static/{name}": _file(name, kind) for name, kind in _FILES.items()},
    }
    return [Route(path, page, methods=_METHODS.get(path, ["GET"])) for path, page in found.items()]


def _file(name: str, kind: str) -> Callable[[Request], Response]:
    content = (_STATIC / name).read_bytes()

    def file(_: Request) -> Response:
        return Response(content, media_type=kind, headers=HEADERS)

    return file
