"""Parser for addresses of JMS queues and topics as routes write them."""

from __future__ import annotations

import re
from functools import lru_cache

from engine.connectors.base import RefusedError

__all__ = ["kind_and_name", "parsed"]

_ADDRESS = re.compile(r"/?(queue|topic)(?:://|[/:])(.+)", re.DOTALL)


@lru_cache(maxsize=1024)
def parsed(address: str) -> tuple[str, str] | None:
    """Splits an address into kind (`queue` or `topic`) and name; None if the text is no such address.

    `queue/orders`, `/queue/orders`, `queue:orders` and ActiveMQ's `queue://orders` are equal.
    """
    found = _ADDRESS.fullmatch(address)
    return (found[1], found[2]) if found else None


def kind_and_name(address: str) -> tuple[str, str]:
    """Splits an address into kind (`queue` or `topic`) and name.

    Raises:
        RefusedError: the text is no such address.
    """
    found = parsed(address)
    if found is None:
        msg = f"{address[:100]!r} is no address of a JMS broker; expected queue/NAME or topic/NAME"
        raise RefusedError(msg)
    return found
