"""Rate and cost of routing by what a body says, beside a peer that does the same and beside routing by headers.

The journal is that of `throughput`, with JSON bodies of the same size that say what the headers say. The peer reads two
fields with Jackson's streaming parser and stops at the second; the bridge reads the whole document, since a body that
is not JSON has no values. Then both route by XML, mask, publish twice and write Avro; the keys and bodies that they
publish have to be equal. Tables of routes are measured as by `routes`, without a broker.
"""

from __future__ import annotations

from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING

from bench import routes, throughput
from bench.contestants import Bridge, Peer
from bench.registry import registry
from bench.report import Check, Report, table
from bench.workload import BODY_ROUTES, BODY_SCHEMA, SUBJECT, XML_ROUTES, Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.broker import Broker
    from bench.contestants import Contestant
    from bench.options import Options

__all__ = ["measure", "passes_by_work"]

WORKS = ("xml", "mask", "copies", "avro")
"""Kinds of work with bodies, beside the peer's."""
_CHANGES = tuple((5, kind) for kind in ("xpath", "mask", "gzip", "avro", "copies"))
_TABLES = ((100, "headers"), (100, "paths"), (5, "path"), (500, "path"), *_CHANGES)
_RATIOS = (((100, "paths"), (100, "headers"), 1.5), ((500, "path"), (5, "path"), 1.1))
"""Tables, those that they are compared with, and the most CPU seconds for a record, to those."""


def _works(schema: str) -> dict[str, tuple[str, Work]]:
    """Returns, by name, the bodies in the journal and the work; `schema` is the URL of a registry."""
    mask = {"out.mask": "msg.body.id, msg.body.customer.name"}
    return {
        "xml": ("xml", Work(XML_ROUTES, "xml")),
        "mask": ("json", Work(BODY_ROUTES, "mask", mask)),
        "copies": ("json", Work(BODY_ROUTES, "json", copies=2)),
        "avro": ("json", Work(BODY_ROUTES, "avro", {"out.schema": f"avro:{SUBJECT}"}, schema=schema)),
    }


def passes_by_work(broker: Broker, options: Options, names: Sequence[str] = WORKS) -> dict[str, list[throughput.Pass]]:
    """Returns the passes of both at each work; two destinations also beside a peer with transactions."""
    with registry(BODY_SCHEMA) as url:
        found = {}
        for name in names:
            bodies, work = _works(url)[name]
            peers = [Peer(throughput.LINGER_MS, work=work)]
            if name == "copies":
                peers.append(Peer(throughput.LINGER_MS, work=work, guarantee="exactly_once_v2"))
            contestants: list[Contestant] = [*peers] if options.peer else []
            contestants += [Bridge(mode, options.settings, options.router, work=work) for mode in options.modes]
            print(f"-- {name}", flush=True)
            found[name] = throughput.passes_of(broker, options, contestants, bodies=bodies)
        return found


def measure(broker: Broker, options: Options) -> Report:
    """Measures two paths in five routes, then the other kinds of work, then the tables."""
    paths = Work(BODY_ROUTES, "json")
    contestants: list[Contestant] = [Peer(throughput.LINGER_MS, work=paths)] if options.peer else []
    for mode in options.modes:
        contestants.append(Bridge(mode, options.settings, options.router, "by bodies", paths))
        contestants.append(Bridge(mode, options.settings, options.router, "by headers"))
    passes = throughput.passes_of(broker, options, contestants, bodies="json")
    by_work = passes_by_work(broker, options)

    def rate(name: str) -> float:
        return throughput.middle(passes, name, "rate")

    checks = []
    for mode in options.modes:
        bodies, headers = (f"bridge {mode}, by {what}" for what in ("bodies", "headers"))
        if options.peer:
            least = rate(contestants[0].name)
            checks.append(Check(f"content, {bodies}: rate to the peer's", rate(bodies) / least, 1.0, at_least=True))
        share = rate(bodies) / rate(headers)
        checks.append(Check(f"content, {bodies}: rate to that by headers", share, 0.75, at_least=True))
    found = {of: [routes.run(*of) for _ in range(options.rounds)] for of in _TABLES}
    cost = {of: median(map(routes.seconds_for_each, rounds)) for of, rounds in found.items()}
    for of, other, most in _RATIOS:
        what = f"content, {of[0]} routes by {of[1]}: CPU for each record, to {other[0]} by {other[1]}"
        checks.append(Check(what, cost[of] / cost[other], most))
    rows = [[f"{count} routes by {kind}", f"{seconds:.2f}"] for (count, kind), seconds in cost.items()]
    peer = contestants[0].name if options.peer else None
    tables = [
        throughput.summary("Five routes by two values", passes, peer),
        *(throughput.summary(f"Five routes by two values: {name}", each, peer) for name, each in by_work.items()),
        table("CPU seconds of the JVM for a million records", ["", "medians"], rows),
    ]
    details = [
        *(asdict(each) for each in passes),
        *({"work": name, **asdict(each)} for name, done in by_work.items() for each in done),
        *(each for rounds in found.values() for each in rounds),
    ]
    return Report("content", tables, checks, details)
