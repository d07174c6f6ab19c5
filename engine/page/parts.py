"""Pause and resumption of a part of the bridge or of a route, asked for on the overview and the page of routes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from engine.errors import UsageError
from engine.page import forms
from engine.page.acting import acting_on_bridge
from engine.page.picture import anchor
from engine.page.render import HEADERS, rendered
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.page.view import View

__all__ = ["change_part"]

_SEE_OTHER = 303


def change_part(view: View) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the form, which leads back to the page with the part or route."""

    async def page(request: Request) -> Response:
        try:
            form = await forms.read(request)
            forms.check(form, view.seal, request)
            part, action = form.text("part"), form.text("action")
            if view.control is None or action not in ("pause", "resume"):
                msg = f"there is no action {action!r}; expected pause or resume"
                raise UsageError(msg)
            change = view.control.pause if action == "pause" else view.control.resume
            actor = forms.actor(request, action)

            def changed() -> None:
                with acting_on_bridge(view, request, action, part):
                    change(part, f"{actor.user} ({actor.host})")

            await run_in_threadpool(changed)
        except forms.ForeignRequestError as error:
            return await rendered(request, view, "part.html", status=403, fault=str(error))
        except BridgeError as error:
            return await rendered(request, view, "part.html", status=400, fault=str(error))
        kind, _, name = part.partition(":")
        place = f"/routes#{anchor(name)}" if kind == "route" else f"/#{anchor(part)}"
        return RedirectResponse(place, _SEE_OTHER, HEADERS)

    return page
