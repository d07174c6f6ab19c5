"""`jms-bridge looks | audit`: the audits of looks at bodies of messages, and of actions of users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, command, load
from engine.cli.output import console, note
from engine.printable import LONGEST_REASON, json_text, listed, printable, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.looks.action import AuditedAction
    from engine.looks.entry import UserEntry
    from engine.looks.look import Look

__all__ = ["audit", "looks"]

_ANSWER_SECONDS = 10.0
_EntryT = TypeVar("_EntryT", bound="UserEntry")


@command("jms-bridge looks", "jms-bridge looks --user anna", "jms-bridge looks -n 1000 --json")
def looks(
    user: Annotated[str | None, typer.Option(metavar="TEXT", help="Part of the user's name.")] = None,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, metavar="NUMBER", help="Number of entries to show.")
    ] = 50,
    json_output: Json = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Show who looked at the bodies of which messages, on the status page or through its API, the newest last."""
    from engine.looks.log import LookTopic, last_looks

    latest = last_looks(LookTopic.of(load(config)), count, _ANSWER_SECONDS, user or "")
    columns = ("way", "masked", "records")
    _show(latest, columns, _look_cells, "nobody has looked at a body yet", json_output=json_output)


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
    _show(latest, ("action", "on", "result"), _action_cells, "no such action is noted", json_output=json_output)


def _show(
    entries: Sequence[_EntryT],
    columns: Sequence[str],
    cells: Callable[[_EntryT], Sequence[str]],
    nothing: str,
    *,
    json_output: bool,
) -> None:
    """Prints a line for each entry: when and by whom, and the `cells` of `columns`; without entries, `nothing`."""
    if json_output:
        for each in entries:
            typer.echo(json_text(each.members()))
        return
    if not entries:
        note(nothing)
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("time", "by", "role", *columns):
        table.add_column(name, overflow="fold")
    for each in entries:
        by = "@".join(filter(None, (each.user, each.host)))
        table.add_row(*map(_cell, (each.time, by, each.role)), *cells(each))
    console().print(table)


def _look_cells(look: Look) -> Sequence[str]:
    records = printable(look.state or listed(list(map(str, look.records))))
    return _cell(look.way), "yes" if look.masked else "no", records


def _action_cells(action: AuditedAction) -> Sequence[str]:
    return _cell(action.action), _cell(action.target), _cell(action.result or "not known")


def _cell(text: str) -> str:
    return printable(shortened(text, LONGEST_REASON)) or "-"
