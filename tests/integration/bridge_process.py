"""A whole bridge as its users run it: `python -m engine run` on a properties file, with everything it starts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import psutil
import stomp
from nats.aio.client import Client

from engine.embedded import free_ports
from tests.metrics_page import samples
from tests.topic_records import committed_records
from tests.waiting import patience

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from engine.embedded import EmbeddedArtemis, EmbeddedKafka

__all__ = [
    "Bridge",
    "configuration",
    "descendants",
    "elsewhere",
    "part",
    "run_to_its_end",
    "wait",
    "wait_arrived",
    "with_nats",
]

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
SECONDS = 240

EMBEDDED = """\
bridge.id=test
embedded.data={folder}/var
embedded.kafka.port={kafka}
embedded.artemis.port={core}
embedded.stomp.port={stomp}
embedded.amqp.port={amqp}
http.address=127.0.0.1:{http}
router.checkpoint={folder}/var/checkpoint
router.interval=10s
journal.partitions=2
source.jms.type=stomp
source.jms.destinations=queue:orders
routes.orders.in.include=msg.address==orders AND region = 'emea'
routes.orders.out.topic=routed
routes.orders.conv.key=msg.header.number
routing.dead-letter-topic=dead
routing.on-soft-failure=dead-letter
"""


def configuration(folder: Path, more: str = "") -> Path:
    """A properties file with free ports and all data in `folder`; `more` overrides what stands before it."""
    names = ("kafka", "core", "stomp", "amqp", "http")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    file = folder / "jms-bridge.properties"
    file.write_text(EMBEDDED.format(folder=folder, **ports) + more)
    return file


def elsewhere(name: str, kafka: EmbeddedKafka, artemis: EmbeddedArtemis) -> str:
    """Lines for `configuration`: brokers that run already, with an id, a queue and topics of this name."""
    return (
        f"bridge.id={name}\nembedded=off\nkafka.bootstrap.servers={kafka.bootstrap}\n"
        f"source.jms.url={artemis.stomp_url}\nembedded.stomp.port={artemis.stomp_url.rpartition(':')[2]}\n"
        f"source.jms.destinations=queue:{name}\nroutes.orders.in.include=region = 'emea'\n"
        f"journal.topic={name}.journal\nroutes.orders.out.topic={name}.routed\nrouting.dead-letter-topic={name}.dead\n"
        "routing.create-topics=true\n"
    )


class Bridge:
    """One configuration, run any number of times."""

    def __init__(self, file: Path, launcher: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> None:
        """`launcher` is a command that becomes the one behind it; `environment` is added to ours."""
        self.file = file
        self._launcher = launcher
        self._environment = {**os.environ, **(environment or {})}
        self.settings = dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)
        self.url = f"http://{self.settings['http.address']}"
        own = self.settings.get("embedded.kafka.port", "")
        self.bootstrap = self.settings.get("kafka.bootstrap.servers", f"127.0.0.1:{own}")
        self.process: subprocess.Popen[bytes] | None = None
        self._output = file.with_suffix(".out")

    @property
    def output(self) -> str:
        """All it has written so far, in all runs."""
        return self._output.read_text()

    def start(self, *arguments: str) -> None:
        with self._output.open("ab") as output:
            command = [*self._launcher, sys.executable, "-m", "engine", "run", "-c", str(self.file), *arguments]
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def wait_ready(self, seconds: float = SECONDS) -> None:
        def ready() -> bool:
            assert self.running, self.output
            return self.get("/ready")[0] == 200

        wait(ready, lambda: f"{self.get('/ready')}\n{self.output}", seconds)

    def interrupt(self) -> int:
        """Ctrl-C; its exit status."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGINT)
        return self.process.wait(patience(SECONDS))

    def end(self) -> None:
        """Whatever state it is in."""
        if self.process is not None:
            left = descendants(self.process.pid)
            if self.running:
                self.interrupt()
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def get(self, path: str) -> tuple[int, str]:
        """Status and body; status 0 without an answer."""
        with closing(HTTPConnection(self.settings["http.address"], timeout=10)) as connection:
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
            except OSError as error:
                return 0, str(error)

    def ready(self) -> Any:
        return json.loads(self.get("/ready")[1])

    def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples that have these labels."""
        return sum(sample.value for sample in samples(self.get("/metrics")[1], name, **labels))

    def send(self, numbers: Iterable[int], destination: str = "orders", **headers: str) -> None:
        """Persistent messages to a queue, one for each number."""
        connection = stomp.Connection12([("127.0.0.1", int(self.settings["embedded.stomp.port"]))])
        connection.connect(wait=True)
        for number in numbers:
            properties = {"region": "emea", "number": str(number), "persistent": "true", **headers}
            connection.send(destination, f"order {number}", headers={"destination-type": "ANYCAST", **properties})
        connection.disconnect(receipt="done")

    def records(self, topic: str) -> list[tuple[str, str]]:
        """Key and value of every record in a topic."""
        return read(self.bootstrap, topic)


def read(bootstrap: str, topic: str) -> list[tuple[str, str]]:
    """Key and value of every record in a topic."""
    records = committed_records(bootstrap, topic)
    return [((record.key() or b"").decode(), (record.value() or b"").decode()) for record in records]


def run_to_its_end(file: Path, *arguments: str) -> tuple[int, str, str]:
    """A run that is expected to refuse: exit status, stdout, stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "engine", "run", "-c", str(file), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def descendants(pid: int) -> set[int]:
    """All processes that came from this one and live."""
    try:
        return {child.pid for child in psutil.Process(pid).children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()


def part(bridge: Bridge, only: str) -> int:
    """The process of a part."""
    assert bridge.process
    for pid in descendants(bridge.process.pid):
        # One that has just ended is nobody's part any more.
        with suppress(OSError):
            if f"--only\0{only}\0".encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
    raise LookupError(only)


def with_nats(bridge: Bridge, work: Callable[[Client], Awaitable[T]]) -> T:
    """What `work` returns, done with a client of the bridge's NATS."""

    async def run() -> T:
        client = Client()
        await client.connect(f"nats://127.0.0.1:{bridge.settings['embedded.nats.port']}", allow_reconnect=False)
        try:
            return await work(client)
        finally:
            await client.close()

    return asyncio.run(run())


def wait(condition: Callable[[], bool], what: Callable[[], object] = lambda: "", seconds: float = SECONDS) -> None:
    begun, pause = time.monotonic(), 0.05
    while not condition():
        assert time.monotonic() - begun < patience(seconds), what()
        time.sleep(pause)
        # Each look costs the bridge some work, which a long wait does not need.
        pause = min(pause * 1.3, 0.5)


def wait_arrived(bridge: Bridge, *keys: int, topic: str = "routed") -> None:
    """Waits for the records of these keys, and sees that none is there twice."""
    wait(lambda: {str(key) for key in keys} <= {key for key, _ in bridge.records(topic)}, lambda: bridge.output)
    assert [key for key, count in Counter(key for key, _ in bridge.records(topic)).items() if count > 1] == []
