"""`jms-bridge validate`: every fault of a configuration at once."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import typer

from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, examples
from engine.cli.output import printable
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
        )
    )(validate)


def validate(config: ConfigFile = DEFAULT_CONFIG, json_output: Json = False) -> None:
    """Check the configuration and show every fault, with its place and what to do. Needs no server.

    Exits with 0 if the bridge would start on it (warnings are shown), with 2 if not.
    """
    from routes.config import lint

    linted = lint(config)
    for fault in linted.faults:
        typer.echo(json.dumps(_as_json(fault), ensure_ascii=False) if json_output else printable(str(fault)))
    if not json_output:
        typer.echo(_summary(linted.config, linted.faults))
    if linted.config is None:
        raise typer.Exit(ConfigurationError.exit_code)


def _as_json(fault: Fault) -> dict[str, str | int]:
    return dataclasses.asdict(fault)


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
