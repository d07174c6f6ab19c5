"""Growth of the router's memory at an even, high rate.

Resident memory of the JVM and of its Python driver, and the used heap, every five seconds. What counts is the slope of
resident memory after the first quarter of the time, when the JVM has warmed up, over the rest.
"""

from __future__ import annotations

import re
import subprocess
import time
from statistics import linear_regression
from typing import TYPE_CHECKING, Any

from bench import programs
from bench.contestants import Bridge, Place
from bench.processes import running
from bench.report import Check, Report, table
from bench.workload import expected
from engine.java import find_java

if TYPE_CHECKING:
    from bench.broker import Broker
    from bench.options import Options
    from bench.processes import ProcessTree

__all__ = ["measure", "memory_of"]

TARGET_GROWTH = 0.05
"""By how much of its size resident memory may grow over the counted time."""
_SAMPLE_SECONDS = 5.0
_WARM_SHARE = 0.25
_BOUND_BYTES = 1 << 30
_PATIENCE_SECONDS = 120.0
_MEGABYTE = 1 << 20
_USED = re.compile(r"total \d+K, used (\d+)K")
"""What a generation of the heap uses, in the words of jcmd."""


def measure(broker: Broker, options: Options) -> Report:
    """The bridge in each mode."""
    found = [_run(broker, Bridge(mode, options.settings, options.router), options) for mode in options.modes]
    rows = []
    checks = []
    for run in found:
        rows += [
            [
                f"{run['contestant']}, {part}",
                *(f"{run[part][name]:.0f}" for name in ("first_mb", "last_mb", "peak_mb")),
                f"{run[part]['mb_per_minute']:+.2f}",
            ]
            for part in ("rss", "heap")
        ]
        checks.append(Check(f"memory, {run['contestant']}: growth of resident memory", run["growth"], TARGET_GROWTH))
    columns = ["", "after warming, MB", "at the end, MB", "peak, MB", "slope, MB/min"]
    title = f"Memory of the router at {options.memory_rate} messages/s over {options.memory_seconds} s"
    return Report("memory", [table(title, columns, rows)], checks, found)


def _run(broker: Broker, bridge: Bridge, options: Options) -> dict[str, Any]:
    run = Place(broker.bootstrap, "", options.folder).run
    place = Place(broker.bootstrap, f"journal.{run}", options.folder, run)
    broker.create(place.journal, *place.outputs, bound_bytes=_BOUND_BYTES)
    warm = 1600
    programs.run("Load", bootstrap=broker.bootstrap, topic=place.journal, records=warm)
    paced = programs.command(
        "Paced",
        bootstrap=broker.bootstrap,
        journal=place.journal,
        outputs=",".join(place.outputs),
        rate=options.memory_rate,
        seconds=options.memory_seconds,
    )
    samples = []
    with running(bridge.command(place), place.log, programs.ROOT) as router:
        broker.await_count(place.outputs, sum(expected(warm)), router, _PATIENCE_SECONDS)
        with running(paced, place.folder / f"{run}.paced.log", programs.ROOT):
            begun = time.monotonic()
            while (elapsed := time.monotonic() - begun) < options.memory_seconds:
                router.check()
                samples.append({"seconds": elapsed, **memory_of(router)})
                time.sleep(max(0.0, _SAMPLE_SECONDS - (time.monotonic() - begun - elapsed)))
            sent = options.memory_rate * options.memory_seconds
            broker.await_count(place.outputs, sum(expected(warm)) + sent, router, _PATIENCE_SECONDS)
    broker.delete(place.journal, *place.outputs)
    place.clean()
    counted = [sample for sample in samples if sample["seconds"] >= options.memory_seconds * _WARM_SHARE]
    rss = _trend(counted, "rss")
    growth = rss["mb_per_minute"] * (counted[-1]["seconds"] - counted[0]["seconds"]) / 60 / rss["first_mb"]
    figures = {"rss": rss, "heap": _trend(_after_collections(counted), "heap"), "growth": growth}
    print(f"{bridge.name}: resident memory {rss['mb_per_minute']:+.2f} MB/min at {rss['last_mb']:.0f} MB", flush=True)
    return {"contestant": bridge.name, **figures, "samples": samples}


def memory_of(process: ProcessTree) -> dict[str, float]:
    """Megabytes of resident memory (`rss`) and of the used heap (`heap`)."""
    programs_found = process.memory()
    java_pid, _ = programs_found["java"]
    jcmd = find_java().resolve().with_name("jcmd")
    told = subprocess.run([str(jcmd), str(java_pid), "GC.heap_info"], capture_output=True, text=True, check=False)
    used = _USED.findall(told.stdout)
    if not used:
        msg = f"jcmd does not report the heap of {java_pid}: {told.stderr.strip() or told.stdout.strip()}"
        raise RuntimeError(msg)
    resident = sum(size for _, size in programs_found.values()) / _MEGABYTE
    return {"rss": resident, "heap": sum(map(int, used)) / 1024}


def _after_collections(samples: list[dict[str, float]]) -> list[dict[str, float]]:
    """The least of each half minute: what a collection has left."""
    size = round(30 / _SAMPLE_SECONDS)
    groups = [samples[at : at + size] for at in range(0, len(samples), size)]
    return [min(group, key=lambda sample: sample["heap"]) for group in groups]


def _trend(samples: list[dict[str, float]], name: str) -> dict[str, float]:
    values = [sample[name] for sample in samples]
    slope = linear_regression([sample["seconds"] / 60 for sample in samples], values).slope if len(values) > 1 else 0.0
    return {"first_mb": values[0], "last_mb": values[-1], "peak_mb": max(values), "mb_per_minute": slope}
