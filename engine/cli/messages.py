"""`jms-bridge send | receive | request | journal tail`: messages to and from brokers and Kafka topics."""

from __future__ import annotations

import time
import uuid
from contextlib import closing
from dataclasses import replace
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.destination import Broker, Username, broker_destination, kafka_topic
from engine.cli.options import (
    DEFAULT_CONFIG,
    Base64,
    ConfigFile,
    Json,
    MessageOptions,
    Seconds,
    command,
    examples,
    load,
    read_predicate,
    read_seconds,
)
from engine.cli.output import BodyFormat, Item, item_json, item_text, note, show_bytes
from engine.connectors.nats.settings import WireFormat
from engine.errors import UnreachableError, UsageError
from engine.message import Message
from engine.printable import json_text, printable
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from engine.claims.bodies import KeptBodies
    from engine.cli.destination import BrokerDestination
    from engine.connectors.base import Delivery, Source
    from engine.kafka.reader import KafkaTopicReader, LocatedRecord
    from routes.kafka_access import KafkaAccess
    from routes.model import Config, SinkConfig

__all__ = ["NoReplyError", "journal", "receive", "request", "send"]

_NO_REPLIES = "{}: Kafka knows no replies; ask at a queue, topic or subject"
_Format = Annotated[
    WireFormat | None,
    typer.Option(
        "--format",
        metavar="headers|json|typed|typed-1.0|raw",
        help="NATS: form of the headers in the message, see sink.NAME.format; raw has none. Default: the format of "
        "the configured sink, else headers.",
    ),
]


class NoReplyError(BridgeError):
    """The request is with the broker, and no reply came in time."""

    exit_code = 7


class _From(StrEnum):
    """Starting points for reading a Kafka topic."""

    BEGINNING = "beginning"
    END = "end"


@command(
    'jms-bridge send queue:orders --property region=emea "hello"',
    'jms-bridge send queue:orders --correlation-id 42 --reply-to queue:replies --count 1000 "hello"',
    "jms-bridge send topic:prices --body-file price.bin --url stomp://127.0.0.1:61613",
    'jms-bridge send amqp:queue/orders --typed-property amount:int=5 --url amqp://127.0.0.1:5672 "hello"',
    "cat image.png | jms-bridge send queue:images --body-file -",
    'jms-bridge send nats:orders.eu --typed-property amount:int=5 --stream "hello"',
    'jms-bridge send dropbox:queue/orders --typed-property amount:int=5 --url dropbox:///srv/dropbox "hello"',
    'jms-bridge send nats:orders.eu --format json --url nats://127.0.0.1:4222 "hello"',
    'jms-bridge send kafka:jms-bridge.journal --typed-property amount:int=5 --header JMSMessageID=ID:1 "hello"',
)
def send(
    destination: Annotated[
        str,
        typer.Argument(
            metavar="DESTINATION",
            help="queue:NAME, topic:NAME, nats:SUBJECT, dropbox:queue/NAME, dropbox:topic/NAME, kafka:TOPIC, or "
            "NAME:ADDRESS with the NAME of a sink or source.",
        ),
    ],
    given: MessageOptions,
    reply_to: Annotated[
        str | None, typer.Option(metavar="DESTINATION", help="JMSReplyTo, for example queue:replies.")
    ] = None,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, metavar="NUMBER", help="Number of times to send the message.")
    ] = 1,
    form: _Format = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="NATS: require a JetStream stream to store and confirm the message.")
    ] = False,
    url: Broker = None,
    username: Username = None,
    json_output: Json = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Send a message and wait until the broker has it.

    The message is sent as a sink would send it: to a JMS broker over STOMP or AMQP, as text, or as a bytes message if
    the body is not UTF-8; to a NATS server with its headers in the given format; into a folder as a file whose name
    holds its headers; to Kafka as a record in the form of the journal.

    The broker is that of --url, else that of the sink or source NAME, else that of the source that reads from the
    destination, else that of the first sink or source of the type, else the embedded one.
    """
    topic = kafka_topic(destination)
    fields = given.fields()
    if reply_to is not None:
        fields["JMSReplyTo"] = reply_to
    message = given.message(fields)
    settings = load(config)
    if topic is not None:
        _no_format(destination, form, stream)
        where = _to_kafka(settings.kafka_access, topic, message, count)
        _sent(f"sent {_count(count)} to {destination}, the last one to {where}", json_output, destination, count, where)
        return
    from engine.cli.exchange import give, who
    from engine.connectors.endpoint import SystemEndpoint

    target = broker_destination(settings, destination, url, username, to_send=True)
    own = _sink_of(target, who("send"), form, stream or None)
    if stream and "JMSReplyTo" in fields:
        msg = "--stream and --reply-to do not go together: a stream confirms messages at their reply address"
        raise UsageError(msg)
    give(target, SystemEndpoint.of(settings, own), *_outgoing(target, own, message), number=count)
    _sent(f"sent {_count(count)} to {destination} at {target.url}", json_output, destination, count, target.url)


def _sink_of(target: BrokerDestination, who: str, form: WireFormat | None, stream: bool | None) -> SinkConfig:
    """Configuration of the sink that sends the message; UsageError if an option is for another system."""
    if not target.has("format"):
        _no_format(target.text, form, bool(stream))
        return target.sink(who)
    if form is WireFormat.AUTO:
        msg = "--format auto: expected headers, json, typed, typed-1.0 or raw"
        raise UsageError(msg)
    return target.sink(who, format=form, stream=stream)


def _outgoing(target: BrokerDestination, sink: SinkConfig, message: Message) -> tuple[Message, str]:
    """The message to be sent, and its reply address; UsageError if it cannot be sent to this destination."""
    fields = dict(message.headers)
    reply_to = fields.pop("JMSReplyTo", "")
    if refused := sorted(target.system.not_sent & fields.keys()):
        msg = f"{refused[0]} is set by the broker or by the receiver of the message; it cannot be sent to {target.text}"
        raise UsageError(msg)
    if getattr(sink, "format", None) is WireFormat.RAW and (fields or message.properties):
        names = ", ".join([*fields, *message.properties])
        msg = f"a message of format raw is its body alone: leave out {names}, or take another --format"
        raise UsageError(msg)
    return replace(message, headers=fields), target.reply_address(reply_to) if reply_to else ""


def _no_format(destination: str, form: WireFormat | None, stream: bool) -> None:
    if form is not None or stream:
        option = "--stream" if form is None else "--format"
        msg = f"{option} is for NATS; leave it out for {destination}"
        raise UsageError(msg)


def _to_kafka(access: KafkaAccess, topic: str, message: Message, count: int) -> str:
    from engine.cli import produce

    fields = {**message.headers, "JMSDeliveryMode": message.headers.get("JMSDeliveryMode", "PERSISTENT")}
    return produce.send(access, topic, replace(message, headers=fields).to_record(), count)


def _sent(text: str, as_json: bool, destination: str, count: int, where: str) -> None:
    if as_json:
        typer.echo(json_text({"destination": destination, "messages": count, "where": where}))
    else:
        note(text)


def _count(number: int) -> str:
    return "1 message" if number == 1 else f"{number} messages"


@command(
    "jms-bridge receive kafka:orders",
    "jms-bridge receive kafka:orders --from end --follow",
    "jms-bridge receive kafka:orders --count 10 --timeout 30 --json",
    "jms-bridge receive queue:replies --count 1",
    "jms-bridge receive amqp:queue/orders --url amqp://127.0.0.1:5672",
    "jms-bridge receive nats:orders.> --follow",
    "jms-bridge receive dropbox:queue/orders --url dropbox:///srv/dropbox",
    "jms-bridge receive nats:orders.eu --stream ORDERS --url nats://127.0.0.1:4222",
)
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
        _From, typer.Option("--from", metavar="beginning|end", help="Starting point in a Kafka topic.")
    ] = _From.BEGINNING,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Continue until Ctrl-C.")] = False,
    count: Annotated[
        int | None,
        typer.Option("--count", "-n", min=1, metavar="NUMBER", help="Wait for this number of messages, then stop."),
    ] = None,
    timeout: Seconds = 30.0,
    stream: Annotated[
        str | None,
        typer.Option(metavar="STREAM", help="NATS: read from this JetStream stream instead of subscribing."),
    ] = None,
    url: Broker = None,
    username: Username = None,
    json_output: Json = False,
    base64: Base64 = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Show messages with position, key, headers and body.

    For a Kafka topic, the command shows the records that are there and stops at the end; it consumes nothing and does
    not affect other readers. Bodies that a route keeps as files are read from claim-check.folder. From a queue it takes
    the messages, as any JMS consumer does, until none is left.

    To a topic or a NATS subject the command subscribes, so it shows messages published from now on. For a JetStream
    stream it shows all stored messages through a consumer of its own, which it removes at the end; other readers are
    not affected. Only a stream with retention workqueue or interest loses the messages that are shown.
    """
    topic = kafka_topic(destination)
    settings = load(config)
    if topic is not None:
        _no_stream(destination, stream)
        from engine.claims.bodies import KeptBodies

        records = _from_kafka(settings.kafka_access, topic, start, count, follow, timeout)
        items = _with_bodies(KeptBodies.of(settings), records)
    else:
        items = _from_broker(
            settings,
            broker_destination(settings, destination, url, username, to_send=False),
            stream,
            count,
            None if follow else timeout,
        )
    shown = _show(items, json_output, base64)
    if count is not None and shown < count:
        msg = f"{shown} of {count} messages came from {destination} before {timeout:g} s passed without one"
        raise UnreachableError(msg)
    if not shown and not follow:
        note(f"no messages in {destination}")


def _show(messages: Iterable[Item], json_output: bool, base64: bool) -> int:
    """Prints each message as it arrives; returns their number."""
    shown = 0
    form = BodyFormat.BASE64 if base64 else BodyFormat.HEX
    for item in messages:
        typer.echo(item_json(item) if json_output else item_text(item, form))
        shown += 1
    return shown


def _from_broker(
    config: Config, target: BrokerDestination, stream: str | None, count: int | None, seconds: float | None
) -> Iterator[Item]:
    from engine.cli.exchange import take, who
    from engine.connectors.endpoint import SystemEndpoint

    if not target.has("stream"):
        _no_stream(target.text, stream)
    source = target.source(who("receive"), stream=stream)
    endpoint = SystemEndpoint.of(config, source)
    if stream is None:
        yield from take(target, endpoint, count, seconds)
        return
    from engine.connectors.nats.passing_consumer import passing_consumer
    from engine.connectors.nats.settings import NatsSourceConfig

    assert isinstance(source, NatsSourceConfig)
    with passing_consumer(SystemEndpoint.of(config, source)):
        yield from take(target, endpoint, count, seconds)


def _no_stream(destination: str, stream: str | None) -> None:
    if stream is not None:
        msg = f"--stream is for NATS; {destination} is read without"
        raise UsageError(msg)


def _from_kafka(
    access: KafkaAccess, topic: str, start: _From, count: int | None, follow: bool, seconds: float
) -> Iterator[LocatedRecord]:
    from engine.kafka.clients import KafkaClients
    from engine.kafka.reader import KafkaTopicReader

    with KafkaTopicReader(KafkaClients(access), topic) as reader:
        bounds = reader.bounds()
        starts = {partition: low if start is _From.BEGINNING else high for partition, (low, high) in bounds.items()}
        if follow or count is not None:
            records: Iterator[LocatedRecord] = islice(
                reader.read(starts, follow=True, idle_seconds=None if follow else seconds), count
            )
        else:
            records = _to_the_end(reader, starts, {each: high for each, (_, high) in bounds.items()}, seconds)
        yield from records


def _with_bodies(kept: KeptBodies, records: Iterable[LocatedRecord]) -> Iterator[Item]:
    """Yields records with the bodies that they have a claim on, and closes these at the end.

    Raises:
        BodyLostError: a body is gone; the text names the record.
    """
    from engine.claims.bodies import BodyLostError

    with closing(kept) as bodies:
        for located in records:
            try:
                yield Item.of(replace(located, record=bodies.restored(located.record)))
            except BodyLostError as error:
                msg = f"{located.position}: {error}"
                raise BodyLostError(msg) from error


def _to_the_end(
    reader: KafkaTopicReader, starts: Mapping[int, int], ends: Mapping[int, int], seconds: float
) -> Iterator[LocatedRecord]:
    """Reads the records that the topic has. An empty topic is waited for: the router may be about to publish."""
    empty = True
    for located in reader.read(starts, ends):
        empty = False
        yield located
    if empty:
        note(f"waiting for the first message in kafka:{reader.topic}, {seconds:g} s at most")
        yield from islice(reader.read(starts, follow=True, idle_seconds=seconds), 1)


@command(
    'jms-bridge request queue:prices "EURUSD"',
    'jms-bridge request amqp:queue/prices --url amqp://127.0.0.1:5672 "EURUSD"',
    'jms-bridge request nats:prices.get --timeout 2s --url nats://127.0.0.1:4222 "EURUSD"',
    'jms-bridge request dropbox:queue/prices --url dropbox:///srv/dropbox "EURUSD"',
    "jms-bridge request queue:orders --property region=emea --body-file order.json --full",
)
def request(
    destination: Annotated[
        str,
        typer.Argument(
            metavar="DESTINATION",
            help="queue:NAME, topic:NAME, amqp:queue/NAME, nats:SUBJECT, dropbox:queue/NAME, or NAME:ADDRESS with the "
            "NAME of a sink or source.",
        ),
    ],
    given: MessageOptions,
    timeout: Annotated[
        float,
        typer.Option(
            parser=read_seconds, metavar="SECONDS", help="Time to wait for the reply, for example 5s or 500ms."
        ),
    ] = 5.0,
    form: _Format = None,
    url: Broker = None,
    username: Username = None,
    full: Annotated[bool, typer.Option("--full", help="Show the reply with its headers, like receive.")] = False,
    json_output: Json = False,
    base64: Base64 = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Send a message, wait for the reply to it and print its body.

    At a JMS broker and in folders, the command waits in a queue of its own for a reply with the correlation id of the
    request or, as some services answer, with its message id. At a NATS server it waits on a subject of its own. Kafka
    has no replies.

    The exit code is 7 if the request was sent and no reply arrived in time.
    """
    if kafka_topic(destination) is not None:
        raise UsageError(_NO_REPLIES.format(destination))
    fields = given.fields()
    if "JMSReplyTo" in fields:
        msg = "--header JMSReplyTo: request uses a reply address of its own; use send for another one"
        raise UsageError(msg)
    message = given.message(fields)
    settings = load(config)
    target = broker_destination(settings, destination, url, username, to_send=True)
    if target.system.own_cluster:
        raise UsageError(_NO_REPLIES.format(destination))
    reply = _asked(settings, target, message, form, timeout)
    body_format = BodyFormat.BASE64 if base64 else BodyFormat.HEX
    if json_output:
        typer.echo(item_json(reply))
    else:
        shown = item_text(reply, body_format) if full else printable(show_bytes(reply.record.value, body_format))
        typer.echo(shown)


def _asked(
    config: Config, target: BrokerDestination, message: Message, form: WireFormat | None, seconds: float
) -> Item:
    """Sends a request and returns its reply; subscribes to the reply address first."""
    from engine.cli.exchange import give, item, listening, who
    from engine.connectors.endpoint import SystemEndpoint

    name = who("request")
    # A stream would take the reply address for its own confirmation.
    sink = _sink_of(target, name, form, stream=False)
    message, _ = _outgoing(target, sink, message)
    correlation_id = message.headers.get("JMSCorrelationID") or uuid.uuid4().hex
    if not target.system.token_in_address:
        message = replace(message, headers={**message.headers, "JMSCorrelationID": correlation_id})
    address = target.system.passing_reply_address.format(uuid.uuid4().hex)
    # A reply has the format of its request, and a typed frame does not say its release.
    release = getattr(sink, "format", None)
    replies = target.source(name, address, format=release if release is WireFormat.TYPED_1_0 else None)
    with listening(target, SystemEndpoint.of(config, replies)) as source:
        give(target, SystemEndpoint.of(config, sink), message, address)
        delivery = _reply(source, None if target.system.token_in_address else correlation_id, seconds)
        if delivery is None:
            msg = (
                f"no reply from {target.text} at {target.url} in {seconds:g} s; does a service answer it, and is "
                "--timeout long enough?"
            )
            raise NoReplyError(msg)
        source.acknowledge([delivery.token])
    return item(target, delivery)


def _reply(source: Source, correlation_id: str | None, seconds: float) -> Delivery | None:
    """Returns the first delivery that is a reply to the request; prints a note about each other one."""
    from engine.cli.exchange import next_delivery

    deadline = time.monotonic() + seconds
    while (delivery := next_delivery(source, max(deadline - time.monotonic(), 0))) is not None:
        correlation = delivery.message.headers.get("JMSCorrelationID", "")
        # The broker may have given the request a message id of its own; only replies to it arrive at this address.
        if correlation_id is None or correlation == correlation_id or correlation.startswith("ID:"):
            return delivery
        note(f"passed over a message with correlation id {correlation or '(none)'}, not {correlation_id}")
        source.acknowledge([delivery.token])
    return None


journal = typer.Typer(name="journal", help="The Kafka topic between the sources and the router.", no_args_is_help=True)


@journal.command(
    epilog=examples(
        "jms-bridge journal tail",
        "jms-bridge journal tail -n 3 --follow",
        'jms-bridge journal tail --where "msg.address==orders AND msg.body.amount > 1000"',
    )
)
def tail(
    count: Annotated[
        int, typer.Option("--count", "-n", min=0, metavar="NUMBER", help="Number of messages to show.")
    ] = 10,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Continue until Ctrl-C.")] = False,
    where: Annotated[
        str | None,
        typer.Option(
            "--where", metavar="PREDICATE", help="Only messages that match a predicate of the routing language."
        ),
    ] = None,
    json_output: Json = False,
    base64: Base64 = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Show the newest messages of the journal, oldest first."""
    from engine.kafka.clients import KafkaClients
    from engine.kafka.reader import KafkaTopicReader
    from engine.schemas.documents import documents_of

    wanted = None if where is None else read_predicate(where)
    settings = load(config)

    documents = None if wanted is None else documents_of(settings)

    def takes(located: LocatedRecord) -> bool:
        message = Message.from_record(located.record, documents, settings.routing.bounds)
        return wanted is None or message.fulfils(wanted)

    with KafkaTopicReader(KafkaClients(settings.kafka_access), settings.journal.topic) as reader:
        ends = {partition: high for partition, (_, high) in reader.bounds().items()}
        shown = _show(map(Item.of, reader.last(count, takes)) if count else (), json_output, base64)
        if follow:
            _show(map(Item.of, filter(takes, reader.read(ends, follow=True))), json_output, base64)
        elif not shown:
            note(f"no {'' if wanted is None else 'such '}messages in '{settings.journal.topic}'")
