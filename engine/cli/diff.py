"""`jms-bridge diff`: what is different between two properties files."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.options import Json, examples
from engine.cli.output import note
from engine.printable import json_text, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from routes.config import Change

__all__ = ["DIFFERENT", "diff", "register"]

DIFFERENT = 1
"""Exit code when there is a difference."""

_NOUNS = {"routes": "route"}
_SIGNS = {"added": "+", "removed": "-", "changed": "~", "moved": ">"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog=examples(
            "jms-bridge diff old.properties jms-bridge.properties",
            "git show HEAD:jms-bridge.properties > /tmp/old.properties; "
            "jms-bridge diff /tmp/old.properties jms-bridge.properties --json",
        )
    )(diff)


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A properties file.", readable=False)],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Another, or what has become of it.", readable=False)],
    json_output: Json = False,
) -> None:
    """Show what is different between two properties files: routes added, removed, changed and moved, and settings.

    Compared is what holds, not how it is written: comments, spelling, and defaults written out are no difference. The
    order of routes is one. Secrets are masked. Exits with 0 if there is no difference, with 1 if there is one, with 2
    if a file cannot be read. Needs no server.
    """
    from routes import config as configuration

    changes = configuration.diff(old, new)
    if json_output:
        for change in changes:
            typer.echo(json_text(dataclasses.asdict(change)))
    else:
        for line in _lines(changes):
            typer.echo(printable(line))
    for path in (old, new):
        if errors := len(configuration.lint(path).errors):
            note(f"{path} has {errors} error{'s' * (errors != 1)}: jms-bridge validate {path}")
    if changes:
        raise typer.Exit(DIFFERENT)


def _lines(changes: Sequence[Change]) -> Iterator[str]:
    """A line for each change; keys of one route, source or sink below its own line."""
    headed = ""
    for change in changes:
        sign, subject = _SIGNS[change.kind], f"{_NOUNS.get(change.section, change.section)} {change.name}"
        if not change.name:
            yield f"{sign} {change.key}  {_values(change)}"
        elif not change.key:
            headed = subject
            yield f"{sign} {subject}" + (f"  was {change.old}, is {change.new}" if change.kind == "moved" else "")
        else:
            if headed != subject:
                headed = subject
                yield f"~ {subject}"
            yield f"    {sign} {change.key.split('.', 2)[2]}  {_values(change)}"


def _values(change: Change) -> str:
    if change.kind == "changed":
        return f"{change.old}  ->  {change.new}"
    return change.new if change.kind == "added" else change.old
