"""`jms-bridge doctor`: checks of everything that a bridge needs, with a remedy for each fault."""

from __future__ import annotations

import dataclasses
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, command, read_seconds
from engine.cli.output import console, quiet_log
from engine.printable import json_text, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from engine.doctor import Finding

__all__ = [
    "doctor",
]

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "failed": ("✗", "red")}


@command(
    "jms-bridge doctor",
    "jms-bridge doctor -c /etc/jms-bridge.properties --timeout 15s",
    "jms-bridge doctor --json | jq 'select(.state != \"ok\")'",
)
def doctor(
    config: ConfigFile = DEFAULT_CONFIG,
    json_output: Json = False,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            parser=read_seconds,
            metavar="SECONDS",
            help="Time limit for all checks together, but for the planning of topologies.",
        ),
    ] = 5.0,
) -> None:
    """Check everything that a bridge with this properties file needs, and print a remedy for each fault.

    The command checks programs and versions, the configuration, ports, folders and permissions, disks, the clock, Kafka
    with its topics, the system of each source and sink, and the topologies, which Spark plans, before a start or while
    the bridge runs. It changes nothing: it creates no topic, subscribes to nothing, and takes and sends no message. Run
    it as the user of the bridge.

    The exit code is 0 if no check has failed (warnings are shown), else the code with which `run` would end for the
    first failure: 2 configuration, 3 this machine, 4 a broker refuses, 6 a broker does not answer.
    """
    from engine.doctor import examine, exit_code

    with quiet_log(), _progress() as waiting:
        findings = examine(config, timeout, waiting)
    if json_output:
        for finding in findings:
            typer.echo(json_text(dataclasses.asdict(finding)))
    else:
        _show(findings)
    if code := exit_code(findings):
        raise typer.Exit(code)


def _show(findings: Sequence[Finding]) -> None:
    from rich.text import Text

    screen = console()
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark, colour = _MARKS[finding.state]
        screen.print(
            Text.assemble((mark, colour), f" {printable(finding.name):{width}}  {printable(finding.found)}"),
            soft_wrap=True,
        )
        if finding.remedy:
            screen.print(Text(f"  {'':{width}}  → {printable(finding.remedy)}", "bold"), soft_wrap=True)
    counts = Counter(finding.state.value for finding in findings)
    screen.print(
        f"{counts['ok']} ok, {counts['warning']} warning{'s' * (counts['warning'] != 1)}, {counts['failed']} failed"
    )


@contextmanager
def _progress() -> Iterator[Callable[[Sequence[str]], None]]:
    """Yields a function that shows the checks still running, if stderr is a terminal."""
    from rich.console import Console
    from rich.text import Text

    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield lambda names: None
        return
    with screen.status("") as status:
        yield lambda names: status.update(Text(printable(f"looking at {', '.join(names)}"), "dim"))
