"""A journal, outputs and a router process around them: what is put in, what comes out, and what happens in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from pathlib import Path
from threading import Event, Thread
from typing import IO, TYPE_CHECKING, Any, Generic, Self, TypeVar

from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families as parse

from engine.message import BodyType, Message, Record
from routes.properties import JmsType, Property
from tests.integration.router.router_process import route
from tests.topic_records import committed_records, ordered_producer
from tests.waiting import patience

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import TopicFactory

R = TypeVar("R", bound="Router")

_SCRIPT = Path(__file__).with_name("router_process.py")
_ROOT = Path(__file__).parents[3]

ROUTES = """\
routes.red.in.include=color='red'
routes.red.out.topic={red}
routes.blue.in.include=color='blue'
routes.blue.out.topic={blue}
"""


class Router(ABC):
    """One life of the router, whose status is read line by line."""

    def __init__(self, status: IO[bytes]) -> None:
        self.lines: list[dict[str, Any]] = []
        self._reader = Thread(target=self._read, args=(status,), daemon=True)
        self._reader.start()

    @property
    @abstractmethod
    def has_ended(self) -> bool: ...

    @abstractmethod
    def wait_end(self, seconds: float = 90) -> int:
        """The exit status."""

    @abstractmethod
    def stop(self) -> int:
        """In good order."""

    @abstractmethod
    def close(self) -> None:
        """Whatever state it is in."""

    @property
    def state(self) -> str:
        return self.lines[-1]["state"] if self.lines else "none"

    @property
    def error(self) -> str:
        return next((line["error"] for line in reversed(self.lines) if line["error"]), "")

    def metric(self, name: str, **labels: str) -> float:
        """The last value of a series; 0 without one."""
        for line in reversed(self.lines):
            samples = (sample for family in parse(line["metrics"]) for sample in family.samples)
            for sample in samples:
                if sample.name == name and sample.labels == labels:
                    return sample.value
        return 0.0

    def wait_ready(self, seconds: float = 90) -> Self:
        wait_for(lambda: self.state == "ready" or self.has_ended, seconds)
        assert self.state == "ready", (self.state, self.error)
        return self

    def _read(self, status: IO[bytes]) -> None:
        for line in status:
            self.lines.append(json.loads(line))


class RouterProcess(Router):
    """A router that is a process, as in a bridge."""

    def __init__(self, properties: Path) -> None:
        self._folder = properties.parent
        self._stderr = (self._folder / "stderr.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, str(_SCRIPT), str(properties)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": str(_ROOT)},
            start_new_session=True,
        )
        assert self._process.stdout is not None
        super().__init__(self._process.stdout)

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def wait_end(self, seconds: float = 90) -> int:
        status = self._process.wait(patience(seconds))
        self._reader.join(10)
        # Shown by pytest if the test fails.
        print(
            f"router ended with {status}, {self.state}: {self.error}", (self._folder / "stderr.log").read_text()[-4000:]
        )
        return status

    def stop(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self.wait_end()

    def kill(self) -> None:
        """SIGKILL for Python and the JVM alike."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)

    def close(self) -> None:
        self.kill()
        self._reader.join(10)
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            if stream is not None:
                stream.close()


class RouterThread(Router):
    """A router in a thread of this process; the caller sees to its Spark session."""

    def __init__(self, properties: Path) -> None:
        reading, writing = os.pipe()
        self._stop = Event()
        self._status: int | None = None
        self._pipe = os.fdopen(reading, "rb")
        self._thread = Thread(target=self._run, args=(properties, writing))
        self._thread.start()
        super().__init__(self._pipe)

    def _run(self, properties: Path, status: int) -> None:
        self._status = route(properties, status, self._stop)

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def wait_end(self, seconds: float = 90) -> int:
        self._thread.join(patience(seconds))
        self._reader.join(10)
        assert self._status is not None, (self.state, self.error)
        return self._status

    def stop(self) -> int:
        self._stop.set()
        return self.wait_end()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(90)
        self._reader.join(10)
        self._pipe.close()


class Bench(Generic[R]):
    """Topics, a properties file, numbered messages, and the routers that were started on them."""

    def __init__(self, folder: Path, bootstrap: str, topic: TopicFactory, launch: Callable[[Path], R]) -> None:
        self.folder = folder
        self._launch = launch
        self.bootstrap = bootstrap
        self.journal = topic("journal", 2)
        self.red, self.blue, self.dead = topic("red", 2), topic("blue", 1), topic("dead", 1)
        self.routers: list[R] = []
        self.count = 0
        large = {"message.max.bytes": 16 << 20}
        self._producer = ordered_producer(bootstrap, {"linger.ms": 5, **large})

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def start(self, mode: str = "realtime", routes: str = ROUTES, interval: str = "5s", **settings: str) -> R:
        path = self.folder / "jms-bridge.properties"
        lines = {
            "bridge.id": "bench",
            "kafka.bootstrap.servers": self.bootstrap,
            "journal.topic": self.journal,
            "journal.partitions": "2",
            "journal.max-message-bytes": "1000000",
            "router.mode": mode,
            "router.interval": interval,
            "router.checkpoint": str(self.checkpoint),
            "routing.dead-letter-topic": self.dead,
            "embedded": "off",
            # Half the work at each start.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "embedded.data": str(self.folder / "var"),
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        text = "".join(f"{name}={value}\n" for name, value in lines.items())
        path.write_text(text + routes.format(red=self.red, blue=self.blue))
        router = self._launch(path)
        self.routers.append(router)
        return router

    def send(self, count: int, **properties: str) -> None:
        """Numbered messages, red and blue in turn; returns when the journal has them."""
        for _ in range(count):
            self._put(
                self._producer,
                self.journal,
                Message(str(self.count).encode(), **self._headers(properties)).to_record(),
            )
            self.count += 1
        assert self._producer.flush(60) == 0

    def send_in_transaction(self, count: int, *, abort: bool = False) -> None:
        """Messages that leave markers behind them in the journal; aborted ones take no number."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": self.journal, "log_level": 0})
        producer.init_transactions(30)
        producer.begin_transaction()
        first = self.count
        for _ in range(count):
            self._put(producer, self.journal, Message(str(self.count).encode(), **self._headers({})).to_record())
            self.count += 1
        if abort:
            producer.flush(30)
            producer.abort_transaction(30)
            self.count = first
        else:
            producer.commit_transaction(30)

    def put(self, topic: str, record: Record) -> None:
        """A record anywhere."""
        self._put(self._producer, topic, record)
        assert self._producer.flush(60) == 0

    def records(self, *topics: str) -> dict[tuple[str, int, int], Record]:
        """Everything that is in the topics now (the outputs by default), by place."""
        topics = topics or (self.red, self.blue, self.dead)
        found: dict[tuple[str, int, int], Record] = {}
        for message in committed_records(self.bootstrap, *topics):
            headers: Any = tuple(message.headers() or ())
            place = str(message.topic()), message.partition() or 0, message.offset() or 0
            found[place] = Record(message.key(), message.value(), headers)
        return found

    def numbers(self, *topics: str) -> Counter[int]:
        """How often each number is in the topics."""
        return Counter(int(record.value or b"-1") for record in self.records(*topics).values())

    def wait_numbers(self, count: int, seconds: float = 60) -> Counter[int]:
        try:
            wait_for(lambda: self.numbers().total() >= count, seconds)
        except AssertionError:
            ends = [(router.state, router.error) for router in self.routers]
            msg = f"{self.numbers().total()} of {count} records after {seconds} s; routers: {ends}"
            raise AssertionError(msg) from None
        return self.numbers()

    def close(self) -> None:
        for router in self.routers:
            router.close()

    def _put(self, producer: Producer, topic: str, record: Record) -> None:
        headers: Any = list(record.headers)
        while True:
            try:
                producer.produce(topic, record.value, record.key, headers=headers)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)

    def _headers(self, properties: dict[str, str]) -> dict[str, Any]:
        color = "red" if self.count % 2 else "blue"
        values = {"color": color, **properties}
        return {
            "body_type": BodyType.TEXT,
            "headers": {"JMSMessageID": f"ID:{self.count}"},
            "properties": {name: Property(value, JmsType.STRING) for name, value in values.items()},
        }


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < patience(seconds), "not in time"
        time.sleep(0.1)
