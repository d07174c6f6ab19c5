"""What a run found, as tables, and what of it must not be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.ledger import SOURCES
from tests.soak.resources import FIGURES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.soak.resources import Resources, Trend
    from tests.soak.run import Soak

__all__ = ["faults", "markdown"]

_GROWTH = 0.1
"""From the first third of the time to the last: what a kill in one of them, and the garbage collector, may change."""
_SMALL = {"memory": 16.0, "files": 8.0, "threads": 4.0}
"""What grows by less does not count: a process of 40 MB that takes 5 more is not a leak."""


def faults(soak: Soak, resources: Resources) -> Sequence[str]:
    """Lines for people; none when all is well."""
    found = []
    for source, arrivals in soak.arrivals.items():
        counts = {
            "lost": len(arrivals.lost(soak.ledger, source)),
            "twice": arrivals.twice,
            # JetStream sends again what a dead source left open when its ack_wait is over, behind newer messages.
            "reordered": arrivals.reordered if source != "nats" else 0,
            "unknown": arrivals.unknown,
        }
        found += [f"{source}: {count} {kind}" for kind, count in counts.items() if count]
    found += [f"after '{kill}' nothing came any more" for kill, seconds in soak.kills if seconds is None]
    for figure in FIGURES:
        for part, trend in resources.trends(figure).items():
            if _grows(trend, figure):
                found.append(f"{part}: {figure} from {trend.first:.0f} to {trend.last:.0f}")
    return found


def markdown(soak: Soak, resources: Resources) -> str:
    """Tables of `docs/reliability.md`."""
    messages = [
        [
            source,
            f"{soak.ledger.issued(source):,}",
            f"{len(soak.ledger.open[source]):,}",
            f"{found.count:,}",
            f"{len(found.lost(soak.ledger, source)):,}",
            f"{found.twice:,}",
            f"{found.reordered:,}",
        ]
        for source in SOURCES
        for found in [soak.arrivals[source]]
    ]
    trends = {figure: resources.trends(figure) for figure in FIGURES}
    parts = [[part, *(_cell(trends[figure][part]) for figure in FIGURES)] for part in sorted(resources.samples)]
    kills = [[name, "never" if seconds is None else f"{seconds:.1f}"] for name, seconds in soak.kills]
    return "\n\n".join(
        [
            f"{soak.sent_per_second:,.0f} messages/s sent, {soak.arrived_per_second:,.0f}/s arrived in topics.",
            _table(
                ["source", "sent", "not acknowledged", "arrived in its topic", "lost", "twice", "reordered"], messages
            ),
            _table(["killed", "seconds until all sent before has arrived"], kills),
            _table(["part", "memory, MB (checkpoint: kB)", "open files", "threads"], parts),
        ]
    )


def _grows(trend: Trend, figure: str) -> bool:
    return trend.growth > _GROWTH and trend.last - trend.first > _SMALL[figure]


def _cell(trend: Trend) -> str:
    return f"{trend.first:.0f} → {trend.last:.0f} (peak {trend.peak:.0f})" if trend.peak else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
