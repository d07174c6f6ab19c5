"""The router as a process of its own, for tests that kill it: `python router_process.py FILE`.

Writes a status line about every second; stops in good order when its input ends. The exit status is that of the error.
"""

import os
import sys
from pathlib import Path
from threading import Event, Thread

import structlog
from prometheus_client import CollectorRegistry

from engine.router.runtime import run_router
from engine.telemetry.status import Reporter
from routes.config import load
from routes.errors import BridgeError


def main() -> int:
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    stop = Event()

    def stop_at_the_end_of_input() -> None:
        sys.stdin.read()
        stop.set()

    Thread(target=stop_at_the_end_of_input, daemon=True).start()
    return route(Path(sys.argv[1]), os.dup(1), stop)


def route(properties: Path, fd: int, stop: Event) -> int:
    """Runs the router until `stop` is set, with its status to `fd`; the exit status."""
    with Reporter(fd, "router", CollectorRegistry()) as status:
        try:
            run_router(load(properties), status, stop)
        except BridgeError as error:
            status.error(error)
            return error.exit_code
        except Exception as error:
            status.error(error)
            raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
