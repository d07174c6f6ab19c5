"""A worker of source `src` that dies between journal and acknowledgement: `python -m … CONFIG WORKER DONE DIES`.

The first `DONE` acknowledgements go out, all others do not; with the one of number `DIES` it kills itself. By then the
journal has at least so many.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from engine.connectors.system import connector
from engine.delivery.source_loop import run_source
from engine.telemetry.status import Reporter
from routes import config as configuration
from routes.systems import all_systems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.base import Source
    from engine.connectors.endpoint import SystemEndpoint
    from routes.model import SourceConfig


MakeSource = Callable[["SystemEndpoint[SourceConfig]", int], "Source"]


def dying(make: MakeSource, done: int, dies: int) -> MakeSource:
    """Makes sources like `make`, which die."""

    def made(endpoint: SystemEndpoint[SourceConfig], worker: int) -> Source:
        source: Any = make(endpoint, worker)
        acknowledge, asked = source.acknowledge, 0

        def never(tokens: Sequence[object]) -> None:
            nonlocal asked
            left = max(done - asked, 0)
            asked += len(tokens)
            if left:
                acknowledge(tokens[:left])
            if asked >= dies:
                os.kill(os.getpid(), signal.SIGKILL)

        source.acknowledge = never
        return source  # type: ignore[no-any-return]

    return made


def main() -> None:
    """Runs until it dies."""
    config = configuration.load(Path(sys.argv[1]))
    worker, done, dies = (int(number) for number in sys.argv[2:])
    for system in all_systems():
        described: Any = connector(system)
        described.make_source = dying(described.make_source, done, dies)
    run_source(config, "src", worker, Reporter(None, "source:src", CollectorRegistry()), threading.Event())


if __name__ == "__main__":
    main()
