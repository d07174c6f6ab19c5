"""The second tour of README.md, beside a bridge: each command in its order prints what the page shows."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.integration.bridge_process import ROOT, wait
from tests.integration.restarted_bridge.conftest import TO_A
from tests.waiting import patience

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.restarted_bridge.conftest import Editor

PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
TOUR = PAGE.partition("## A topology of your own\n")[2].partition("\n## ")[0]
(PROGRAM,) = re.findall(r"^```python\n(.*?)^```", TOUR, re.MULTILINE | re.DOTALL)
(SETTING,) = re.findall(r"^```properties\n(.*?)^```", TOUR, re.MULTILINE | re.DOTALL)
SHOWN = {
    command: shown
    for block in re.findall(r"^```console\n(.*?)^```", TOUR, re.MULTILINE | re.DOTALL)
    for command, shown in re.findall(r"^\$ jms-bridge (.+)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
}
TEST, RUN, SEND, RECEIVE, RELOAD, STATE = SHOWN
FIRST = 'send queue:payments --property amount=5000 "no correlation id"'
"""The payment of the first tour, with which this one begins."""
PAYMENTS = f"{TO_A}source.jms.destinations=queue:orders, queue:load, queue:payments\n"


def shape(text: str) -> str:
    """A text without what differs from run to run: hashes, times, ports, positions, sums of a minute."""
    return re.sub(r"\d+", "0", re.sub(r"\b[0-9a-f]{16}\b", "HASH", text))


class Terminal:
    """Commands of the tour, in the folder of a bridge."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output = folder / "tour.out"
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
        (folder / "examples").symlink_to(ROOT / "examples")

    def run(self, command: str) -> str:
        """What a command prints."""
        shell = ["sh", "-c", f"jms-bridge {command}"]
        return subprocess.run(
            shell, cwd=self.folder, env=self._environment, stdout=subprocess.PIPE, text=True, check=False
        ).stdout

    @contextmanager
    def running(self, command: str) -> Iterator[None]:
        """A command that runs until Ctrl-C, from its first line on."""
        with self.output.open("w") as output:
            shell = ["sh", "-c", f"exec jms-bridge {command}"]
            process = subprocess.Popen(shell, cwd=self.folder, env=self._environment, stdout=output, stderr=output)
        try:
            wait(lambda: shape(SHOWN[command]) in shape(self.output.read_text()), self.output.read_text)
            yield
            process.send_signal(signal.SIGINT)
            assert process.wait(patience(60)) == 0, self.output.read_text()
        finally:
            process.kill()
            process.wait()

    def shows(self, command: str) -> None:
        """Waits until a command prints what the page shows."""
        wait(lambda: shape(self.run(command)) == shape(SHOWN[command]), lambda: f"{command}: {self.run(command)}", 120)

    def totals(self, command: str) -> dict[str, float]:
        """The total of each window that a command prints, by the begin of the window."""
        rows = re.findall(r'"window_start": ?"([^"]+)".*"total": ?([\d.]+)', self.run(command.partition(" |")[0]))
        return {begin: float(total) for begin, total in rows}


def test_the_program_is_that_of_the_example() -> None:
    example = (ROOT / "examples/queue_totals.py").read_text(encoding="utf-8")
    assert "".join(f"    {line}\n" for line in PROGRAM.splitlines()) in example


def test_the_commands_print_what_the_page_shows(editor: Editor) -> None:
    terminal = Terminal(editor.bridge.file.parent)
    editor.reload(PAYMENTS)
    try:
        assert f"$ jms-bridge {FIRST}\n{terminal.run(f'{FIRST} 2>&1').partition(' at ')[0]}" in PAGE
        with terminal.running(RUN):
            assert shape(terminal.run(f"{SEND} 2>&1")) == shape(SHOWN[SEND])
            terminal.shows(RECEIVE)
        published = terminal.totals(RECEIVE)
        assert sum(published.values()) == 5070
        editor.write(PAYMENTS + SETTING)
        assert shape(terminal.run(RELOAD)) == shape(SHOWN[RELOAD])
        # The page costs less than a command, while the topology starts.
        state = "/topologies/state?topology=queue-totals&node=totals&key=queue:payments"
        wait(lambda: "queue:payments" in editor.bridge.get(state)[1], lambda: editor.bridge.get(state))
        assert "queue-totals" in editor.bridge.get("/topologies")[1]
        terminal.shows(STATE)
        # The first window may have expired meanwhile.
        kept = terminal.totals(STATE)
        assert kept.items() <= published.items()
        assert max(kept) == max(published)
    finally:
        editor.reload(TO_A)
