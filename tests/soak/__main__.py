"""`make soak`, or `python -m tests.soak --minutes 10 --rate 5000`."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from random import Random

from tests.chaos.plan import seed
from tests.soak.report import faults, markdown
from tests.soak.run import Soak
from tests.soak.system import bound_topics, make

RESULTS = Path(__file__).parents[2] / "build"


def main() -> int:
    """Exit status 1 when something was lost, doubled, or grows."""
    parser = argparse.ArgumentParser(prog="tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=int, default=10_000, help="messages a second, of all sources together")
    parser.add_argument("--kill-minutes", type=float, default=5, help="between two kills")
    parser.add_argument("--mode", choices=("realtime", "batch"), default="realtime", help="of the router")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    chosen = seed()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    print(f"{arguments.mode}: seed {chosen}; everything is in {folder}", flush=True)
    soak = Soak(make(folder, arguments.mode))
    try:
        soak.system.start()
        bound_topics(soak.system.bridge.bootstrap)
        chance = Random(chosen)  # noqa: S311 # nobody is to be kept from guessing it
        resources = soak.run(chance, arguments.minutes * 60, arguments.rate, arguments.kill_minutes * 60)
    finally:
        soak.system.end()
    RESULTS.mkdir(exist_ok=True)
    text = markdown(soak, resources)
    (RESULTS / "soak.md").write_text(text)
    samples = {part: [asdict(sample) for sample in found] for part, found in resources.samples.items()}
    (RESULTS / "soak.json").write_text(json.dumps({"kills": soak.kills, "samples": samples}) + "\n")
    print(text)
    found = faults(soak, resources)
    print("\n".join(found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
