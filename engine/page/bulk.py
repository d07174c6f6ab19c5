"""The page on which all open dead letters that match are replayed or discarded, in the background.

The list sends its filters here. The letters are counted first, and settled once the count is confirmed. Both go on
without the page, which shows how far they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from engine.dead_letters.bulk import BulkAction, BulkTask
from engine.dead_letters.replay import Options, ReplayOutcome
from engine.dead_letters.store import DeadLetterStore
from engine.errors import UsageError
from engine.page import forms
from engine.page.acting import acting
from engine.page.asked import status_of
from engine.page.letters import LettersAsked
from engine.page.render import HEADERS, rendered
from engine.telemetry.metrics import NO_ROUTE
from engine.times import iso
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.dead_letters.bulk import BulkRun
    from engine.dead_letters.letter import Filters
    from engine.page.forms import Form
    from engine.page.view import View

__all__ = ["bulk_page"]

_PATH = "/dead-letters/all"
_SEE_OTHER = 303
_WHERE = "Where"
_GOOD = (ReplayOutcome.REPLAYED, ReplayOutcome.DISCARDED, ReplayOutcome.WOULD_REPLAY, ReplayOutcome.WOULD_DISCARD)


def bulk_page(view: View, bulk: BulkRun) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler: a GET shows the run, a POST begins to count, confirms the count, or cancels."""

    async def page(request: Request) -> Response:
        fault, status = "", 200
        if request.method == "POST":
            try:
                form = await forms.read(request)
                forms.check(form, view.seal, request)
                await run_in_threadpool(_change, form, view, bulk, request)
                return RedirectResponse(_PATH, _SEE_OTHER, HEADERS)
            except BridgeError as error:
                fault, status = str(error), status_of(error)
        return await rendered(request, view, "bulk.html", status=status, fault=fault, run=bulk.report, good=_GOOD)

    return page


def _change(form: Form, view: View, bulk: BulkRun, request: Request) -> None:
    """Does what a form asks for; UsageError if that is nothing known, or another run is at work."""
    action = form.text("action")
    if action == "confirm":
        report = bulk.report
        what, words = (report.task.action, report.task.words) if report else ("settle", ())
        # A predicate can have a value that viewers do not see. The audit of dead letters has it.
        told = (f"{name}: {'a predicate' if name == _WHERE else value}" for name, value in words)
        target = ", ".join(told) or "all open dead letters"
        with acting(view, request, f"{what} all", target) as result:
            bulk.settle(form.text("token"))
            result.text = "begun"
    elif action == "cancel":
        with acting(view, request, "cancel", "settling of dead letters"):
            bulk.cancel()
    elif action in BulkAction.__members__.values():
        asked = LettersAsked.of({name: values[0] for name, values in form.fields.items()})
        store = DeadLetterStore.of(view.config())
        filters = asked.filters(store)
        command = [action, *(filters.options() or ["--all"]), *["--quarantine"] * asked.quarantine]
        options = Options(
            filters,
            asked.quarantine,
            # The quarantine has only letters that were replayed too often.
            force=asked.quarantine and action == BulkAction.REPLAY,
            actor=forms.actor(request, " ".join(command)),
        )
        bulk.count(BulkTask(BulkAction(action), store, options, tuple(_words(filters))))
    else:
        msg = f"there is no action {action!r}; expected one of {', '.join(BulkAction)}, confirm, cancel"
        raise UsageError(msg)


def _words(filters: Filters) -> Iterator[tuple[str, str]]:
    """Names and values of the filters, as a user reads them."""
    yield from (("Reason", reason) for reason in filters.reasons)
    yield from (("Route", "none" if route == NO_ROUTE else route) for route in filters.routes)
    if filters.since_ms is not None:
        yield "Failed at or after", iso(filters.since_ms)
    if filters.until_ms is not None:
        yield "Failed before", iso(filters.until_ms)
    if filters.where is not None:
        yield _WHERE, filters.where.text
