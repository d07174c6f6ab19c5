"""Addresses of queues and topics as routes write them, for all that speak to JMS."""

from __future__ import annotations

import re

from engine.connectors.base import RefusedError

__all__ = ["kind_and_name", "parsed"]

_ADDRESS = re.compile(r"/?(queue|topic)[/:](.+)", re.DOTALL)


def parsed(address: str) -> tuple[str, str] | None:
    """Kind and name: `queue/orders`, `/queue/orders` and `queue:orders` are the same; None for what is no address."""
    found = _ADDRESS.fullmatch(address)
    return (found[1], found[2]) if found else None


def kind_and_name(address: str) -> tuple[str, str]:
    """The same; RefusedError for what is no address."""
    found = parsed(address)
    if found is None:
        msg = f"{address[:100]!r} is no address of a JMS broker; expected queue/NAME or topic/NAME"
        raise RefusedError(msg)
    return found
