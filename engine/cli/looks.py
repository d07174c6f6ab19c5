"""`jms-bridge looks`: the audit of looks at bodies of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, command, load
from engine.cli.output import console, note
from engine.printable import LONGEST_REASON, json_text, listed, printable, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from engine.looks.look import Look

__all__ = ["looks"]

_ANSWER_SECONDS = 10.0


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
    if json_output:
        for each in latest:
            typer.echo(json_text(each.members()))
    elif latest:
        console().print(_table(latest))
    else:
        note("nobody has looked at a body yet")


def _table(looks_shown: Sequence[Look]) -> Table:
    """A line for each entry."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("time", "by", "role", "way", "masked", "records"):
        table.add_column(name, overflow="fold")
    for look in looks_shown:
        by = "@".join(filter(None, (look.user, look.host)))
        texts = (look.time, by, look.role, look.way)
        shown = [printable(shortened(text, LONGEST_REASON)) or "-" for text in texts]
        table.add_row(
            *shown, "yes" if look.masked else "no", printable(look.state or listed(list(map(str, look.records))))
        )
    return table
