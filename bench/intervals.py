"""Latency by the interval of real-time mode: what a commit costs, and what is compared with the outputs after a crash.

Each run is one of `bench.latency` with another `router.interval`, and holds two boundaries at least.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bench.chart import Axis, Panel, chart
from bench.contestants import Bridge
from bench.latency import TARGET_MILLISECONDS, latency_of
from bench.report import Check, Report, table
from routes.sections import REALTIME_INTERVAL_SECONDS

if TYPE_CHECKING:
    from bench.broker import Broker
    from bench.options import Options

__all__ = ["measure", "picture"]

_SECONDS = (10, 30, 60, round(REALTIME_INTERVAL_SECONDS))
_LEAST_SECONDS = 60


def measure(broker: Broker, options: Options) -> Report:
    """One run for each interval, the default among them."""
    runs = {}
    for seconds in sorted(set(_SECONDS)):
        settings = {**options.settings, "router.interval": f"{seconds}s"}
        own = replace(options, settings=settings, latency_seconds=max(2 * seconds + 10, _LEAST_SECONDS))
        runs[seconds] = latency_of(broker, Bridge("realtime", settings, options.router), own)
        figures = runs[seconds]["milliseconds"]
        print(f"every {seconds} s: p99 {figures['p99']:.1f} p99.9 {figures['p99.9']:.1f} ms", flush=True)
    if options.pictures:
        (options.pictures / "intervals.svg").write_text(picture(runs, options.rate))
    names = ("p50", "p99", "p99.9", "max")
    rows = [
        [f"{seconds} s", *(f"{run['milliseconds'][name]:.1f}" for name in names), f"{seconds * options.rate:,}"]
        for seconds, run in runs.items()
    ]
    columns = ["interval", *names, "records compared after a crash"]
    slowest = runs[round(REALTIME_INTERVAL_SECONDS)]["milliseconds"]["p99.9"]
    checks = [Check("intervals, default: p99.9, ms", slowest, TARGET_MILLISECONDS)]
    title = f"Latency by router.interval, milliseconds, {options.rate:,} messages/s"
    return Report("intervals", [table(title, columns, rows)], checks, list(runs.values()))


def picture(runs: dict[int, dict[str, Any]], rate: int) -> str:
    """A chart as SVG: latency, and records to compare after a crash, by interval."""
    x = Axis("router.interval, seconds", logarithmic=True, marks={float(each): str(each) for each in runs})
    latency = {
        name: [(float(seconds), run["milliseconds"][name]) for seconds, run in runs.items()]
        for name in ("p99", "p99.9")
    }
    compared = {"records": [(float(seconds), float(seconds * rate)) for seconds in runs]}
    panels = [
        Panel(f"Latency at {rate:,} messages/s", x, Axis("milliseconds", logarithmic=True), latency),
        Panel("Compared with the outputs after a crash", x, Axis("records"), compared),
    ]
    return chart("Latency and recovery by interval", panels)
