"""Parser for addresses of JMS queues and topics as routes write them."""

from __future__ import annotations

import re
from functools import lru_cache

from engine.connectors.base import RefusedError

__all__ = ["is_pattern", "kind_and_name", "parsed"]

_WILDCARDS = re.compile(r"(?:.*\.)?[*#>](?:\..*)?", re.DOTALL)
"""Names with a word that stands for others: `*`, `#` of Artemis and Broker-J, `>` of ActiveMQ Classic."""
_ADDRESS = re.compile(r"/?(queue|topic)(?:://|[/:])(.+)", re.DOTALL)


@lru_cache(maxsize=1024)
def parsed(address: str) -> tuple[str, str] | None:
    """Splits an address into kind (`queue` or `topic`) and name; None if the text is not such an address.

    `queue/orders`, `/queue/orders`, `queue:orders` and ActiveMQ's `queue://orders` are equal.
    """
    match = _ADDRESS.fullmatch(address)
    return (match[1], match[2]) if match else None


def is_pattern(destination: str) -> bool:
    """Returns True if a destination, such as `topic:orders.#`, stands for several queues or topics."""
    return _WILDCARDS.fullmatch(destination.partition(":")[2]) is not None


def kind_and_name(address: str) -> tuple[str, str]:
    """Splits an address into kind (`queue` or `topic`) and name.

    Raises:
        RefusedError: the text is not such an address.
    """
    parts = parsed(address)
    if parts is None:
        msg = f"{address[:100]!r} is not an address of a JMS broker; expected queue/NAME or topic/NAME"
        raise RefusedError(msg)
    return parts
