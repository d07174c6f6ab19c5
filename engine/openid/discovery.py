"""Answers of OpenID Connect servers over HTTP, and what they say of themselves (OpenID Connect Discovery 1.0)."""

from __future__ import annotations

import json
import ssl
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, cast
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from engine.errors import HardFailureError, UnreachableError
from engine.http_answers import LargeAnswerError, content
from engine.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from http.client import HTTPMessage, HTTPResponse
    from typing import IO

__all__ = ["discovered", "fetched"]

_SECONDS = 10.0
_MOST_BYTES = 1024 * 1024
_SHOWN = 200
"""Number of characters of an issuer's text that an error shows."""
_AWAY = frozenset({429, *range(500, 600)})
"""Statuses of a server that may answer later, such as one behind a proxy whose server is away."""


class _NoRedirection(HTTPRedirectHandler):
    """Handler that follows no redirection: a request may carry a secret, and an answer has keys to be trusted."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Returns None, so that the redirection is an error like other statuses."""


def discovered(issuer: str, authority: str | None, setting: str) -> dict[str, Any]:
    """Returns the metadata of an issuer of tokens.

    Args:
        issuer: URL of the issuer, with or without a slash at its end.
        authority: PEM file of the certificates to trust; None for those of the system.
        setting: key of the configuration that names the issuer, for errors.

    Raises:
        HardFailureError: the answer is not that of an issuer, or that of another one.
        UnreachableError: the issuer does not answer, cannot at present, or its certificate is not trusted.
    """
    address = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    said = fetched(address, authority, setting)
    named = said.get("issuer")
    if str(named).rstrip("/") != issuer.rstrip("/"):
        raise HardFailureError(f"{address}: the answer is that of the issuer '{_line(named)}'; correct {setting}")
    return said


def fetched(
    address: str,
    authority: str | None,
    setting: str,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Returns the JSON object at an address of an issuer; with a `form`, it is sent there by POST.

    `authority` and `setting` are as for `discovered`. Redirections are not followed.

    Raises:
        HardFailureError: the issuer refuses the request, or the answer is not a JSON object.
        UnreachableError: the issuer does not answer, cannot at present, or its certificate is not trusted.
    """
    body = None if form is None else urlencode(form).encode()
    try:
        trust = ssl.create_default_context(cafile=authority) if address.startswith("https:") else None
        opener = build_opener(_NoRedirection, HTTPSHandler(context=trust))
        # The check of the configuration lets only http and https through.
        request = Request(address, body, {"Accept": "application/json", **(headers or {})})  # noqa: S310
        with opener.open(request, timeout=_SECONDS) as answer:
            said = json.loads(content(answer, _MOST_BYTES, _SECONDS))
    except HTTPError as error:
        with error:
            why = _reason(error)
        if error.code in _AWAY:
            raise UnreachableError(f"the issuer of tokens does not answer: {address}: {error}") from error
        msg = f"{address}: HTTP status {error.code}{why and f' ({why})'}; correct {setting}"
        raise HardFailureError(msg) from error
    except LargeAnswerError as error:
        raise HardFailureError(f"{address}: {error}; correct {setting}") from error
    except (OSError, HTTPException) as error:
        raise UnreachableError(f"the issuer of tokens does not answer: {address}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise HardFailureError(f"{address}: the answer is not JSON; correct {setting}") from error
    if not isinstance(said, dict):
        raise HardFailureError(f"{address}: the answer is not a JSON object; correct {setting}")
    return said


def _reason(error: HTTPError) -> str:
    """The reason that an issuer gives for a refusal (RFC 6749, 5.2); empty without one."""
    try:
        said = json.loads(content(cast("HTTPResponse", error.fp), _MOST_BYTES, _SECONDS))
    except (OSError, HTTPException, ValueError, RecursionError):
        return ""
    return _line(said.get("error_description") or said.get("error") or "") if isinstance(said, dict) else ""


def _line(text: object) -> str:
    """A text of an issuer as a part of one line: some explain a refusal in several."""
    return printable(" ".join(str(text).split()))[:_SHOWN]
