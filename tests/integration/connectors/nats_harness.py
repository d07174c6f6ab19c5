"""NATS with JetStream for the conformance suite and for NATS' own tests: a stream for each queue, read by nats-py."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import nats
from nats.js.api import AckPolicy, ConsumerConfig
from nats.js.errors import NotFoundError

from engine.connectors import base
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.nats.settings import NatsSinkConfig, NatsSourceConfig
from engine.connectors.nats.sink import NatsSink
from engine.connectors.nats.source import NatsSource
from engine.message import Message
from tests.integration.connectors.running import configure
from tests.waiting import patience

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from nats.aio.client import Client
    from nats.js import JetStreamContext

    from engine.embedded import EmbeddedNats
    from routes.model import Config
    from tests.integration.connectors.harness import Outgoing

T = TypeVar("T")

CONSUMER = "b1-src"
"""As a source `src` of bridge `b1` calls it."""


class NatsHarness:
    """A NATS server of the embedded kind; a queue is a subject with a stream of its own."""

    settable = frozenset({"JMSCorrelationID", "JMSType", "JMSPriority", "JMSExpiration", "JMSXGroupID"})
    odd: Mapping[str, str] = {"a.b-c": "dots", "empty": "", "unicode": "ümlaut ☃", "colon": "a:b"}
    delivery_mode = None
    largest_bytes = 8 * 1024 * 1024
    most_properties = 300
    unreachable = "Connection refused"
    kind = "topic"

    def __init__(self, server: EmbeddedNats) -> None:
        self._server = server

    @property
    def port(self) -> int:
        return urlsplit(self._server.url).port or 0

    @property
    def pid(self) -> int:
        assert self._server.pid is not None
        return self._server.pid

    @property
    def url(self) -> str:
        return self._server.url

    def settings(self, queue: str, port: int | None = None) -> Mapping[str, str]:
        self.create(queue)
        return {
            ".type": "nats",
            ".url": f"nats://127.0.0.1:{port or self.port}",
            ".destinations": queue,
            ".stream": queue,
            ".heartbeat": "1s",
        }

    def create(self, queue: str) -> None:
        """With a consumer that delivers again soon, so that no test waits for what a cut connection took with it."""

        async def make(js: JetStreamContext) -> None:
            await js.add_stream(name=queue, subjects=[queue])
            consumer = ConsumerConfig(
                durable_name=CONSUMER,
                filter_subject=queue,
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=2,
                max_ack_pending=25_000,
            )
            await js.add_consumer(queue, consumer)

        self.streams(make)

    def send(self, queue: str, messages: Sequence[Outgoing]) -> None:
        async def publish(js: JetStreamContext) -> None:
            for start in range(0, len(messages), 1000):
                part = messages[start : start + 1000]
                acks = [await js.publish_async(queue, each.body, headers=_headers(each)) for each in part]
                await asyncio.gather(*acks)

        self.create(queue)
        self.streams(publish)

    def waiting(self, queue: str) -> int:
        async def count(js: JetStreamContext) -> int:
            try:
                info = await js.consumer_info(queue, CONSUMER)
            except NotFoundError:
                return (await js.stream_info(queue)).state.messages
            return (info.num_pending or 0) + (info.num_ack_pending or 0)

        return self.streams(count)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self._server.stop()

    def start(self) -> None:
        self._server.start()

    def streams(self, work: Callable[[JetStreamContext], Awaitable[T]]) -> T:
        """Does something with JetStream, on a connection of its own."""
        return self.client(lambda client: work(client.jetstream()))

    def client(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """The same with a plain client."""

        async def run() -> T:
            client = await nats.connect(self.url)
            try:
                return await work(client)
            finally:
                await client.close()

        return asyncio.run(run())


def _headers(message: Outgoing) -> dict[str, str] | None:
    headers = {**message.fields, **message.properties}
    if not message.text:
        headers["jmsbridge.body"] = "bytes"
    return headers or None


class Connectors:
    """Makes sources and sinks of bridge `b1`, not connected, and closes them at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: list[NatsSource | NatsSink] = []

    def source(self, url: str, destinations: str, **settings: str) -> NatsSource:
        """`source.src`; `_` in names of settings is `.`."""
        config = self._configure({"source.src": {"url": url, "destinations": destinations} | settings})
        (own,) = config.sources
        assert isinstance(own, NatsSourceConfig)
        made = NatsSource(SystemEndpoint.of(config, own), 1)
        self._made.append(made)
        return made

    def sink(self, url: str, **settings: str) -> NatsSink:
        """`sink.out`."""
        source = {"url": url, "destinations": "x"}
        config = self._configure({"source.src": source, "sink.out": {"url": url} | settings})
        (own,) = config.sinks
        assert isinstance(own, NatsSinkConfig)
        made = NatsSink(SystemEndpoint.of(config, own), 1)
        self._made.append(made)
        return made

    def close(self) -> None:
        for each in self._made:
            each.close()

    def _configure(self, sections: Mapping[str, Mapping[str, str]]) -> Config:
        settings = {
            f"{section}.{name.replace('_', '.')}": value
            for section, given in sections.items()
            for name, value in {"type": "nats", "heartbeat": "1s", **given}.items()
        }
        return configure(self._folder, "127.0.0.1:1", "journal", settings)


def receive(source: NatsSource, count: int, seconds: float = 10) -> list[base.Delivery]:
    """So many deliveries; fails if they do not come in time."""
    found: list[base.Delivery] = []
    deadline = time.monotonic() + patience(seconds)
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} within {seconds} s"
        delivery = source.receive(0.1)
        if delivery is not None:
            found.append(delivery)
    return found


def nothing(source: NatsSource, seconds: float = 0.5) -> bool:
    """Whether nothing comes in that time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if source.receive(0.1) is not None:
            return False
    return True


def outcomes(sink: NatsSink, count: int, seconds: float = 10) -> list[base.Outcome]:
    """So many outcomes; fails if they do not come in time."""
    found: list[base.Outcome] = []
    deadline = time.monotonic() + patience(seconds)
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} within {seconds} s"
        found += sink.outcomes(0.1)
    return found


def numbered(count: int, address: str, begin: int = 1) -> list[base.Outgoing]:
    """Messages to a sink, whose bodies and ids are their numbers."""
    return [
        base.Outgoing(number, Message(str(number).encode()), address, f"id-{number}")
        for number in range(begin, begin + count)
    ]


def publish(harness: NatsHarness, messages: Sequence[tuple[str, bytes]], reply: str = "") -> None:
    async def send(client: Client) -> None:
        for subject, body in messages:
            await client.publish(subject, body, reply)
        await client.flush()

    harness.client(send)


def add_stream(harness: NatsHarness, name: str, *subjects: str) -> None:
    async def add(js: JetStreamContext) -> None:
        await js.add_stream(name=name, subjects=list(subjects))

    harness.streams(add)


def add_consumer(harness: NatsHarness, stream: str, **settings: object) -> None:
    async def add(js: JetStreamContext) -> None:
        config = {"durable_name": CONSUMER, "ack_policy": AckPolicy.EXPLICIT} | settings
        await js.add_consumer(stream, ConsumerConfig(**config))  # type: ignore[arg-type]

    harness.streams(add)


def delivered_again(harness: NatsHarness, stream: str) -> int:
    async def ask(js: JetStreamContext) -> int:
        return (await js.consumer_info(stream, CONSUMER)).num_redelivered or 0

    return harness.streams(ask)


def bodies(deliveries: Sequence[base.Delivery]) -> list[int]:
    return [int(delivery.message.body) for delivery in deliveries]
