"""Feeds every target with wrong inputs for a while: `make fuzz`, or `python -m tests.fuzz [--seconds N] [TARGET ...]`.

Each target runs in a process of its own, so that its peak of memory is its own. Where atheris is installed
(`pip install atheris`, no part of the project's pins) it finds inputs by the code that they reach; else they are random
changes of well-formed ones. Inputs that break a target stay in `var/fuzz`; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from importlib.util import find_spec
from pathlib import Path
from random import Random

import structlog

ROOT = Path(__file__).parents[2]
BROKEN = ROOT / "var" / "fuzz"

_LONGEST_SECONDS = 5.0
"""For one input."""
_GRACE_SECONDS = 300.0
_SAID = re.compile(r"stat::(?P<name>number_of_executed_units|peak_rss_mb):\s+(?P<value>\d+)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help="names of targets, with _ for blanks; all without any")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.one:
        # What a target logs would take most of the time.
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
        (name,) = wanted.targets
        return (_guided if find_spec("atheris") else _random)(name, wanted.seconds)
    from tests.fuzz import rows
    from tests.fuzz.targets import TARGETS

    names = [*(target.name.replace(" ", "_") for target in TARGETS), rows.NAME]
    if unknown := set(wanted.targets) - set(names):
        parser.error(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    print(f"{'target':<20} {'inputs':>10} {'seconds':>8} {'peak MiB':>9}  failures", flush=True)
    return max(_shown(name, wanted.seconds) for name in wanted.targets or names)


def _shown(name: str, seconds: float) -> int:
    """Runs a target in a process of its own; 1 if it broke."""
    print(f"{name:<20} ", end="", flush=True)
    from tests.fuzz import rows

    command = [sys.executable, "-m", "tests.fuzz", "--one", "--seconds", str(seconds), name]
    if name == rows.NAME:
        command = rows.fuzz_command(seconds)
    begun = time.monotonic()
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds + _GRACE_SECONDS,
            check=False,
        )
        output, failed = done.stdout + done.stderr, done.returncode != 0
    except subprocess.TimeoutExpired:
        output, failed = "it hangs", True
    found = {match["name"]: match["value"] for match in _SAID.finditer(output)}
    inputs, peak = (found.get(key, "?") for key in ("number_of_executed_units", "peak_rss_mb"))
    print(f"{inputs:>10} {time.monotonic() - begun:>8.0f} {peak:>9}  {int(failed)}", flush=True)
    if failed:
        print(output[-4000:], file=sys.stderr)
    return int(failed)


def _random(name: str, seconds: float) -> int:
    """Random changes, until one breaks the target."""
    from tests.fuzz.mutation import mutated
    from tests.fuzz.targets import MOST_BYTES, TARGETS

    target = next(target for target in TARGETS if target.name.replace(" ", "_") == name)
    random, count, code = Random(), 0, 0
    deadline = time.monotonic() + seconds
    while code == 0 and (now := time.monotonic()) < deadline:
        data = mutated(random, target.seeds, MOST_BYTES)
        count += 1
        try:
            target.feed(data)
            took = time.monotonic() - now
            assert took < _LONGEST_SECONDS, f"it took {took:.1f} s"
        except Exception:
            code = 1
            traceback.print_exc()
            BROKEN.mkdir(parents=True, exist_ok=True)
            file = BROKEN / f"{name}-{count}"
            file.write_bytes(data)
            print(f"broken by {file}: {json.dumps(data.decode('latin-1'))[:500]}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"stat::number_of_executed_units: {count}\nstat::peak_rss_mb: {peak}")
    return code


def _guided(name: str, seconds: float) -> int:
    """Atheris; it ends the process itself."""
    import atheris

    with atheris.instrument_imports(include=["engine", "routes"]):
        from tests.fuzz.targets import MOST_BYTES, TARGETS
    target = next(target for target in TARGETS if target.name.replace(" ", "_") == name)
    BROKEN.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(target.seeds):
            (Path(folder) / str(number)).write_bytes(seed)
        limits = [f"-max_total_time={seconds:.0f}", f"-max_len={MOST_BYTES}", f"-timeout={_LONGEST_SECONDS:.0f}"]
        prefix = f"-artifact_prefix={BROKEN}/{name}-"
        atheris.Setup([sys.argv[0], *limits, prefix, "-print_final_stats=1", "-rss_limit_mb=1024", folder], target.feed)
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
