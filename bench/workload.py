"""The routes and how many messages each must get; `peer/…/Workload.java` makes the messages by the same table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["BODY_ROUTES", "BRIDGE_ID", "ROUTES", "expected", "properties"]

BRIDGE_ID = "bench"

ROUTES: Mapping[str, str] = {
    "orders-emea": "msg.address==orders && msg.header.region==emea",
    "orders-apac": "msg.address==orders && msg.header.region==apac",
    "prices": "msg.address==prices",
    "trades-west": "msg.address==trades AND region IN ('emea', 'amer')",
    "trades": "msg.address==trades",
}
"""Predicate by route name, in order."""

BODY_ROUTES: Mapping[str, str] = {
    name: include.replace("msg.address", "msg.body.kind")
    .replace("msg.header.region", "msg.body.customer.region")
    .replace("AND region", "AND msg.body.customer.region")
    for name, include in ROUTES.items()
}
"""The same routes, by what JSON bodies say."""

# The route of each (address, region), as the messages take turns: orders, prices, trades, audit, four regions each.
_TURNS = (0, 1, None, None, 2, 2, 2, 2, 3, 4, 3, 4, None, None, None, None)


def expected(records: int) -> tuple[int, ...]:
    """Number of the first `records` messages that each route takes."""
    rounds, rest = divmod(records, len(_TURNS))
    return tuple(rounds * _TURNS.count(route) + _TURNS[:rest].count(route) for route in range(len(ROUTES)))


def properties(
    bootstrap: str, journal: str, outputs: Sequence[str], more: Mapping[str, str], routes: Mapping[str, str] = ROUTES
) -> str:
    """A configuration of the bridge with a route to each output; `more` comes last and wins."""
    settings = {
        "bridge.id": BRIDGE_ID,
        "kafka.bootstrap.servers": bootstrap,
        "embedded": "off",
        "journal.topic": journal,
    }
    for (name, include), topic in zip(routes.items(), outputs, strict=True):
        settings[f"routes.{name}.in.include"] = include
        settings[f"routes.{name}.out.topic"] = topic
        settings[f"routes.{name}.conv.key"] = "msg.header.CorrelationId"
    return "".join(f"{key}={value}\n" for key, value in {**settings, **more}.items())
