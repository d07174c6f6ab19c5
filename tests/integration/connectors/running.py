"""What tests of sources need: a bridge configuration, a source running in a thread, and the journal read back."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from engine.delivery.source_loop import run_source
from engine.kafka.reader import LocatedRecord
from engine.message import Message, Record
from engine.telemetry.status import Reporter
from routes import config as configuration
from tests.integration.connectors.harness import Outgoing
from tests.topic_records import committed_records, transactions_have_ended
from tests.waiting import patience, until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from routes.model import Config

SOURCE = "src"


def configure(folder: Path, bootstrap: str, journal: str, settings: Mapping[str, str]) -> Config:
    """A bridge with one source `src`; `settings` are full keys, or keys of the source that begin with a dot."""
    lines = {
        "bridge.id": "b1",
        "kafka.bootstrap.servers": bootstrap,
        "journal.topic": journal,
        "journal.partitions": "2",
        "routes.all.in.include": "msg.address<>''",
        "routes.all.out.topic": "out",
        f"source.{SOURCE}.type": "stomp",
    }
    lines |= {f"source.{SOURCE}{key}" if key.startswith(".") else key: value for key, value in settings.items()}
    file = folder / "bridge.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()), encoding="utf-8")
    return configuration.load(file)


class Worker:
    """A worker of a source or a sink in a thread of its own."""

    def __init__(self, component: str, run: Callable[[Reporter, threading.Event], None]) -> None:
        self.registry = CollectorRegistry()
        self.status = Reporter(None, component, self.registry)
        self.error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(run,), daemon=True)
        self._thread.start()

    def _run(self, run: Callable[[Reporter, threading.Event], None]) -> None:
        try:
            run(self.status, self._stop)
        except BaseException as error:
            self.error = error

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def connected(self) -> bool:
        component = self.status.current.component
        return self.registry.get_sample_value("jmsbridge_connection_up", {"component": component}) == 1

    def sample(self, name: str, **labels: str) -> int:
        return int(self.registry.get_sample_value(name, labels) or 0)

    def comes_to(self, count: Callable[[], int], wanted: int, what: str, seconds: float) -> None:
        """Waits until a count is that high; fails at once when the worker does."""
        try:
            until(lambda: self.error or count() >= wanted, seconds)
        except AssertionError:
            raise AssertionError(f"{count()} of {wanted} {what}; {self.status.current}") from None
        assert self.error is None, self.error

    def stop(self, seconds: float = 30) -> None:
        """Asks it to stop and waits until it has."""
        self._stop.set()
        self.join(seconds)

    def join(self, seconds: float = 30) -> None:
        """Waits until it has ended."""
        self._thread.join(patience(seconds))
        assert not self._thread.is_alive(), f"still running: {self.status.current}"
        self.status.close()


class Running(Worker):
    """A worker of the source."""

    def __init__(self, config: Config, worker: int = 1) -> None:
        super().__init__("source:src", lambda status, stop: run_source(config, SOURCE, worker, status, stop))

    def count(self, what: str, **labels: str) -> int:
        """`received`, `journaled`, `acknowledged`, `rejected` messages or `reconnects`."""
        name = f"jmsbridge_source_{what}_total" if what == "reconnects" else f"jmsbridge_source_{what}_messages_total"
        return self.sample(name, source=SOURCE, **labels)

    def acknowledges(self, count: int, seconds: float = 60) -> None:
        """Waits until so many are acknowledged."""
        what = f"acknowledged, {self.count('received')} received before"
        self.comes_to(lambda: self.count("acknowledged"), count, what, seconds)


@dataclass(frozen=True)
class Located:
    """A journal record and its place."""

    record: Record
    partition: int
    offset: int
    timestamp_ms: int
    message: Message = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", Message.from_record(self.record))


def read(bootstrap: str, topic: str) -> list[Located]:
    """Everything in a topic now, by partition and offset, apart from transactions that are open or were aborted."""
    transactions_have_ended(bootstrap, topic)
    places = map(LocatedRecord.of, committed_records(bootstrap, topic))
    found = [Located(each.record, each.position.partition, each.position.offset, each.time_ms) for each in places]
    return sorted(found, key=lambda located: (located.partition, located.offset))


def visible(config: Config) -> list[Message]:
    """What a reader of the journal sees, by partition and offset: nothing of open or aborted transactions."""
    return [located.message for located in read(config.bootstrap_servers, config.journal.topic)]


def bodies(bootstrap: str, topic: str) -> list[bytes]:
    """The values in a topic."""
    return [located.record.value or b"" for located in read(bootstrap, topic)]


def numbered(count: int, size: int = 0, begin: int = 0) -> list[Outgoing]:
    """Messages whose bodies are numbers, filled up to `size`."""
    return [Outgoing(str(n).encode().ljust(size, b".")) for n in range(begin, begin + count)]


def numbers(bootstrap: str, topic: str) -> list[int]:
    """The numbers that arrived."""
    return [int(body.rstrip(b".")) for body in bodies(bootstrap, topic)]
