"""Those who send: one thread for each source, at an even rate, whatever happens to the brokers.

Each notes a message before it sends it, and again when its broker has acknowledged it. After a failure it connects
again and goes on with new numbers. No client here repeats anything by itself: that would look like a fault of the
bridge.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import nats
from confluent_kafka import KafkaException, Producer
from nats.errors import Error as NatsError
from proton import Delivery, Message, ProtonException, symbol
from proton.reactor import SenderOption
from proton.utils import BlockingConnection, BlockingSender

from tests.chaos.outputs import quiet
from tests.integration.connectors.stomp_harness import Peer
from tests.topic_records import ORDERED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from nats.aio.client import Client

    from tests.chaos.ledger import Issuer, Number

__all__ = ["AmqpSender", "DropboxSender", "JetStreamSender", "KafkaSender", "Sender", "StompSender"]

_TICK_SECONDS = 0.1
_PAUSE_SECONDS = 0.5
_ANSWER_SECONDS = 10.0


class Sender(ABC):
    """Sends to one source of the bridge from `start` to `stop`."""

    def __init__(self, ledger: Issuer, source: str, per_second: int) -> None:
        self.source = source
        self._ledger = ledger
        self._batch = max(round(per_second * _TICK_SECONDS), 1)
        self._stop = Event()
        self._thread = Thread(target=self._run, name=f"to {source}", daemon=True)
        self.failure: BaseException | None = None
        """What ended it before its time."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when it has sent its last."""
        self._stop.set()
        self._thread.join()
        if self.failure:
            raise self.failure

    def _run(self) -> None:
        try:
            due = time.monotonic()
            while not self._stop.wait(max(due - time.monotonic(), 0)):
                # What an outage has kept back is not made up for.
                due = max(due, time.monotonic() - _PAUSE_SECONDS) + _TICK_SECONDS
                numbers = self._ledger.issue(self.source, self._batch)
                try:
                    for number in self.send(numbers):
                        self._ledger.acknowledge(number)
                except (OSError, NatsError, KafkaException):
                    self.close()
                    self._stop.wait(_PAUSE_SECONDS)
        except BaseException as error:
            self.failure = error
        finally:
            self.close()

    @abstractmethod
    def send(self, numbers: Sequence[Number]) -> Iterator[Number]:
        """Sends all, connecting if need be; yields those that the broker has acknowledged."""

    @abstractmethod
    def close(self) -> None:
        """Forgets the connection."""


class StompSender(Sender):
    """Persistent messages into a queue of Artemis, each with a receipt."""

    def __init__(self, ledger: Issuer, source: str, per_second: int, port: int, queue: str) -> None:
        super().__init__(ledger, source, per_second)
        self._port = port
        self._queue = queue
        self._peer: Peer | None = None

    def send(self, numbers: Sequence[Number]) -> Iterator[Number]:
        if self._peer is None:
            self._peer = Peer(self._port, _ANSWER_SECONDS)
        fixed = {"destination": self._queue, "persistent": "true"}
        self._peer.write(
            b"".join(
                self._peer.frame(
                    "SEND",
                    {**fixed, "correlation-id": each.correlation_id, **each.properties, "receipt": str(receipt)},
                    each.body,
                )
                for receipt, each in enumerate(numbers)
            )
        )
        for _ in numbers:
            yield numbers[int(self._peer.expect("RECEIPT").headers["receipt-id"])]

    def close(self) -> None:
        if self._peer is not None:
            self._peer.close()
            self._peer = None


class AmqpSender(Sender):
    """Durable messages into a queue of Artemis, with ids, as JMS clients give them."""

    def __init__(self, ledger: Issuer, source: str, per_second: int, url: str, queue: str) -> None:
        super().__init__(ledger, source, per_second)
        self._url = url
        self._queue = queue
        self._connection: BlockingConnection | None = None
        self._sender: BlockingSender | None = None

    def send(self, numbers: Sequence[Number]) -> Iterator[Number]:
        try:
            if self._connection is None:
                self._connection = BlockingConnection(self._url, timeout=_ANSWER_SECONDS)
                self._sender = self._connection.create_sender(self._queue, options=_ToQueue())
            assert self._sender is not None
            sent: list[Any] = [self._sender.link.send(self._message(each)) for each in numbers]
            self._connection.wait(lambda: all(delivery.settled for delivery in sent))
            for number, delivery in zip(numbers, sent, strict=True):
                delivery.settle()
                if delivery.remote_state == Delivery.ACCEPTED:
                    yield number
        except ProtonException as error:
            raise ConnectionError(str(error)) from error

    def close(self) -> None:
        if self._connection is not None:
            with suppress(ProtonException, OSError):
                self._connection.close()
            self._connection = self._sender = None

    @staticmethod
    def _message(number: Number) -> Message:
        return Message(
            body=number.body.decode(),
            id=f"ID:{number.correlation_id}-{number.sequence}",
            correlation_id=number.correlation_id,
            creation_time=time.time(),
            durable=True,
            properties=number.properties,
        )


class _ToQueue(SenderOption):
    """The address is that of a queue, and not of a topic."""

    def apply(self, sender: Any) -> None:
        sender.target.capabilities.put_object(symbol("queue"))


class JetStreamSender(Sender):
    """Messages into a stream, each of which says that it has it."""

    def __init__(self, ledger: Issuer, source: str, per_second: int, url: str, subject: str) -> None:
        super().__init__(ledger, source, per_second)
        self._url = url
        self._subject = subject
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Client | None = None

    def send(self, numbers: Sequence[Number]) -> Iterator[Number]:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        answers = self._loop.run_until_complete(self._publish(numbers))
        yield from (number for number, answer in zip(numbers, answers, strict=True) if answer)

    def close(self) -> None:
        if self._loop is not None:
            if self._client is not None:
                with suppress(OSError, NatsError, TimeoutError):
                    self._loop.run_until_complete(asyncio.wait_for(self._client.close(), 1))
            self._loop.close()
            self._loop = self._client = None

    async def _publish(self, numbers: Sequence[Number]) -> list[bool]:
        if self._client is None:
            self._client = await nats.connect(
                self._url, allow_reconnect=False, connect_timeout=1, error_cb=quiet, max_outstanding_pings=3
            )
        stream = self._client.jetstream(timeout=_ANSWER_SECONDS)
        answers = await asyncio.gather(
            *(
                stream.publish(
                    self._subject, each.body, headers={"JMSCorrelationID": each.correlation_id, **each.properties}
                )
                for each in numbers
            ),
            return_exceptions=True,
        )
        failures = [answer for answer in answers if isinstance(answer, BaseException)]
        if failures and len(failures) == len(answers):
            raise ConnectionError(str(failures[0])) from failures[0]
        return [not isinstance(answer, BaseException) for answer in answers]


class DropboxSender(Sender):
    """Files that are written in `working` and moved to `target`; to move one is to have it acknowledged."""

    def __init__(self, ledger: Issuer, source: str, per_second: int, box: Path) -> None:
        super().__init__(ledger, source, per_second)
        self._box = box
        self._count = itertools.count(1)

    def send(self, numbers: Sequence[Number]) -> Iterator[Number]:
        for each in numbers:
            properties = "&".join(f"{name}S={value}" for name, value in each.properties.items())
            name = f"4.{time.time_ns() // 1000:016}-{next(self._count):09}.T..{each.correlation_id}...{properties}"
            (self._box / "working" / name).write_bytes(each.body)
            (self._box / "working" / name).rename(self._box / "target" / name)
            yield each

    def close(self) -> None:
        pass


class KafkaSender(Sender):
    """Records of a topic, each confirmed by Kafka."""

    def __init__(self, ledger: Issuer, source: str, per_second: int, bootstrap: str, topic: str) -> None:
        super().__init__(ledger, source, per_second)
        self._settings = {
            "bootstrap.servers": bootstrap,
            **ORDERED,
            "message.timeout.ms": int(_ANSWER_SECONDS * 1000),
            "log_level": 0,
        }
        self._topic = topic
        self._producer: Producer | None = None

    def send(self, numbers: Sequence[Number]) -> Iterator[Number]:
        if self._producer is None:
            self._producer = Producer(self._settings)
        confirmed: list[Number] = []
        for each in numbers:
            headers = {"jms.JMSCorrelationID": each.correlation_id}
            headers |= {f"jms.{name}": value for name, value in each.properties.items()}

            def confirm(error: object, _: object, number: Number = each) -> None:
                if error is None:
                    confirmed.append(number)

            self._producer.produce(
                self._topic, each.body, each.correlation_id, headers=list(headers.items()), on_delivery=confirm
            )
        self._producer.flush(_ANSWER_SECONDS * 2)
        yield from confirmed
        if len(confirmed) < len(numbers):
            raise ConnectionError("Kafka has not confirmed all")

    def close(self) -> None:
        if self._producer is not None:
            # What was not confirmed must not arrive behind what is sent from now on.
            self._producer.purge()
            self._producer = None
