"""Requests and the service that answers them, both outside the bridge: `python -m bench.asking`, one JSON line out.

One process and one loop, so that one clock tells how long a reply took: a NATS client and a bare STOMP client. Of two
directions, `nats` asks over NATS and is answered by a JMS service, `jms` the other way round.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING

from nats.aio.client import Client

from engine.connectors.stomp.frames import StompFrameParser, escape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nats.aio.msg import Msg

    from engine.connectors.stomp.frames import StompFrame

__all__ = ["main"]

_PATIENCE_SECONDS = 60.0
_MOST_BYTES = 1 << 20


class Stomp:
    """A STOMP connection in the loop: frames out, and a callback for each message."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._parser = StompFrameParser(_MOST_BYTES, _MOST_BYTES)
        self._task: asyncio.Task[None] | None = None

    @staticmethod
    async def connect(port: int) -> Stomp:
        """Connects to a broker on this machine."""
        stomp = Stomp(*await asyncio.open_connection("127.0.0.1", port))
        stomp.send("CONNECT", {"accept-version": "1.2", "host": "localhost"})
        return stomp

    def send(self, command: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        lines = "".join(f"{escape(name)}:{escape(value)}\n" for name, value in headers.items())
        self._writer.write(f"{command}\n{lines}\n".encode() + body + b"\0")

    def subscribe(self, queue: str, take: Callable[[StompFrame], None]) -> None:
        """Takes every message of a queue, acknowledged as it is sent."""
        self.send("SUBSCRIBE", {"destination": queue, "id": "1", "ack": "auto", "subscription-type": "ANYCAST"})
        self._task = asyncio.create_task(self._read(take))

    async def _read(self, take: Callable[[StompFrame], None]) -> None:
        while data := await self._reader.read(_MOST_BYTES):
            for frame in self._parser.feed(data):
                if frame.command == "MESSAGE":
                    take(frame)


class Asking:
    """Sends requests by number and notes when each reply came."""

    def __init__(self) -> None:
        self.sent: dict[int, float] = {}
        self.took: dict[int, float] = {}
        self.repeated = 0

    def replied(self, body: bytes) -> None:
        number = int(body)
        if number in self.took:
            self.repeated += 1
        self.took.setdefault(number, time.perf_counter() - self.sent[number])

    async def paced(self, ask: Callable[[int], None], first: int, count: int, rate: float) -> None:
        """Sends requests at an even rate; at rate 0 all at once."""
        begin = time.perf_counter()
        for number in range(first, first + count):
            if rate and (wait := begin + (number - first) / rate - time.perf_counter()) > 0:
                await asyncio.sleep(wait)
            self.sent[number] = time.perf_counter()
            ask(number)
        deadline = time.perf_counter() + _PATIENCE_SECONDS
        while len(self.took) < first + count and time.perf_counter() < deadline:
            await asyncio.sleep(0.01)


async def _nats_asks(nats: Client, stomp: Stomp, asking: Asking) -> Callable[[int], None]:
    """NATS asks `ask.jms`; the JMS service on queue `service.jms` sends each body back."""

    def answer(frame: StompFrame) -> None:
        where = frame.headers["reply-to"].rpartition("/")[2]
        headers = {"destination": where, "destination-type": "ANYCAST"}
        stomp.send("SEND", {**headers, "correlation-id": frame.headers["correlation-id"]}, frame.body)

    stomp.subscribe("service.jms", answer)
    inbox = nats.new_inbox()

    async def take(message: Msg) -> None:
        asking.replied(message.data)

    await nats.subscribe(inbox, cb=take)
    await nats.flush()
    tasks: set[asyncio.Task[None]] = set()

    def ask(number: int) -> None:
        task = asyncio.ensure_future(nats.publish("ask.jms", str(number).encode(), reply=inbox))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    return ask


async def _jms_asks(nats: Client, stomp: Stomp, asking: Asking) -> Callable[[int], None]:
    """JMS asks by queue `ask.nats`; the NATS service on `service.nats` sends each body back."""

    async def answer(message: Msg) -> None:
        await message.respond(message.data)

    await nats.subscribe("service.nats", cb=answer)
    await nats.flush()
    stomp.subscribe("asking", lambda frame: asking.replied(frame.body))

    def ask(number: int) -> None:
        headers = {"destination": "ask.nats", "destination-type": "ANYCAST", "reply-to": "asking"}
        stomp.send("SEND", {**headers, "correlation-id": str(number)}, str(number).encode())

    return ask


async def _run(given: argparse.Namespace) -> None:
    nats, asking = Client(), Asking()
    await nats.connect(f"nats://127.0.0.1:{given.nats}")
    stomp = await Stomp.connect(given.stomp)
    prepare = _nats_asks if given.asks == "nats" else _jms_asks
    ask = await prepare(nats, stomp, asking)
    await asking.paced(ask, 0, given.warm_up, given.rate)
    first = given.warm_up
    await asking.paced(ask, first, given.requests, given.rate)
    paced = [asking.took.get(number) for number in range(first, first + given.requests)]
    first += given.requests
    begin = time.perf_counter()
    await asking.paced(ask, first, given.at_once, 0)
    burst = [asking.took.get(number) for number in range(first, first + given.at_once)]
    result = {
        "milliseconds": [each * 1000 for each in paced if each is not None],
        "lost": paced.count(None),
        "burst_lost": burst.count(None),
        "burst_seconds": time.perf_counter() - begin,
        "repeated": asking.repeated,
    }
    json.dump(result, sys.stdout)
    await nats.close()


def main() -> None:
    """Waits for the bridge's brokers to be there before it is started."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--nats", "--stomp", "--warm-up", "--requests", "--at-once"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--asks", choices=("nats", "jms"), required=True)
    parser.add_argument("--rate", type=float, required=True)
    asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
