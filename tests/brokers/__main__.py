"""Starts each broker, runs the cases over every protocol that it speaks, and writes docs/brokers.md.

Examples:
  python -m tests.brokers                                      all brokers; about an hour
  python -m tests.brokers --only rabbitmq --protocol stomp     a broker over one protocol
  python -m tests.brokers --only classic6 --case selectors     one case
  python -m tests.brokers --waiting 10000 --skip-load          fewer messages, and no kills
  python -m tests.brokers --page                               makes the page again, and runs nothing

Cells that were not run keep what a former run found, in tests/brokers/results.json.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import tempfile
from pathlib import Path

import structlog

from engine.embedded import EmbeddedKafka, free_ports
from engine.errors import SetupError
from engine.file_lock import lock
from tests.brokers.broker import Protocol
from tests.brokers.cases import CASES
from tests.brokers.faults import FAULTS
from tests.brokers.packages import CACHE
from tests.brokers.registry import BROKERS
from tests.brokers.results import PAGE, Result, read, write
from tests.brokers.run import run_cases
from tests.conftest import JARS

_ALL = {**CASES, **FAULTS}
CASE_NAMES = list(_ALL)
"""The rows of the tables."""


def main() -> int:
    """Exit status 0 when all brokers that were asked for have run, 1 when one could not be started."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.brokers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=BROKERS, help="a broker; may be given several times")
    parser.add_argument(
        "--protocol", action="append", choices=list(Protocol), type=Protocol, help="a protocol; likewise"
    )
    parser.add_argument(
        "--case", action="append", choices=_ALL, metavar="CASE", help=f"a case; likewise: {', '.join(_ALL)}"
    )
    parser.add_argument("--skip-load", action="store_true", help="not those with kills and thousands of messages")
    parser.add_argument(
        "--waiting", type=int, default=100_000, help="messages that wait in a queue (default: %(default)s)"
    )
    parser.add_argument("--page", action="store_true", help="only make the page from the results that are there")
    wanted = parser.parse_args()
    if wanted.page:
        write(read(), CASE_NAMES)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    cases = {
        name: case for name, case in (CASES if wanted.skip_load else _ALL).items() if name in (wanted.case or _ALL)
    }
    missing = 0
    with tempfile.TemporaryDirectory(prefix="brokers-") as folder:
        kafka = EmbeddedKafka(Path(folder), free_ports(1)[0], JARS)
        kafka.start()
        try:
            for name in wanted.only or BROKERS:
                broker = BROKERS[name](Path(folder))
                protocols = [each for each in broker.speaks if each in (wanted.protocol or Protocol)]
                try:
                    with broker:
                        print(f"{broker.title} {broker.version}: ready", flush=True)
                        for result, seconds in run_cases(
                            name, broker, protocols, cases, kafka.bootstrap, Path(folder), wanted.waiting
                        ):
                            _keep(result)
                            _tell(result, seconds)
                except SetupError as error:
                    missing += 1
                    print(f"{name}: not run: {error}", file=sys.stderr, flush=True)
        finally:
            kafka.stop()
    print(f"written: {PAGE}")
    return int(bool(missing))


def _tell(result: Result, seconds: float) -> None:
    notes = f": {'; '.join(result.notes)}" if result.notes else ""
    print(f"  {result.protocol:5} {result.case}: {result.verdict}{notes} ({seconds:.0f} s)", flush=True)


def _keep(result: Result) -> None:
    """Puts a result into the file in place of a former run's, and makes the page again; runs may go side by side."""
    brokers, protocols, cases = list(BROKERS), list(Protocol), CASE_NAMES
    # Only Maven's first jar makes the folder, and Artemis needs none.
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "results.lock").open("w") as file:
        lock(file.fileno())
        # A table is of one version.
        former = [each for each in read() if each.broker != result.broker or each.version == result.version]
        found = {(each.broker, each.protocol, each.case): each for each in [*former, result] if each.case in _ALL}
        rows = sorted(found, key=lambda row: (brokers.index(row[0]), protocols.index(row[1]), cases.index(row[2])))
        write([found[row] for row in rows], cases)


if __name__ == "__main__":
    sys.exit(main())
