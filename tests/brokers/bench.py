"""What the cases of the table have at hand: a broker and a protocol, both ends of the bridge, and an application."""

from __future__ import annotations

import itertools
import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from engine.connectors.base import NotConnectedError, Outgoing
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.system import connector
from routes import config as configuration
from tests.brokers.application import Application
from tests.brokers.broker import Protocol
from tests.brokers.packages import CACHE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from engine.connectors.base import Delivery
    from engine.message import Message
    from routes.model import Config
    from tests.brokers.broker import Broker

__all__ = ["WAIT_SECONDS", "Bench", "first_line", "numbered", "stable"]

WAIT_SECONDS = 15.0
"""Seconds that a case waits for a message that is to come."""
_QUIET_SECONDS = 1.0
_PAUSE_SECONDS = 0.5
_LONGEST_TEXT = 400
_THROWN = 'Exception in thread "main" '
_FAILED, _TRACE = "FAILED ", "\tat "
"""How the application tells an exception that does not end it, and what follows in that line."""


class Bench:
    """A broker that runs, the protocol by which the bridge speaks to it, and how a case notes what it saw."""

    def __init__(self, broker: Broker, protocol: Protocol, bootstrap: str, folder: Path, waiting: int) -> None:
        """`bootstrap` is the address of a Kafka, for the cases with load.

        `waiting` is the number of messages in a queue when the bridge comes, where a case wants many.
        """
        self.broker, self.protocol, self.folder = broker, protocol, folder
        self.bootstrap, self.waiting = bootstrap, waiting
        self.differences: list[str] = []
        self.remarks: list[str] = []
        self._numbers = itertools.count(1)
        self._application: Application | None = None
        self._open: list[Any] = []
        self._sink: Any = None

    @property
    def client(self) -> Protocol:
        """The client of the application: Qpid JMS beside AMQP 1.0, else the broker's own."""
        return self.broker.application(self.protocol)

    @property
    def application(self) -> Application:
        """The application, which is started when it is first asked for."""
        if self._application is None:
            log = self.folder / f"application-{next(self._numbers)}.log"
            self._application = Application(self.broker, self.client, log)
        return self._application

    def differs(self, what: str) -> None:
        """Notes a difference to what JMS promises and the bridge keeps at Artemis; each text once."""
        if (text := stable(what)) not in self.differences:
            self.differences.append(text)

    def remark(self, what: str) -> None:
        """Notes what is worth knowing but no difference."""
        self.remarks.append(stable(what))

    def queue(self, *, made: bool = True) -> str:
        """Returns the name of a fresh queue, which exists if `made`."""
        name = f"case_{self.protocol}_{next(self._numbers)}_{time.monotonic_ns() % 1_000_000}"
        if made:
            self.broker.create(name)
        return name

    def theirs(self, name: str, kind: str = "queue") -> str:
        """Returns a queue or topic as the application names it."""
        return self.broker.destination(self.protocol, name, kind)

    def source(self, destination: str, **keys: str) -> Any:
        """Returns a source of the bridge, without the loop that runs it; `keys` are further ones, `_` for `-`."""
        own = {f".{key.replace('_', '-')}": text for key, text in keys.items()}
        config = self._config(destination, own)
        made = connector(config.sources[0].type).make_source(SystemEndpoint.of(config, config.sources[0]), 1)
        self._open.append(made)
        return made

    def sink(self) -> Any:
        """Returns the sink of the bridge, connected."""
        if self._sink is None:
            config = self._config("queue:any", {})
            self._sink = connector(config.sinks[0].type).make_sink(SystemEndpoint.of(config, config.sinks[0]), 1)
            self._open.append(self._sink)
            self._sink.connect()
        return self._sink

    @staticmethod
    def receive(source: Any, count: int, seconds: float = WAIT_SECONDS) -> list[Delivery]:
        """Returns so many deliveries, or those that came within the time, or one more if it comes at once."""
        found: list[Delivery] = []
        deadline = time.monotonic() + seconds
        while len(found) < count and time.monotonic() < deadline:
            if (delivery := source.receive(0.5)) is not None:
                found.append(delivery)
        if len(found) == count and (more := source.receive(_QUIET_SECONDS)) is not None:
            found.append(more)
        return found

    @staticmethod
    def send(sink: Any, address: str, *messages: Message) -> list[str | None]:
        """Sends messages; returns the refusal of each, None for one that the broker has.

        As the loop of a sink does, it connects again and sends what is in doubt when the connection is lost.
        """
        left = {n: Outgoing(n, message, address, f"{time.time()}/{n}") for n, message in enumerate(messages)}
        found: dict[int, str | None] = {}
        deadline = time.monotonic() + WAIT_SECONDS
        is_sent, instead = False, "no answer of the broker"
        while left and time.monotonic() < deadline:
            try:
                if not is_sent:
                    sink.send(list(left.values()))
                    is_sent = True
                for outcome in sink.outcomes(0.5):
                    found[outcome.number] = outcome.refusal
                    del left[outcome.number]
            except NotConnectedError as error:
                is_sent, instead = False, first_line(error)
                time.sleep(_PAUSE_SECONDS)
                sink.connect()
        return [found.get(n, instead) for n in range(len(messages))]

    def arrived(self, queue: str, count: int) -> list[Mapping[str, str]]:
        """Returns what the application finds in a queue: so many, or fewer if no more come."""
        found = (self.application.receive(self.theirs(queue), 5) for _ in range(count))
        return [each for each in found if each]

    @contextmanager
    def case(self) -> Iterator[None]:
        """Forgets the notes of the case before, and closes what this one opens."""
        self.differences, self.remarks = [], []
        try:
            yield
        finally:
            for each in self._open:
                each.close()
            self._open.clear()
            self._sink = None
            self.end_application()

    def end_application(self) -> None:
        """Ends the application; the next use starts another."""
        if self._application is not None:
            self._application.kill()
            self._application = None

    def _config(self, destination: str, keys: Mapping[str, str]) -> Config:
        """The configuration of a bridge with a source, with further keys, and a sink at the broker."""
        own = self.broker.settings(self.protocol)
        lines = {
            "bridge.id": "brokers",
            "kafka.bootstrap.servers": self.bootstrap,
            "journal.topic": "journal",
            "routes.all.in.include": "TRUE",
            "routes.all.out.topic": "out",
            "embedded.data": str(CACHE),
            "source.src.destinations": destination,
            **{f"{section}{key}": text for key, text in own.items() for section in ("source.src", "sink.out")},
            **{f"source.src{key}": text for key, text in keys.items()},
        }
        file = self.folder / f"bridge-{next(self._numbers)}.properties"
        file.write_text("".join(f"{key}={text}\n" for key, text in lines.items()), encoding="utf-8")
        return configuration.load(file)


def numbered(count: int, begin: int = 0) -> Sequence[Mapping[str, str]]:
    """Returns texts that are numbers, as the application sends them."""
    return [{"type": "text", "body": str(n)} for n in range(begin, begin + count)]


def first_line(error: Exception) -> str:
    """Returns the first line of an error's text, of the application's output the exception that ended it.

    What is of this run only, as ports and names of queues, is left out.
    """
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    ended = [f"the application ends: {line.removeprefix(_THROWN)}" for line in lines if line.startswith(_THROWN)]
    first = [*ended, *lines][0]
    if first.startswith(_FAILED):
        first = f"the application says: {first.removeprefix(_FAILED).partition(_TRACE)[0].strip()}"
    return stable(first)[:_LONGEST_TEXT]


def stable(text: str) -> str:
    """Returns a text with the same names and ports in every run."""
    text = re.sub(r"case_[a-z]+_\d+_\d+", "NAME", text)
    # The address of a `jms` source or sink: its factory and what it is given.
    text = re.sub(r"jms://\S+", "jms://FACTORY", text)
    text = re.sub(r"(127\.0\.0\.1[:/]\s?)\d+", r"\1PORT", text)
    return re.sub(r"(ID:)[\w.:-]*\d[\w.:-]*", r"\1…", text)
