"""Bare loops with a client library in place of a source or a sink: `python -m bench.connectors.bare`.

Each is a loop that runs until it is ended. Kafka's settings are those of the bridge; batches are as large as its own.
Messages keep their body and their headers, and nothing else of what a bridge does.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, unquote_plus, urlsplit

import nats
import stomp
from confluent_kafka import Producer
from nats.errors import TimeoutError as NothingCameError

from bench.connectors.kafka_side import (
    BATCH,
    IDLE_SECONDS,
    KEY,
    PRODUCER,
    Given,
    body_of,
    consumer_of,
    headers_of,
    id_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nats.aio.msg import Msg

_FULL_SECONDS = 0.1
_ANSWER_SECONDS = 30.0


async def core_source(given: Given) -> None:
    """Subscription whose callback produces; it does not wait for Kafka, since it could report a failure to no one."""
    producer, topic = Producer({**PRODUCER, "bootstrap.servers": given["bootstrap"]}), given["topic"]

    async def take(message: Msg) -> None:
        _produce(producer, topic, message.data, message.headers or {})

    client = await nats.connect(given["url"])
    await client.subscribe(given["address"], "bare", cb=take)
    while True:
        await asyncio.sleep(IDLE_SECONDS)
        producer.poll(0)


async def stream_source(given: Given) -> None:
    """Batches are pulled, produced, and acknowledged when Kafka has confirmed them."""
    failed: list[object] = []
    confirmed = {"on_delivery": lambda error, _: failed.append(error) if error else None}
    producer, topic = Producer({**PRODUCER, "bootstrap.servers": given["bootstrap"], **confirmed}), given["topic"]
    client = await nats.connect(given["url"])
    pulled = await client.jetstream().pull_subscribe(given["address"], given["consumer"], stream=given["stream"])
    while True:
        try:
            messages = await pulled.fetch(BATCH, timeout=1)
        except NothingCameError:
            continue
        for message in messages:
            _produce(producer, topic, message.data, message.headers or {})
        producer.flush()
        assert not failed, failed
        for message in messages:
            await message.ack()


async def core_sink(given: Given) -> None:
    """Batches are published, and committed when the server has dealt with them."""
    consumer, address = consumer_of(given), given["address"]
    client = await nats.connect(given["url"])
    while True:
        for message in (messages := consumer.consume(BATCH, IDLE_SECONDS)):
            await client.publish(address, body_of(message), headers=headers_of(message))
        await client.flush()
        if messages:
            consumer.commit(asynchronous=True)


async def stream_sink(given: Given) -> None:
    """Moves messages into a stream, which confirms each and recognises it by its id."""
    consumer, address = consumer_of(given), given["address"]
    client = await nats.connect(given["url"])
    stream = client.jetstream()
    while True:
        confirmations = []
        for message in (messages := consumer.consume(BATCH, IDLE_SECONDS)):
            headers = {"Nats-Msg-Id": id_of(message), **headers_of(message)}
            confirmations.append(await stream.publish_async(address, body_of(message), headers=headers))
        await asyncio.gather(*confirmations)
        if messages:
            consumer.commit(asynchronous=True)


def queue_sink(given: Given) -> None:
    """Batches are sent, each message with a receipt, and committed when all receipts have come."""
    consumer, queue = consumer_of(given), given["address"]
    url = urlsplit(given["url"])
    connection = stomp.Connection12([(url.hostname, url.port)], auto_content_length=False)
    receipts = _Receipts()
    connection.set_listener("receipts", receipts)
    connection.connect(wait=True)
    fixed = {"destination-type": "ANYCAST", "persistent": "true"}
    run = given["group"]
    while True:
        messages = consumer.consume(BATCH, IDLE_SECONDS)
        receipts.expect(len(messages))
        for message in messages:
            headers = {**headers_of(message), **fixed, "_AMQ_DUPL_ID": f"{run}/{id_of(message)}"}
            connection.send(queue, body_of(message), headers=headers, receipt=id_of(message))
        receipts.wait()
        if messages:
            consumer.commit(asynchronous=True)


def dropbox_source(given: Given) -> None:
    """Files are moved to processing, produced, and moved to processed when Kafka has confirmed them."""
    failed: list[object] = []
    confirmed = {"on_delivery": lambda error, _: failed.append(error) if error else None}
    producer = Producer({**PRODUCER, "bootstrap.servers": given["bootstrap"], **confirmed})
    target, processing, processed = (Path(given["box"], name) for name in ("target", "processing", "processed"))
    while True:
        names = sorted(file.name for file in target.iterdir())
        for start in range(0, len(names), BATCH):
            batch = names[start : start + BATCH]
            for name in batch:
                (target / name).rename(processing / name)
                fields = [unquote_plus(field) for field in name.split(".")]
                pairs = dict(pair.split("=") for pair in fields[7].split("&"))
                headers = {KEY: fields[4], "JMSType": fields[6], **pairs}
                _produce(producer, given["topic"], (processing / name).read_bytes(), headers)
            producer.flush()
            assert not failed, failed
            for name in batch:
                (processing / name).rename(processed / name)
            _sync(processed)
        time.sleep(IDLE_SECONDS)


def dropbox_sink(given: Given) -> None:
    """Files are written and synced one after the other, and their folder once for a batch, before the commit."""
    consumer = consumer_of(given)
    working, target = Path(given["box"], "working"), Path(given["box"], "target")
    while True:
        messages = consumer.consume(BATCH, IDLE_SECONDS)
        for message in messages:
            pairs = "&".join(f"{name}S={quote_plus(value)}" for name, value in headers_of(message).items())
            name = f"4.{id_of(message).replace(':', '-')}.T.....{pairs}"
            with (working / name).open("wb") as file:
                file.write(body_of(message))
                file.flush()
                os.fsync(file.fileno())
            (working / name).rename(target / name)
        if messages:
            _sync(target)
            consumer.commit(asynchronous=True)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


class _Receipts(stomp.ConnectionListener):  # type: ignore[misc] # stomp.py has no types
    """Counts them, on the thread of stomp.py that reads."""

    def __init__(self) -> None:
        self._missing = 0
        self._complete = Event()

    def expect(self, count: int) -> None:
        self._missing = count
        self._complete.clear()

    def wait(self) -> None:
        if self._missing and not self._complete.wait(_ANSWER_SECONDS):
            msg = f"{self._missing} receipts have not come"
            raise RuntimeError(msg)

    def on_receipt(self, frame: object) -> None:
        self._missing -= 1
        if not self._missing:
            self._complete.set()

    def on_error(self, frame: Any) -> None:
        print(f"the broker says: {frame.headers} {frame.body}", file=sys.stderr, flush=True)


def _produce(producer: Producer, topic: str, body: bytes, headers: Mapping[str, str]) -> None:
    while True:
        try:
            producer.produce(topic, body, headers.get(KEY), headers=list(headers.items()))
        except BufferError:
            producer.poll(_FULL_SECONDS)
        else:
            return


_LOOPS = {each.__name__.replace("_", "-"): each for each in (core_source, stream_source, core_sink, stream_sink)}
_BLOCKING = {each.__name__.replace("_", "-"): each for each in (queue_sink, dropbox_source, dropbox_sink)}


def main(arguments: list[str]) -> None:
    """Runs the loop that the first argument names; the others are `NAME=VALUE`."""
    given = dict(argument.split("=", 1) for argument in arguments[1:])
    if arguments[0].startswith("amqp"):
        # Only here: its library has to be compiled.
        from bench.connectors.bare_amqp import LOOPS

        LOOPS[arguments[0]](given)
    elif (loop := _BLOCKING.get(arguments[0])) is not None:
        loop(given)
    else:
        asyncio.run(_LOOPS[arguments[0]](given))


if __name__ == "__main__":
    main(sys.argv[1:])
