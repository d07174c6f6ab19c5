"""`jms-bridge message`: one message by a record of it, and its timeline."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli.options import DEFAULT_CONFIG, Base64, ConfigFile, Json, command, load
from engine.cli.output import BodyFormat, Item, item_text, record_json
from engine.printable import json_text, printable
from engine.telemetry.amounts import duration
from engine.times import iso

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.find.timeline import Timeline, TimelineEvent

__all__ = ["message", "timeline_json", "timeline_text"]

_WIDTH = 80
_TIME, _AFTER = 24, 10
"""Columns of the time, and of the time since the event before."""
_INDENT = "    "


@command(
    "jms-bridge message 0:17",
    "jms-bridge message orders:2:4711",
    "jms-bridge message jms-bridge.journal:0:17 --json",
)
def message(
    position: Annotated[
        str,
        typer.Argument(
            metavar="[TOPIC:]PARTITION:OFFSET",
            help="Record of the message: in a destination, a sink's topic, the dead letters, or (without a topic) the "
            "journal.",
        ),
    ],
    json_output: Json = False,
    base64: Base64 = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Show one record of a message, and the message's timeline.

    The timeline follows the message from its source through journal, routes, destinations, dead letters, replays and
    sinks to a reply. It names each record, and the reason why an event is not known. Nothing is changed.
    """
    from engine.find.timeline import timeline
    from engine.kafka.reader import Position

    settings = load(config)
    story = timeline(settings, Position.parse(position, settings.journal.topic))
    if json_output:
        typer.echo(json_text(timeline_json(story)))
        return
    typer.echo(item_text(Item.of(story.record), BodyFormat.BASE64 if base64 else BodyFormat.HEX))
    typer.echo("\n".join(timeline_text(story)))


def timeline_text(timeline: Timeline) -> list[str]:
    """Lines for people: of each event its time, the time since the event before, its name, its record and detail."""
    lines = []
    for event, after_ms in _with_durations(timeline):
        time = "" if event.at is None else iso(event.at)
        after = "" if after_ms is None else f"+{duration(after_ms / 1000)}"
        record = "" if event.record is None else f"  {event.record}"
        lines.append(printable(f"{time:<{_TIME}}{after:>{_AFTER}}  {event.what}{record}"))
        lines += textwrap.wrap(
            printable(event.detail),
            _WIDTH,
            initial_indent=_INDENT,
            subsequent_indent=_INDENT,
            break_on_hyphens=False,
        )
        lines += [f"{_INDENT}{event.link}"] if event.link else []
    return lines


def timeline_json(timeline: Timeline) -> dict[str, Any]:
    """A timeline as a JSON object: the record, and its events with times in ISO 8601 and in milliseconds."""
    return {
        **Item.of(timeline.record).place,
        **record_json(timeline.record.record),
        "events": [
            {
                "time": None if event.at is None else iso(event.at),
                "time_ms": event.at,
                "after_ms": after_ms,
                "what": event.what,
                "detail": event.detail,
                "record": None if event.record is None else str(event.record),
                "link": event.link or None,
            }
            for event, after_ms in _with_durations(timeline)
        ],
    }


def _with_durations(timeline: Timeline) -> Iterator[tuple[TimelineEvent, int | None]]:
    """Yields each event with the milliseconds since the last event before it that has a time; None without one."""
    last: int | None = None
    for event in timeline.events:
        yield event, None if event.at is None or last is None else event.at - last
        last = last if event.at is None else event.at
