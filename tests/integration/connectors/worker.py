"""A source or sink worker in a process of its own, for tests that kill it.

`python -m tests.integration.connectors.worker source|sink NAME CONFIG` runs worker 1 of the source or sink NAME.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from prometheus_client import CollectorRegistry

from engine.delivery.sink_loop import run_sink
from engine.delivery.source_loop import run_source
from engine.telemetry.status import Reporter
from routes import config

__all__ = ["start_worker"]

_ROOT = Path(__file__).parents[3]
_RUNS = {"source": run_source, "sink": run_sink}


def start_worker(kind: str, name: str, file: Path, log: Path | None = None) -> subprocess.Popen[bytes]:
    """Starts the worker as the leader of a new process group; `kind` is `source` or `sink`.

    What it prints goes to the end of `log`, or to the output of the tests.
    """
    command = [sys.executable, "-m", __spec__.name, kind, name, str(file)]
    if log is None:
        return subprocess.Popen(command, cwd=_ROOT, start_new_session=True)
    with log.open("ab") as output:
        return subprocess.Popen(command, cwd=_ROOT, start_new_session=True, stdout=output, stderr=output)


def main() -> None:
    """Runs the worker until it is killed."""
    kind, name, file = sys.argv[1:]
    reporter = Reporter(None, f"{kind}:{name}", CollectorRegistry())
    _RUNS[kind](config.load(Path(file)), name, 1, reporter, threading.Event())


if __name__ == "__main__":
    main()
