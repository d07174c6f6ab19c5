"""Keeps the fast tests without processes: what starts one belongs in tests/integration."""

from __future__ import annotations

import multiprocessing.process
import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

# Every other way of the standard library ends in one of these.
STARTS = (
    (subprocess.Popen, "__init__"),
    (multiprocessing.process.BaseProcess, "start"),
    (os, "fork"),
    (os, "forkpty"),
    (os, "posix_spawn"),
    (os, "posix_spawnp"),
    (os, "system"),
)


@contextmanager
def _no_process() -> Iterator[None]:
    """Fails a test that starts a process, whatever it catches: the failure is not an Exception."""

    def refuse(*arguments: object, **_options: object) -> None:
        command = arguments[1:] or arguments
        pytest.fail(f"tests/unit starts no process, this test starts {command}: move it to tests/integration")

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in STARTS:
            patch.setattr(owner, name, refuse)
        yield


# Both, and not a fixture: a server that several tests share starts before any fixture of a single test.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None]:
    with _no_process():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    with _no_process():
        yield
