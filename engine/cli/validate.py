"""`jms-bridge validate`: every fault of a configuration at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.fault_reports import FaultFormat, report
from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, examples
from engine.errors import UsageError
from engine.printable import printable
from routes.errors import ConfigurationError, Level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from routes.errors import Fault
    from routes.model import Config

__all__ = ["register", "validate"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog=examples(
            "jms-bridge validate",
            "jms-bridge validate -c /etc/jms-bridge.properties",
            "jms-bridge validate --json",
            "jms-bridge validate --format github test.properties production.properties",
            "jms-bridge validate --format sarif > faults.sarif",
        )
    )(validate)


def validate(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Properties files. Default: the one of --config.", readable=False),
    ] = None,
    config: ConfigFile = DEFAULT_CONFIG,
    json_output: Json = False,
    form: Annotated[
        FaultFormat,
        typer.Option(
            "--format",
            metavar="text|json|github|sarif",
            help="For people; a JSON value for each fault; annotations of GitHub Actions; SARIF 2.1.0.",
        ),
    ] = FaultFormat.TEXT,
) -> None:
    """Check configurations and show every fault, with its place and what to do. Needs no server.

    Exits with 0 if the bridge would start on each of them (warnings are shown), with 2 if not.
    """
    from routes.config import lint

    if json_output and form not in (FaultFormat.TEXT, FaultFormat.JSON):
        msg = f"--json and --format {form} do not go together"
        raise UsageError(msg)
    form = FaultFormat.JSON if json_output else form
    linted = {file: lint(file) for file in files or [config]}
    if form is FaultFormat.TEXT:
        for found in linted.values():
            for fault in found.faults:
                typer.echo(printable(str(fault)))
            typer.echo(printable(_summary(found.config, found.faults)))
    else:
        for line in report([fault for found in linted.values() for fault in found.faults], form):
            typer.echo(line)
    if any(found.config is None for found in linted.values()):
        raise typer.Exit(ConfigurationError.exit_code)


def _summary(config: Config | None, faults: Sequence[Fault]) -> str:
    errors = sum(fault.level is Level.ERROR for fault in faults)
    found = f"{_count(errors, 'error')}, {_count(len(faults) - errors, 'warning')}"
    if config is None:
        return f"{found}: the bridge would not start"
    content = [_count(len(config.own_routes), "route"), _count(len(config.sources), "source")]
    if config.sinks:
        content.append(_count(len(config.sinks), "sink"))
    return f"{config.path}: {', '.join(content)}; {found}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
