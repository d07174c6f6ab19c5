"""`jms-bridge receive`: messages of a Kafka topic, or of a queue, topic or subject of a broker, as they come."""

from __future__ import annotations

from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.destination import Broker, Username, kafka_topic, place_of
from engine.cli.options import DEFAULT_CONFIG, Base64, ConfigFile, Json, Seconds, examples, load
from engine.cli.output import BodyFormat, note
from engine.cli.records import Item, as_json, as_text
from engine.errors import UnreachableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.cli.destination import BrokerDestination
    from engine.peek import KafkaTopicReader, LocatedRecord
    from routes.model import Config

__all__ = ["From", "receive", "register", "show"]


class From(StrEnum):
    """Starting points for reading a Kafka topic."""

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
            "jms-bridge receive amqp:queue/orders --url amqp://127.0.0.1:5672",
            "jms-bridge receive nats:orders.> --follow",
            "jms-bridge receive dropbox:queue/orders --url dropbox:///srv/dropbox",
            "jms-bridge receive nats:orders.eu --stream ORDERS --url nats://127.0.0.1:4222",
        )
    )(receive)


def receive(
    destination: Annotated[
        str,
        typer.Argument(
            metavar="DESTINATION",
            help="kafka:TOPIC, queue:NAME, topic:NAME, nats:SUBJECT (wildcards allowed), dropbox:queue/NAME, "
            "dropbox:topic/NAME, or NAME:ADDRESS with the NAME of a source or sink.",
        ),
    ],
    start: Annotated[
        From, typer.Option("--from", metavar="beginning|end", help="Where to start in a Kafka topic.")
    ] = From.BEGINNING,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, metavar="NUMBER", help="Wait for so many messages, then stop.")
    ] = None,
    timeout: Seconds = 30.0,
    stream: Annotated[
        str | None,
        typer.Option(metavar="STREAM", help="NATS: read from this stream of JetStream instead of subscribing."),
    ] = None,
    url: Broker = None,
    username: Username = None,
    json_output: Json = False,
    base64: Base64 = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Show messages with position, key, headers and body.

    From Kafka it shows what is there and stops at the end; nothing is consumed, other readers are not disturbed. From a
    queue it takes the messages off, as any JMS consumer does, until none is left.

    To a topic or a NATS subject it subscribes, so it shows what is published from now on. From a stream of JetStream it
    shows all that is there, like from Kafka: through a consumer of its own, which it removes in the end, so that nobody
    is disturbed. Only a stream with retention workqueue or interest loses what is shown.
    """
    topic = kafka_topic(destination)
    settings = load(config)
    if topic is not None:
        _no_stream(destination, stream)
        items = _from_kafka(settings, topic, start, count, follow, timeout)
    else:
        items = _from_broker(
            settings,
            place_of(settings, destination, url, username, to_send=False),
            stream,
            count,
            None if follow else timeout,
        )
    shown = show(items, json_output, base64)
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


def _from_broker(
    config: Config, place: BrokerDestination, stream: str | None, count: int | None, seconds: float | None
) -> Iterator[Item]:
    from engine.cli.exchange import take, who

    if not place.has("stream"):
        _no_stream(place.text, stream)
    own = place.source(who("receive"), stream=stream)
    if stream is None:
        yield from take(config, place, own, count, seconds)
        return
    from engine.cli.jetstream import passing_consumer
    from engine.connectors.nats.system import NatsSourceConfig

    assert isinstance(own, NatsSourceConfig)
    with passing_consumer(config, own):
        yield from take(config, place, own, count, seconds)


def _no_stream(destination: str, stream: str | None) -> None:
    if stream is not None:
        msg = f"--stream is for NATS; {destination} is read without"
        raise UsageError(msg)


def _from_kafka(
    config: Config, topic: str, start: From, count: int | None, follow: bool, seconds: float
) -> Iterator[Item]:
    from engine.peek import KafkaTopicReader

    with KafkaTopicReader(config, topic) as reader:
        bounds = reader.bounds()
        starts = {partition: low if start is From.BEGINNING else high for partition, (low, high) in bounds.items()}
        if follow or count is not None:
            found: Iterator[LocatedRecord] = islice(
                reader.read(starts, follow=True, idle_seconds=None if follow else seconds), count
            )
        else:
            found = _to_the_end(reader, starts, seconds)
        yield from map(Item.of, found)


def _to_the_end(reader: KafkaTopicReader, starts: dict[int, int], seconds: float) -> Iterator[LocatedRecord]:
    """Reads the records that the topic has. An empty topic is waited for: the router may be about to publish."""
    empty = True
    for located in reader.read(starts):
        empty = False
        yield located
    if empty:
        note(f"waiting for the first message in kafka:{reader.topic}, {seconds:g} s at most")
        yield from islice(reader.read(starts, follow=True, idle_seconds=seconds), 1)
