"""Renders templates as pages: filters for numbers, times and bytes, and the headers that every page has.

Everything that comes from messages passes through Jinja's escaping, and control characters are shown as escapes. The
headers forbid pages to run or load anything but the project's own files.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse

from engine.page.body_view import preview
from engine.page.forms import signature
from engine.page.view import Tone
from engine.printable import printable
from engine.telemetry import amounts
from engine.telemetry.http_login import LOGIN, SESSION
from engine.telemetry.roles import UserRole, role_of
from engine.times import iso
from engine.topologies.section import TopologiesConfig

if TYPE_CHECKING:
    from starlette.requests import Request

    from engine.page.sight import SeenRecord
    from engine.page.view import View
    from engine.telemetry.users import LoginNote

__all__ = ["HEADERS", "REFRESH_SECONDS", "VERSION", "as_text", "login_note", "record_row", "render", "rendered"]

REFRESH_SECONDS = 5
"""Seconds between two updates of a live page."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_JOINT = re.compile(r"(?<=[.:/])(?=\w)")
_MARKS = re.compile(r"[\u200e\u200f]")
"""Marks of a direction, which a browser follows besides the characters that a terminal does."""


def render(request: Request, view: View, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Renders a page; of a live page, a script later replaces only the parts that change."""
    page = _templates.get_template(template)
    shared = {
        "bridge": view.config().bridge_id,
        "version": VERSION,
        "topologies_link": (("/topologies", "Topologies"),) if view.config().section(TopologiesConfig) else (),
        "path": request.url.path,
        "login": request.scope.get(LOGIN, ""),
        "has_session": bool(request.scope.get(SESSION)),
        "role": str(role_of(request)),
        "operates": role_of(request) >= UserRole.OPERATOR,
        "seal": signature(view.seal, request),
        "refresh": REFRESH_SECONDS,
        "now": time.time(),
        "has_leader": view.standing is None or view.standing.has_leader,
        "standby": view.standing.why_not if view.standing and not view.standing.leads else "",
    }
    return HTMLResponse(page.render({**shared, **values}), status, HEADERS)


def login_note(note: LoginNote) -> HTMLResponse:
    """Renders a page for somebody who is not logged in, which says nothing of the bridge."""
    headers = HEADERS | ({"Refresh": f"1; url={note.link}"} if note.follows else {})
    return HTMLResponse(_templates.get_template("login.html").render(note=note), note.status, headers)


async def rendered(request: Request, view: View, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Renders a page in a thread, so that the event loop goes on answering probes."""
    return await run_in_threadpool(partial(render, request, view, template, status=status, **values))


def record_row(seen: SeenRecord, kind: str) -> str:
    """The row of a record in a table of found ones, as HTML."""
    rows: Any = _templates.get_template("rows.html").module
    return str(rows.row(seen, kind))


def as_text(value: bytes | None) -> str | None:
    """Decodes bytes as UTF-8; None if they are not."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _iso(milliseconds: float) -> str:
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)  # A message may carry any number.
    return moment.isoformat(sep=" ", timespec="seconds").replace("+00:00", " UTC")


def _moment(milliseconds: int) -> str:
    """A time to the millisecond; Kafka writes -1 for none."""
    return "\u2013" if milliseconds < 0 else iso(milliseconds)


def _ago(milliseconds: float | None) -> Markup:
    """A time as an age, with the time itself in the title."""
    if milliseconds is None or milliseconds < 0:
        return Markup("&ndash;")
    seconds = max(time.time() - milliseconds / 1000, 0.0)
    text = "just now" if seconds < 1 else f"{amounts.duration(seconds)} ago"
    return Markup('<time title="{0}" datetime="{0}">{1}</time>').format(_iso(milliseconds), text)


def _printable(text: str) -> str:
    r"""Escapes control characters, and those that turn the direction of writing, as `\x1b`."""
    return _MARKS.sub(lambda match: ascii(match[0])[1:-1], printable(text))


def _breakable(text: str) -> Markup:
    """A printable text that a browser may break behind dots, colons and slashes, as in names of topics."""
    return Markup("<wbr>").join(_JOINT.split(_printable(text)))


def _value(value: bytes | None, limit: int = 4096) -> Markup:
    """Bytes as text if they are UTF-8, else in hexadecimal; a note follows if they are cut."""
    if value is None:
        return Markup('<span class="muted">(none)</span>')
    text = as_text(value)
    shown = _printable(text[:limit]) if text is not None else value[: limit // 2].hex(" ")
    cut = len(text) > limit if text is not None else len(value) > limit // 2
    kind = "" if text is not None else Markup('<span class="badge">hex</span> ')
    rest = Markup(' <span class="muted">… {} in all</span>').format(amounts.size(len(value))) if cut else ""
    return Markup("{}{}{}").format(kind, shown, rest)


VERSION = metadata.version("jms-bridge")
_templates = Environment(
    loader=PackageLoader("engine.page"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
_templates.globals["tones"] = Tone
_templates.filters |= {
    "number": amounts.number,
    "rate": amounts.rate,
    "duration": amounts.duration,
    "bytes": amounts.size,
    "breakable": _breakable,
    "ago": _ago,
    "iso": _iso,
    "moment": _moment,
    "preview": preview,
    "printable": _printable,
    "value": _value,
}
