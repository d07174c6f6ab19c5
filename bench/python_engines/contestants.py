"""Programs that run a workload: the engine, and those of `programs`, each with two workers."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from bench import programs
from bench.processes import running
from bench.python_engines.environments import environment
from bench.stream_contestants import StreamContestant
from engine.embedded import free_ports

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from bench.processes import ProcessTree
    from bench.stream_contestants import StreamPlace

__all__ = ["PythonEngine", "PythonEngineContestant"]

_WORKERS = 2
_PACKAGE = "bench.python_engines.programs"


class PythonEngine(StrEnum):
    """Engine that takes part."""

    ENGINE = "engine"
    QUIX = "quix"
    BYTEWAX = "bytewax"


@dataclass(frozen=True, slots=True)
class PythonEngineContestant:
    """Engine with a workload."""

    engine: PythonEngine
    workload: str

    def running(self, place: StreamPlace) -> AbstractContextManager[ProcessTree]:
        """The program for the time of the block."""
        if self.engine is PythonEngine.ENGINE:
            return StreamContestant("batch", is_exact=True).running(place)
        place.state.mkdir(parents=True, exist_ok=True)
        given = {
            "bootstrap": place.bootstrap,
            "workload": self.workload,
            "input": place.events,
            "output": place.output,
            "group": f"{self.workload}-{place.run}",
            "state": str(place.state),
        }
        commands, variables = _COMMANDS[self.engine](given)
        command = [sys.executable, "-m", "bench.python_engines.launcher", json.dumps(commands)]
        variables = {"PYTHONPATH": str(programs.ROOT), **variables}
        return running(command, place.folder / f"{place.run}.log", programs.ROOT, variables)


_Started = tuple[list[list[str]], dict[str, str]]
"""Commands that run beside each other, and variables of their environment."""


def _program(engine: PythonEngine, name: str, given: Mapping[str, str]) -> list[str]:
    pairs = (f"{key}={value}" for key, value in given.items())
    return [str(environment(engine) / "python"), "-m", f"{_PACKAGE}.{name}", *pairs]


def _quix(given: Mapping[str, str]) -> _Started:
    # Each process has a folder of its own, as RocksDB opens a store in one process only.
    each = [{**given, "state": f"{given['state']}/{number}"} for number in range(_WORKERS)]
    return [_program(PythonEngine.QUIX, "quix", one) for one in each], {}


def _bytewax(given: Mapping[str, str]) -> _Started:
    python = str(environment(PythonEngine.BYTEWAX) / "python")
    subprocess.run([python, "-m", "bytewax.recovery", given["state"], str(_WORKERS)], check=True)
    addresses = ";".join(f"127.0.0.1:{port}" for port in free_ports(_WORKERS))
    common = [python, "-m", "bytewax.run", f"{_PACKAGE}.wax:flow()", "-r", given["state"], "-s", "10", "-b", "0"]
    commands = [[*common, "-i", str(number), "-a", addresses] for number in range(_WORKERS)]
    return commands, {"BENCH_ARGUMENTS": json.dumps(dict(given))}


_COMMANDS = {
    PythonEngine.QUIX: _quix,
    PythonEngine.BYTEWAX: _bytewax,
}
