"""Duration of a recovery after a crash, with millions of published records.

The router routes a journal within one interval, so that nothing is committed, and is killed. Another one starts. What
counts is the time from its start to the first record that was put into the journal since, and that no record is in the
outputs twice.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from bench import programs
from bench.contestants import Bridge, Place
from bench.processes import running
from bench.report import Check, Report, table
from bench.workload import BRIDGE_ID, expected

if TYPE_CHECKING:
    from bench.broker import Broker
    from bench.options import Options
    from bench.processes import ProcessTree

__all__ = ["measure"]

TARGET_SECONDS = 120.0
_JOURNAL = "bench.journal"
_AFTERWARDS = 1600
_PATIENCE_SECONDS = 1800.0
_SAMPLE_SECONDS = 1.0
_INTERVAL = {"router.interval": "1h"}


def measure(broker: Broker, options: Options) -> Report:
    """Measures the first of the modes: recovery reads the same in both."""
    ratio = sum(expected(1600)) / 1600
    records = round(options.recovery_records / ratio)
    broker.create(_JOURNAL)
    programs.run("Load", bootstrap=broker.bootstrap, topic=_JOURNAL, records=records)
    print(f"{records:,} records in the journal", flush=True)
    bridge = Bridge(options.modes[0], {**_INTERVAL, **options.settings}, options.router)
    place = Place(broker.bootstrap, _JOURNAL, options.folder)
    broker.create(*place.outputs)
    command = bridge.command(place)
    with running(command, place.log, programs.ROOT) as first:
        broker.await_count(place.outputs, sum(expected(records)), first, _PATIENCE_SECONDS)
        first.kill()
    print(f"{sum(expected(records)):,} records routed, and the router killed", flush=True)
    programs.run("Load", bootstrap=broker.bootstrap, topic=_JOURNAL, records=_AFTERWARDS)
    progress = _Progress(command[-1])
    wanted = sum(expected(records)) + sum(expected(_AFTERWARDS))
    with running(command, place.log, programs.ROOT) as second:
        peak = progress.watch(second)
        seconds = _await_first(broker, place, sum(expected(records)), second)
        progress.stop()
        broker.await_count(place.outputs, wanted, second, _PATIENCE_SECONDS)
    found = programs.verify(broker.bootstrap, place.outputs, BRIDGE_ID, 0)
    if found["repeated"]:
        msg = f"{found['repeated']} records are in the outputs twice"
        raise RuntimeError(msg)
    place.clean()
    figures = {"seconds": seconds, "lines": progress.lines, "peak_mb": max(peak, default=0) / (1 << 20)}
    rows = [[f"{sum(expected(records)):,}", f"{seconds:.1f}", f"{figures['peak_mb']:.0f}", str(len(progress.lines))]]
    columns = ["records in the outputs", "s to the next routed record", "resident memory at most, MB", "lines"]
    check = Check("recovery: seconds to the next routed record", seconds, TARGET_SECONDS)
    return Report("recovery", [table("Start after a crash", columns, rows)], [check], figures)


def _await_first(broker: Broker, place: Place, before: int, router: ProcessTree) -> float:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while broker.count(place.outputs) <= before:
        router.check()
        if time.monotonic() > deadline:
            msg = f"nothing is routed for {_PATIENCE_SECONDS:.0f} s, see {router.log}"
            raise RuntimeError(msg)
        time.sleep(_SAMPLE_SECONDS / 4)
    return time.time() - router.started


class _Progress:
    """Lines that `/ready` shows about the router during the recovery."""

    def __init__(self, properties: str) -> None:
        text = Path(properties).read_text(encoding="utf-8")
        self._address = re.findall(r"^http\.address=(\S+)", text, re.MULTILINE)[-1]
        self.lines: list[str] = []
        self._stop = Event()
        self._memory: list[int] = []
        self._thread: Thread | None = None

    def watch(self, router: ProcessTree) -> list[int]:
        """Starts watching; returns a list that receives the resident bytes of the router's programs over time."""
        self._thread = Thread(target=self._run, args=(router,), daemon=True)
        self._thread.start()
        return self._memory

    def stop(self) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()

    def _run(self, router: ProcessTree) -> None:
        while not self._stop.wait(_SAMPLE_SECONDS):
            self._memory.append(sum(size for _, size in router.memory().values()))
            detail = self._detail()
            if detail.startswith("recovering") and detail not in self.lines:
                self.lines.append(detail)
                print(detail, flush=True)

    def _detail(self) -> str:
        try:
            with closing(HTTPConnection(self._address, timeout=5)) as connection:
                connection.request("GET", "/ready")
                body: dict[str, Any] = json.loads(connection.getresponse().read())
        except OSError:
            return ""
        return str(body["components"]["router"]["detail"])
