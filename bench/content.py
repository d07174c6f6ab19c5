"""Rate and cost of routing by what a body says, beside a peer that does the same and beside routing by headers.

The journal is that of `throughput`, with JSON bodies of the same size that say what the headers say. The peer reads two
fields with Jackson's streaming parser and stops at the second; the bridge reads the whole document, since a body that
is not JSON has no values. Tables of routes are measured as by `routes`, without a broker.
"""

from __future__ import annotations

from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING

from bench import routes, throughput
from bench.contestants import Bridge, Peer
from bench.report import Check, Report, table
from bench.workload import BODY_ROUTES

if TYPE_CHECKING:
    from bench.broker import Broker
    from bench.contestants import Contestant
    from bench.options import Options

__all__ = ["measure"]

_CHANGES = tuple((5, kind) for kind in ("xpath", "mask", "gzip", "avro", "copies"))
_TABLES = ((100, "headers"), (100, "paths"), (5, "path"), (500, "path"), *_CHANGES)
_RATIOS = (((100, "paths"), (100, "headers"), 1.5), ((500, "path"), (5, "path"), 1.1))
"""Tables, those that they are compared with, and the most CPU seconds for a record, to those."""


def measure(broker: Broker, options: Options) -> Report:
    """Measures two paths in five routes, then the tables."""
    contestants: list[Contestant] = [Peer(throughput.LINGER_MS, bodies="json")] if options.peer else []
    for mode in options.modes:
        contestants.append(Bridge(mode, options.settings, options.router, "by bodies", BODY_ROUTES))
        contestants.append(Bridge(mode, options.settings, options.router, "by headers"))
    passes = throughput.passes_of(broker, options, contestants, bodies="json")

    def rate(name: str) -> float:
        return throughput.middle(passes, name, "rate")

    checks = []
    for mode in options.modes:
        bodies, headers = (f"bridge {mode}, by {what}" for what in ("bodies", "headers"))
        if options.peer:
            peer = rate(contestants[0].name)
            checks.append(Check(f"content, {bodies}: rate to the peer's", rate(bodies) / peer, 1.0, at_least=True))
        share = rate(bodies) / rate(headers)
        checks.append(Check(f"content, {bodies}: rate to that by headers", share, 0.75, at_least=True))
    found = {of: [routes.run(*of) for _ in range(options.rounds)] for of in _TABLES}
    cost = {of: median(map(routes.seconds_for_each, rounds)) for of, rounds in found.items()}
    for of, other, most in _RATIOS:
        what = f"content, {of[0]} routes by {of[1]}: CPU for each record, to {other[0]} by {other[1]}"
        checks.append(Check(what, cost[of] / cost[other], most))
    rows = [[f"{count} routes by {kind}", f"{seconds:.2f}"] for (count, kind), seconds in cost.items()]
    tables = [
        throughput.summary("Five routes by two values", passes, contestants[0].name if options.peer else None),
        table("CPU seconds of the JVM for a million records", ["", "medians"], rows),
    ]
    details = [*(asdict(each) for each in passes), *(each for rounds in found.values() for each in rounds)]
    return Report("content", tables, checks, details)
