"""`python -m engine.supervision` is the process of one part, as a supervisor starts it.

`jms-bridge run --only PART` is the command for operators; its imports would take half a second of each process.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.spark.launch import Launch

__all__: list[str] = []


def _main() -> int:
    """Runs the part that the arguments name; returns the exit status."""
    parser = argparse.ArgumentParser(prog="engine.supervision", description="Runs one part for a supervisor.")
    parser.add_argument("--config", help="properties file of the bridge, for process lists")
    parser.add_argument("--only", required=True, metavar="PART")
    parser.add_argument("--worker", type=int, required=True, metavar="NUMBER")
    parser.add_argument("--status-fd", type=int, required=True, metavar="DESCRIPTOR")
    parser.add_argument("--launch-fd", type=int, metavar="DESCRIPTOR", help="file about a JVM to start at once")
    given = parser.parse_args()
    launched = None if given.launch_fd is None else _launched(given.launch_fd)
    from engine.telemetry import light_structlog  # noqa: F401, I001 # before those that import structlog
    from engine.supervision.worker import run

    return run(given.only, given.worker, given.status_fd, launched)


def _launched(descriptor: int) -> Launch | None:
    """The JVM that is starting while this process imports its modules; None if it does not start.

    The part then tries once more, and reports the reason.
    """
    from engine.errors import SetupError
    from engine.spark.launch import launch_by

    with suppress(SetupError, OSError):
        return launch_by(descriptor)
    return None


if __name__ == "__main__":
    sys.exit(_main())
