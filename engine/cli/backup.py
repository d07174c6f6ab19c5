"""`jms-bridge backup | restore`: the progress of a bridge in one file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.options import DEFAULT_CONFIG, ConfigFile, command, load
from engine.cli.output import note, version
from engine.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.backup.restore import Restore
    from engine.kafka.offsets import Topics

__all__ = ["backup", "restore"]

_File = Annotated[Path, typer.Argument(metavar="FILE", help="File of the backup, as in bridge.tar.gz.", readable=False)]


@command(
    "jms-bridge backup /backup/bridge-2026-11-28.tar.gz",
    "jms-bridge backup -c /etc/jms-bridge/jms-bridge.properties bridge.tar.gz",
)
def backup(file: _File, config: ConfigFile = DEFAULT_CONFIG) -> None:
    """Write the progress of a bridge to a file: its checkpoint, its state topic and the positions of sinks and sources.

    The bridge may be running. The file holds the secret of the checkpoint, so only its owner may read it. It has no
    messages: they are in Kafka, and so are dead letters. The state of topologies is in the folder `topologies.state`,
    which can be copied while they are stopped.
    """
    from engine.backup.archive import write
    from engine.backup.save import saved

    archive = saved(load(config, logs=False), version())
    write(file, archive)
    files = f"{len(archive.files)} files of the checkpoint, " if archive.files else ""
    notes = f"{len(archive.notes)} records of the state topic"
    typer.echo(printable(f"{file}: {files}{notes}, {_positions(archive.positions)}"))
    if not archive.files:
        note(
            f"without the checkpoint {archive.origin.checkpoint}: there is none there, or it is at a URI, whose file "
            "system makes its copies"
        )


@command(
    "jms-bridge restore bridge.tar.gz --dry-run",
    "jms-bridge restore bridge.tar.gz",
    "jms-bridge restore bridge.tar.gz --replace --yes",
)
def restore(
    file: _File,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Restore the checkpoint also where there is one; the present folder gets another name."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the parts that would be restored, and change nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Restore the lost parts of a stopped bridge's progress from the file that `jms-bridge backup` wrote.

    A part that is not lost stays, since it is as new as the backup, or newer: the checkpoint is restored where its
    folder is missing or empty, a record of the state topic where its key is missing, and a position of a group where
    the group has none. The router then goes on without loss or duplicates, as after a crash.

    The command refuses while a bridge with this `bridge.id` runs, and where the journal is another topic than that of
    the backup, since its positions are offsets of that topic.
    """
    from engine.backup.archive import read
    from engine.backup.restore import Restore

    archive = read(file)
    plan = Restore.of(load(config, logs=False), archive, replace=replace)
    origin = archive.origin
    note(printable(f"{file}: bridge {origin.bridge_id} on {origin.host}, {origin.time}, version {origin.version}"))
    if plan.is_empty:
        typer.echo("nothing is missing")
        return
    for line in _lines(plan):
        typer.echo(printable(line))
    if dry_run:
        return
    if not yes:
        typer.confirm("Restore this?", abort=True, err=True)
    plan.run()
    note("restored; start the bridge")


def _lines(plan: Restore) -> Iterator[str]:
    """A line for each part of a bridge that a restore changes."""
    root = plan.config.router.checkpoint
    if plan.replaced is not None:
        yield f"{root}: gets the name {plan.replaced}"
    if plan.files:
        yield f"{root}: {len(plan.files)} files"
    if plan.notes:
        yield f"{plan.config.journal.state_topic}: {len(plan.notes)} records"
    for group, topics in plan.positions.items():
        yield f"{group}: {_positions({group: topics})}"


def _positions(groups: Mapping[str, Topics]) -> str:
    count = sum(len(offsets) for topics in groups.values() for offsets in topics.values())
    return f"positions of {count} partition{'' if count == 1 else 's'}"
