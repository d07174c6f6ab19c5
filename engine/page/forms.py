"""What comes from forms: bounded, and only from our own pages.

Each form that is sent by POST carries a signature that only a page of this process, given to the same login, has; and
the browser must say that the request comes from where the page is served. Either alone keeps other sites out.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from starlette.concurrency import run_in_threadpool

from engine.errors import UsageError
from engine.telemetry.http_login import LOGIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.datastructures import Headers
    from starlette.requests import Request

__all__ = ["ForeignRequestError", "Form", "check", "read", "signature"]

SEAL = "seal"
"""Name of the field with the signature."""
_MOST_BYTES = 1024 * 1024
_MOST_FIELDS = 1000


class ForeignRequestError(UsageError):
    """A form that does not come from a page of ours."""


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form."""

    fields: Mapping[str, list[str]]

    def text(self, name: str) -> str:
        """One field; empty where it is missing."""
        return self.fields.get(name, [""])[0]

    def all(self, name: str) -> list[str]:
        """A field that may be there several times."""
        return self.fields.get(name, [])


async def read(request: Request) -> Form:
    """The form in the body of a request; UsageError if it is too large, or none."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES:
            msg = f"this form holds more than {_MOST_BYTES // 1024} KiB"
            raise UsageError(msg)
    return await run_in_threadpool(_parsed, bytes(body))


def _parsed(body: bytes) -> Form:
    try:
        text = body.decode()
        return Form(parse_qs(text, keep_blank_values=True, errors="replace", max_num_fields=_MOST_FIELDS))
    except ValueError as error:
        msg = f"this is no form: {error}"
        raise UsageError(msg) from error


def signature(seal: bytes, request: Request) -> str:
    """What a form has to carry that whoever asks sends back."""
    return hmac.digest(seal, str(request.scope.get(LOGIN, "")).encode(), "sha256").hex()


def check(form: Form, seal: bytes, request: Request) -> None:
    """ForeignRequestError if the form does not come from a page that was given to the same login."""
    if not _is_ours(request.headers):
        msg = "this request does not come from a page of this bridge; open the page and try again"
        raise ForeignRequestError(msg)
    if not hmac.compare_digest(form.text(SEAL).encode(), signature(seal, request).encode()):
        msg = "this page is from before the bridge was started, or of another login; load it again"
        raise ForeignRequestError(msg)


def _is_ours(headers: Headers) -> bool:
    """Whether the browser says that one of our pages sent this."""
    # Behind a proxy the name of the host is another, but browsers know what they have shown; old ones do not say.
    if site := headers.get("sec-fetch-site"):
        return site == "same-origin"
    try:
        origin = urlsplit(headers.get("origin", "")).netloc
    except ValueError:
        return False
    return origin != "" and origin == headers.get("host")
