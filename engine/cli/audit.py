"""`jms-bridge audit`: the audit of actions of users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, command, load
from engine.cli.output import console, note
from engine.printable import LONGEST_REASON, json_text, printable, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from engine.looks.action import AuditedAction

__all__ = ["audit"]

_ANSWER_SECONDS = 10.0


@command("jms-bridge audit", "jms-bridge audit --user anna --action replay", "jms-bridge audit -n 1000 --json")
def audit(
    user: Annotated[str | None, typer.Option(metavar="TEXT", help="Part of the user's name.")] = None,
    action: Annotated[str | None, typer.Option(metavar="ACTION", help="Action, such as pause or replay.")] = None,
    target: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Part of the target, such as source:orders.")
    ] = None,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, metavar="NUMBER", help="Number of actions to show.")
    ] = 50,
    json_output: Json = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Show the actions of users on the status page and through its API, the newest last.

    Actions are reloads, restarts, pauses, replays, corrections and messages sent. `jms-bridge looks` shows the looks at
    bodies.
    """
    from engine.looks.action import ActionQuestion
    from engine.looks.log import LookTopic, last_actions

    question = ActionQuestion(user or "", action or "", target or "")
    latest = last_actions(LookTopic.of_actions(load(config)), question, count, _ANSWER_SECONDS)
    if json_output:
        for each in latest:
            typer.echo(json_text(each.members()))
    elif latest:
        console().print(_table(latest))
    else:
        note("no such action is noted")


def _table(actions: Sequence[AuditedAction]) -> Table:
    """A line for each action."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("time", "by", "role", "action", "on", "result"):
        table.add_column(name, overflow="fold")
    for each in actions:
        by = "@".join(filter(None, (each.user, each.host)))
        texts = (each.time, by, each.role, each.action, each.target, each.result or "not known")
        table.add_row(*(printable(shortened(text, LONGEST_REASON)) or "-" for text in texts))
    return table
