"""`jms-bridge receive`: messages of a Kafka topic, or of a queue or topic of a JMS broker, as they come."""

from __future__ import annotations

from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.destination import KAFKA, Broker, Username, broker_of, split
from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, examples, load
from engine.cli.output import BodyFormat, note
from engine.cli.records import Item, as_json, as_text
from engine.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.peek import Located, Reader
    from routes.model import Config

__all__ = ["Base64", "From", "receive", "register", "show"]

Base64 = Annotated[bool, typer.Option("--base64", help="Show bodies that are not text in base64 instead of hex.")]


class From(StrEnum):
    """Where reading a Kafka topic starts."""

    BEGINNING = "beginning"
    END = "end"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog=examples(
            "jms-bridge receive kafka:orders",
            "jms-bridge receive kafka:orders --from end --follow",
            "jms-bridge receive kafka:orders --count 10 --timeout 30 --json",
            "jms-bridge receive queue:replies --count 1",
        )
    )(receive)


def receive(
    destination: Annotated[str, typer.Argument(metavar="DESTINATION", help="kafka:TOPIC, queue:NAME or topic:NAME.")],
    start: Annotated[
        From, typer.Option("--from", metavar="beginning|end", help="Where to start in a Kafka topic.")
    ] = From.BEGINNING,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, metavar="NUMBER", help="Wait for so many messages, then stop.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.0, metavar="SECONDS", help="How long to wait for a message when there is none.")
    ] = 30.0,
    url: Broker = None,
    username: Username = None,
    json_output: Json = False,
    base64: Base64 = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Show messages with position, key, headers and body.

    From Kafka it shows what is there and stops at the end; nothing is consumed, other readers are not disturbed. From a
    queue it takes the messages off, as any JMS consumer does, until none is left.
    """
    scheme, name = split(destination)
    settings = load(config)
    if scheme == KAFKA:
        shown = show(_from_kafka(settings, name, start, count, follow, timeout), json_output, base64)
    else:
        from engine.cli import stomp

        source = broker_of(settings, destination, url, username)
        shown = show(
            stomp.received(settings, source, destination, count, None if follow else timeout), json_output, base64
        )
    if count is not None and shown < count:
        msg = f"{shown} of {count} messages came from {destination} before {timeout:g} s passed without one"
        raise UnreachableError(msg)
    if not shown and not follow:
        note(f"no messages in {destination}")


def show(messages: Iterable[Item], json_output: bool, base64: bool) -> int:
    """Print each message as it comes; the number of them."""
    shown = 0
    form = BodyFormat.BASE64 if base64 else BodyFormat.HEX
    for item in messages:
        typer.echo(as_json(item) if json_output else as_text(item, form))
        shown += 1
    return shown


def _from_kafka(
    config: Config, topic: str, start: From, count: int | None, follow: bool, seconds: float
) -> Iterator[Item]:
    from engine.peek import Reader

    with Reader(config, topic) as reader:
        bounds = reader.bounds()
        starts = {partition: low if start is From.BEGINNING else high for partition, (low, high) in bounds.items()}
        if follow or count is not None:
            found: Iterator[Located] = islice(
                reader.read(starts, follow=True, idle_seconds=None if follow else seconds), count
            )
        else:
            found = _to_the_end(reader, starts, seconds)
        yield from map(Item.of, found)


def _to_the_end(reader: Reader, starts: dict[int, int], seconds: float) -> Iterator[Located]:
    """What is there; the first message to come if nothing is: the router may be about to publish it."""
    empty = True
    for located in reader.read(starts):
        empty = False
        yield located
    if empty:
        note(f"waiting for the first message in kafka:{reader.topic}, {seconds:g} s at most")
        yield from islice(reader.read(starts, follow=True, idle_seconds=seconds), 1)
