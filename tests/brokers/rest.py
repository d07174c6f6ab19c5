"""A broker's management interface over HTTP: JSON, with the login of the tests."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.request import Request, urlopen

from engine.embedded.ports import LOOPBACK
from tests.brokers.broker import PASSWORD, USER

__all__ = ["call"]

_SECONDS = 30
_LOGIN = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


def call(port: int, path: str, method: str = "GET", body: object = None) -> Any:
    """Returns the answer, None if it is empty.

    Raises:
        OSError: nothing listens there, or (HTTPError) the broker refuses.
    """
    request = Request(
        f"http://{LOOPBACK}:{port}{path}",
        None if body is None else json.dumps(body).encode(),
        {"Authorization": f"Basic {_LOGIN}", "Content-Type": "application/json"},
        method=method,
    )
    with urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310 - always HTTP
        text = answer.read()
    return json.loads(text) if text else None
