"""The bridge that all tests of this folder share: its configuration is changed while it runs, it is killed and stopped.

The files run in the order of their names: `test_first_start.py` needs a bridge that has just been started.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.integration.bridge_process import Bridge, configuration, wait

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MORE = "routing.on-unmatched=skip\nroutes.orders.on-soft-failure=dead-letter\n"
TO_A = "routes.all.in.include=msg.address==load\nroutes.all.out.topic=a\nroutes.all.conv.key=number\n"
TO_B = TO_A.replace("topic=a", "topic=b")
LOAD = "source.jms.destinations=queue:orders, queue:load\n"


class Editor:
    """A bridge, and the editor of its file."""

    def __init__(self, folder: Path) -> None:
        self.bridge = Bridge(configuration(folder, f"{MORE}{LOAD}"))
        self.base = self.bridge.file.read_text()
        self.number = 0

    def write(self, more: str) -> None:
        self.bridge.file.write_text(self.base + more)

    def hang_up(self) -> None:
        assert self.bridge.process
        os.kill(self.bridge.process.pid, signal.SIGHUP)

    def reload(self, more: str) -> None:
        """A change that is taken; returns when it is in force, at once if the file is as it was."""

        def taken() -> int:
            output = self.bridge.output
            return output.count("configuration in force") + output.count("configuration read again: nothing has")

        before = taken()
        self.write(more)
        self.hang_up()
        wait(lambda: taken() > before, lambda: self.bridge.output)

    def refused(self, more: str) -> str:
        """A change that is refused; the reason."""
        before = self.status()["reload"]["time"]
        time.sleep(1.1)
        self.write(more)
        self.hang_up()
        wait(lambda: self.status()["reload"]["time"] != before, lambda: self.bridge.output)
        told = self.status()["reload"]
        assert told["success"] is False
        assert self.bridge.metric("jmsbridge_config_last_reload_success") == 0
        return str(told["why"])

    def status(self) -> dict[str, dict[str, object]]:
        return dict(self.bridge.ready()["configuration"])

    def send(self, count: int, **headers: str) -> None:
        self.bridge.send(range(self.number, self.number + count), "load", **headers)
        self.number += count

    def sent_now(self, count: int) -> set[int]:
        """Sends messages; their numbers."""
        first = self.number
        self.send(count)
        return set(range(first, self.number))

    @contextmanager
    def load(self) -> Iterator[None]:
        """Two hundred messages each second, all the while."""
        stop = threading.Event()

        def run() -> None:
            while not stop.is_set():
                self.send(20)
                time.sleep(0.1)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def wait_for_some(self) -> None:
        """Waits until messages of now are routed."""
        name = "jmsbridge_routed_messages_total"
        before = self.bridge.metric(name)
        wait(lambda: self.bridge.metric(name) > before + 100, lambda: self.bridge.output)

    def wait_for_all(self) -> list[list[int]]:
        """Waits until every message sent is in topic a or b, and sees that none is there twice; the numbers of each."""

        def numbers() -> list[list[int]]:
            return [[int(key) for key, _ in self.bridge.records(topic)] for topic in ("a", "b")]

        wait(lambda: len({n for each in numbers() for n in each}) == self.number, lambda: self.bridge.output)
        found = numbers()
        assert [n for n, count in Counter(n for each in found for n in each).items() if count > 1] == []
        return found


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    editor = Editor(tmp_path_factory.mktemp("bridge"))
    editor.write(f"{TO_A}routes.b.in.include=msg.address==never\nroutes.b.out.topic=b\n")
    yield editor
    editor.bridge.end()


@pytest.fixture
def editor(running: Editor) -> Editor:
    """The bridge, running and ready, with what tests before have left in its topics."""
    if not running.bridge.running:
        running.bridge.start()
    running.bridge.wait_ready()
    return running


@pytest.fixture
def bridge(editor: Editor) -> Bridge:
    """The same, for tests that leave its file alone."""
    return editor.bridge
