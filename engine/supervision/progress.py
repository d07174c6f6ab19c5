"""The terminal output of `jms-bridge run`: which parts start, where they run, and commands to try next.

With `JMS_BRIDGE_LOG=json` nothing is printed: the progress is log events.
"""

from __future__ import annotations

import time
from importlib import metadata
from typing import TYPE_CHECKING

import structlog
from rich.console import Console
from rich.markup import escape

from engine.supervision.example import try_out
from engine.telemetry.status import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.supervision.parts import Part
    from engine.telemetry.status import Status
    from routes.model import Config

__all__ = ["LoggedProgress", "Progress"]

_log = structlog.get_logger(__name__)

_MARKS = {
    State.READY: "[green]✓[/]",
    State.STARTING: "[dim]…[/]",
    State.DEGRADED: "[yellow]![/]",
    State.STOPPING: "[dim]…[/]",
    State.DOWN: "[red]✗[/]",
    State.PAUSED: "[yellow]‖[/]",
}
_WARNED_OF = (State.DEGRADED, State.DOWN, State.PAUSED)
_WIDE = 200


class Progress:
    """Prints a line for each change of a part's state; on a terminal also the parts waited for, until all are ready.

    Called from one thread.
    """

    def __init__(self, config: Config, parts: Sequence[Part], url: str, console: Console | None = None) -> None:
        self._config = config
        self._url = url
        self._console = console or self._own_console()
        self._width = max(len(part.name) for part in parts)
        self._began = time.monotonic()
        self._shown = {part.name: State.DOWN for part in parts}
        self._complete = False
        self._why = ""
        self._waiting = self._console.status("") if self._console.is_terminal else None

    def begin(self) -> None:
        """Prints the headline: version, bridge, configuration and the parts that start."""
        version = metadata.version("jms-bridge")
        names = ", ".join(self._shown)
        self._print(
            f"[bold]jms-bridge {version}[/]  {escape(self._config.bridge_id)}  {escape(str(self._config.path))}"
        )
        self._print(f"[dim]starting {escape(names)}[/]")

    def show(self, statuses: Sequence[Status]) -> None:
        """Prints the states that changed since the last call.

        When all parts are ready for the first time, it also prints commands to try.
        """
        for status in statuses:
            if status.state is not self._shown.get(status.component, State.DOWN):
                self._shown[status.component] = status.state
                if status.state is not State.STARTING:
                    self._line(status)
        if self._complete:
            return
        late = [f"{status.component}: {status.detail or status.state}" for status in statuses if not _is_ready(status)]
        if not late:
            self._complete = True
            self.end()
            self._next()
        elif self._waiting:
            self._waiting.update(f"[dim]{escape('; '.join(late))}[/]")

    def standing(self, why: str) -> None:
        """Prints why the bridge only stands by, once for each reason; `why` is empty while it leads or is about to."""
        if why == self._why:
            return
        self._why = why
        if why:
            self._stands_by(why)

    def stopping(self) -> None:
        """Prints that the bridge was asked to stop."""
        self.end()
        self._print("[dim]stopping; Ctrl-C again stops at once[/]")

    def end(self) -> None:
        """Ends the display of the parts waited for."""
        if self._waiting:
            self._waiting.stop()

    def _stands_by(self, why: str) -> None:
        self._print(f"  [yellow]-[/] standby: {escape(why)}")

    def _line(self, status: Status) -> None:
        what = status.detail if status.state.is_well else f"{status.state}: {status.detail}".rstrip(": ")
        seconds = time.monotonic() - self._began
        when = "" if self._complete else f"  [dim]{seconds:.1f} s[/]"
        self._print(f"  {_MARKS[status.state]} {status.component.ljust(self._width)}  {escape(what)}{when}")

    def _next(self) -> None:
        seconds = time.monotonic() - self._began
        self._print(f"[green]ready[/] after {seconds:.1f} s, status page and metrics on [bold]{self._url}[/]")
        commands = try_out(self._config)
        for label, command in zip(["try", *[""] * len(commands)], commands, strict=False):
            self._print(f"  {label:3}  [bold]{escape(command)}[/]")
        self._print("[dim]Ctrl-C stops[/]")

    def _print(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)

    @staticmethod
    def _own_console() -> Console:
        """The console of this process, unless another one is given."""
        console = Console()
        return console if console.is_terminal else Console(width=_WIDE, no_color=True)


def _is_ready(status: Status) -> bool:
    return status.state.is_well


class LoggedProgress(Progress):
    """Log events in place of the terminal output; degraded and dead parts are warnings."""

    def begin(self) -> None:
        """Logs which bridge starts, and its parts."""
        version, path = metadata.version("jms-bridge"), str(self._config.path)
        _log.info("bridge starts", bridge=self._config.bridge_id, version=version, file=path, parts=list(self._shown))

    def stopping(self) -> None:
        """Logs that the bridge was asked to stop."""
        _log.info("bridge stops")

    def _stands_by(self, why: str) -> None:
        _log.info("bridge stands by", why=why)

    def _line(self, status: Status) -> None:
        log = _log.warning if status.state in _WARNED_OF else _log.info
        log(f"part is {status.state}", component=status.component, state=str(status.state), detail=status.detail)

    def _next(self) -> None:
        _log.info("bridge is ready", url=self._url, seconds=round(time.monotonic() - self._began, 1))

    @staticmethod
    def _own_console() -> Console:
        return Console(quiet=True, force_terminal=False)
