"""The long form: `make chaos`, or `python -m tests.chaos --kills 20 --mode batch`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.chaos.plan import plan, seed
from tests.chaos.report import save
from tests.chaos.run import PER_SECOND, Outcome, run
from tests.chaos.system import System

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.chaos.plan import Step

MODES = ("realtime", "batch")
RESULTS = Path(__file__).parents[2] / "build"


def main() -> int:
    """Exit status 1 when a run found what must not be."""
    parser = argparse.ArgumentParser(prog="tests.chaos", description="Kill all parts of a bridge while messages flow.")
    parser.add_argument("--kills", type=int, default=int(os.environ.get("KILLS") or 100), help="in all modes together")
    parser.add_argument("--mode", choices=MODES, action="append", help="of the router; default: both")
    parser.add_argument("--only", default="", help="faults that have this text in their names, such as router")
    parser.add_argument("--rate", type=int, default=PER_SECOND, help="messages a second to each source")
    arguments = parser.parse_args()
    # Told to end, it ends the bridge as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    modes = arguments.mode or MODES
    chosen = seed()
    outcomes = []
    for mode in modes:
        steps = plan(chosen, arguments.kills // len(modes), arguments.only)
        outcomes.append(_run(mode, chosen, steps, arguments.rate))
        save(outcomes, RESULTS)
    print(f"{RESULTS / 'chaos.md'}, {RESULTS / 'chaos.json'}")
    failed = [_failed(outcome) for outcome in outcomes]
    return int(any(failed))


def _run(mode: str, chosen: int, steps: Sequence[Step], per_second: int) -> Outcome:
    folder = Path(tempfile.mkdtemp(prefix=f"chaos-{mode}-"))
    began = time.monotonic()
    system = System(folder, mode)

    def tell(line: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {line}", flush=True)

    tell(f"{mode}: everything is in {folder}")
    try:
        return run(system, chosen, steps, tell, per_second)
    finally:
        system.end()


def _failed(outcome: Outcome) -> bool:
    faults = outcome.verdict.faults()
    print(f"{outcome.mode}: {outcome.verdict.total}")
    for kind, count in faults.items():
        print(f"{outcome.mode}: {count} {kind}, such as {'; '.join(outcome.verdict.examples[kind])}")
    for name in outcome.stuck:
        print(f"{outcome.mode}: after '{name}' nothing came any more")
    return bool(faults or outcome.stuck)


if __name__ == "__main__":
    sys.exit(main())
