"""Processes that are one program: all end with the first that ends, and with this one.

Its argument is a JSON array of commands, each an array of texts.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import NoReturn

_POLL_SECONDS = 0.2


def main(commands: list[list[str]]) -> int:
    """Runs the commands beside each other; the exit status of the first that ends."""
    signal.signal(signal.SIGTERM, _stop)
    processes = [subprocess.Popen(command) for command in commands]
    try:
        while True:
            for process in processes:
                if (status := process.poll()) is not None:
                    return status
            time.sleep(_POLL_SECONDS)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def _stop(signum: int, frame: object) -> NoReturn:
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
