"""Reads forms, bounded in size, and accepts only those from pages of this bridge.

Each form sent by POST carries a signature that only a page of this process, given to the same login, has; and the
browser must say that the request comes from the origin that serves the page. Either check alone keeps other sites out.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool

from engine.dead_letters.audit import Actor
from engine.errors import UsageError
from engine.telemetry.http_login import LOGIN, SESSION
from routes.keys.addresses import host_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.datastructures import Headers
    from starlette.requests import Request

__all__ = ["ForeignRequestError", "Form", "actor", "check", "check_site", "read", "signature"]

SEAL = "seal"
"""Name of the field with the signature."""
_MOST_BYTES = 1024 * 1024
_MOST_FIELDS = 1000


class ForeignRequestError(UsageError):
    """A form that does not come from a page of this bridge."""


@dataclass(frozen=True, slots=True)
class Form:
    """Fields of a form: each name with its values."""

    fields: Mapping[str, list[str]]

    def text(self, name: str) -> str:
        """The value of a field; empty if the field is missing."""
        return self.fields.get(name, [""])[0]

    def all(self, name: str) -> list[str]:
        """All values of a field that may occur several times."""
        return self.fields.get(name, [])


async def read(request: Request, most: int = _MOST_BYTES) -> Form:
    """Reads the form in the body of a request; UsageError if it has more than `most` bytes, or another form."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            msg = f"this form holds more than {most // 1024} KiB"
            raise UsageError(msg)
    return await run_in_threadpool(_parsed, bytes(body))


def _parsed(body: bytes) -> Form:
    try:
        text = body.decode()
        return Form(parse_qs(text, keep_blank_values=True, errors="replace", max_num_fields=_MOST_FIELDS))
    except ValueError as error:
        msg = f"the request is not a form: {error}"
        raise UsageError(msg) from error


def signature(seal: bytes, request: Request) -> str:
    """The signature that a form for this request's login and session has to carry."""
    whose = "\n".join(str(request.scope.get(name, "")) for name in (LOGIN, SESSION))
    return hmac.digest(seal, whose.encode(), "sha256").hex()


def check(form: Form, seal: bytes, request: Request) -> None:
    """Raises ForeignRequestError if the form does not come from a page that was given to the same login."""
    if not _is_ours(request.headers):
        msg = "this request does not come from a page of this bridge; open the page and try again"
        raise ForeignRequestError(msg)
    if not hmac.compare_digest(form.text(SEAL).encode(), signature(seal, request).encode()):
        msg = "this page is from before the bridge was started, or of another login; load it again"
        raise ForeignRequestError(msg)


def actor(request: Request, command: str) -> Actor:
    """The user of the request's login, for the audit; `command` says what the user does on the page."""
    host = request.client.host if request.client else ""
    return Actor(request.scope.get(LOGIN) or "nobody logged in", host, f"status page: {command}")


def check_site(request: Request) -> None:
    """Raises ForeignRequestError if the browser says that a page of another site has sent the request."""
    if request.headers.get("sec-fetch-site") == "cross-site":
        msg = "this request comes from a page of another site; open the page of this bridge instead"
        raise ForeignRequestError(msg)


def _is_ours(headers: Headers) -> bool:
    """True if the browser says that a page of this bridge sent the request."""
    # Behind a proxy, the `Host` header differs from the browser's, so `Sec-Fetch-Site` decides; old browsers do not
    # send it.
    if site := headers.get("sec-fetch-site"):
        return site == "same-origin"
    # The value is a scheme and an authority, and nothing else (RFC 6454, 6.1).
    scheme, _, authority = headers.get("origin", "").partition("://")
    return scheme in ("http", "https") and host_of(authority) is not None and authority == headers.get("host")
