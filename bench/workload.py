"""The routes and how many messages each must get; `peer/…/Workload.java` makes the messages by the same table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.registry import record

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "BODY_ROUTES",
    "BODY_SCHEMA",
    "BRIDGE_ID",
    "ROUTES",
    "SUBJECT",
    "XML_ROUTES",
    "Work",
    "expected",
    "properties",
]

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

_XPATHS = {"kind": "xpath('/order/@priority')", "customer.region": "xpath('/order/customer/region')"}
XML_ROUTES: Mapping[str, str] = {
    name: re.sub(
        r"msg\.body\.([a-z.]+)(?:==([a-z]+))?",
        lambda found: _XPATHS[found[1]] + (f" = '{found[2]}'" if found[2] else ""),
        include,
    )
    for name, include in BODY_ROUTES.items()
}
"""The same routes, by what XML bodies say."""

BODY_SCHEMA = record(
    "Order",
    {
        "id": "long",
        "kind": "string",
        "customer": record("Customer", {"name": "string", "region": "string", "tier": "int"}),
        "placed": "string",
        "lines": {
            "type": "array",
            "items": record("Line", {"sku": "string", "amount": "double", "count": "int"}),
        },
        "paid": "boolean",
        "note": "string",
    },
)
"""Avro schema of the JSON bodies."""
SUBJECT = "bench-value"
"""Subject of that schema in its registry."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a contestant does with the messages."""

    routes: Mapping[str, str] = field(default_factory=lambda: ROUTES)
    """Predicate by route name."""
    bodies: str = ""
    """What the peer does with bodies, see `Peer.java`."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Further keys of each of the bridge's routes."""
    copies: int = 1
    """Destinations of each route."""
    schema: str = ""
    """URL of the schema registry, if one is needed."""

    def topics(self, run: str) -> tuple[str, ...]:
        """Returns the output topics of a run: the first of each route, then the second of each."""
        return tuple(f"out.{run}.{name}" + ".copy" * copy for copy in range(self.copies) for name in self.routes)


# The route of each (address, region), as the messages take turns: orders, prices, trades, audit, four regions each.
_TURNS = (0, 1, None, None, 2, 2, 2, 2, 3, 4, 3, 4, None, None, None, None)


def expected(records: int) -> tuple[int, ...]:
    """Number of the first `records` messages that each route takes."""
    rounds, rest = divmod(records, len(_TURNS))
    return tuple(rounds * _TURNS.count(route) + _TURNS[:rest].count(route) for route in range(len(ROUTES)))


def properties(
    bootstrap: str, journal: str, outputs: Sequence[str], more: Mapping[str, str], work: Work | None = None
) -> str:
    """A configuration of the bridge with a route to each output, or to several; `more` comes last and wins."""
    work = work or Work()
    settings = {
        "bridge.id": BRIDGE_ID,
        "kafka.bootstrap.servers": bootstrap,
        "embedded": "off",
        "journal.topic": journal,
    }
    if work.schema:
        settings["schema.registry.url"] = work.schema
    for number, (name, include) in enumerate(work.routes.items()):
        keys = {
            "in.include": include,
            "out.topic": ", ".join(outputs[number :: len(work.routes)]),
            "conv.key": "msg.header.CorrelationId",
            **work.keys,
        }
        settings |= {f"routes.{name}.{key}": value for key, value in keys.items()}
    return "".join(f"{key}={value}\n" for key, value in {**settings, **more}.items())
