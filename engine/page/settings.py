"""The settings page: the configuration in force, with secrets masked, and the result of the last reload."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from engine.page.render import render
from routes.config.show import rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.page.view import View

__all__ = ["settings"]


def settings(view: View) -> Callable[[Request], Response]:
    """Makes the handler of the page; `?all=1` also shows settings left at their defaults."""

    def page(request: Request) -> Response:
        everything = request.query_params.get("all") == "1"
        snapshot = view.snapshot()
        # Without the environment, values are shown as written and references stay references.
        found = rows(snapshot.settings({}))
        shown = [row for row in found if everything or row.origin != "default"]
        sections = [(name, list(group)) for name, group in groupby(shown, lambda row: row.key.partition(".")[0])]
        return render(
            request,
            view,
            "settings.html",
            sections=sections,
            everything=everything,
            defaults=sum(row.origin == "default" for row in found),
            file=str(snapshot.path),
            hash=snapshot.hash,
            reload=view.reload().get("reload", {}),
        )

    return page
