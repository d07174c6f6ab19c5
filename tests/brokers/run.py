"""Runs cases at a broker, and tells what became of each."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from engine.connectors.base import NotConnectedError, RefusedError
from engine.errors import HardFailureError, SetupError, UnreachableError
from tests.brokers.bench import Bench, first_line
from tests.brokers.broker import Protocol
from tests.brokers.results import Result, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.brokers.broker import Broker

__all__ = ["run_cases"]


def run_cases(
    name: str,
    broker: Broker,
    protocols: Sequence[Protocol],
    cases: Mapping[str, Callable[[Bench], None]],
    bootstrap: str,
    folder: Path,
    waiting: int,
) -> Iterator[tuple[Result, float]]:
    """Yields the result of each case over each protocol at a broker that runs, with the seconds it took."""
    for protocol in protocols:
        bench = Bench(broker, protocol, bootstrap, folder, waiting)
        client = "Qpid JMS" if bench.client is Protocol.AMQP else "its JMS client"
        for title, case in cases.items():
            began = time.monotonic()
            verdict, notes = _run(bench, case)
            taken = time.monotonic() - began
            yield Result(name, broker.title, broker.version, protocol, client, title, verdict, notes), taken


def _run(bench: Bench, case: Callable[[Bench], None]) -> tuple[Verdict, Sequence[str]]:
    try:
        with bench.case():
            case(bench)
    except HardFailureError as error:
        return Verdict.REFUSED, [first_line(error)]
    except (NotConnectedError, RefusedError, UnreachableError, SetupError, AssertionError, OSError) as error:
        return Verdict.DIFFERS, [*bench.differences, first_line(error)]
    if bench.differences:
        return Verdict.DIFFERS, [*bench.differences, *bench.remarks]
    return Verdict.OK, bench.remarks
