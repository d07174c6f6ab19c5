"""A bench on which topologies run as processes, on a real Kafka."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from engine.embedded import free_ports
from tests.integration.topologies.shared_process import Command, SharedProcess
from tests.metrics_page import samples
from tests.topic_records import committed_records, ordered_producer
from tests.waiting import patience, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Message

    from engine.embedded import EmbeddedKafka

PARTITIONS, PAGES = 2, 20
BEGIN_MS = 1_000_000_000_000


class TopologyBench:
    """Topics of one test, records for them, and processes that run topologies over them."""

    def __init__(self, folder: Path, bootstrap: str, shared: SharedProcess | None = None) -> None:
        """Makes the topics; without a `shared` process the bench has one of its own."""
        self.prefix = f"t{uuid.uuid4().hex[:10]}"
        self.folder = folder
        self.bootstrap = bootstrap
        self.sent = 0
        self._shared = SharedProcess() if shared is None else shared
        self._owns_process = shared is None
        self._processes: list[subprocess.Popen[bytes] | Command] = []
        self.log = folder / "topology.log"
        self.file = folder / "jms-bridge.properties"
        self.http_address = f"127.0.0.1:{free_ports(1)[0]}"
        self.file.write_text(
            f"bridge.id=t\nkafka.bootstrap.servers={bootstrap}\nembedded.data={folder}/var\n"
            f"source.box.type=dropbox\nsource.box.root={folder}/in\nsource.box.destinations=queue:a\n"
            f"routes.all.in.include=TRUE\nroutes.all.out.topic=out\nhttp.address={self.http_address}\n"
        )
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        inputs = ("clicks", "pages", "visits", "orders")
        own = (*inputs, "orders-out", "counts-out", "joined-out", "processed-out", "visits-out")
        names = [f"{self.prefix}-{name}" for name in own]
        # Their records are from 2001.
        new = [NewTopic(name, PARTITIONS, 1, config={"retention.ms": "-1"}) for name in names]
        for made in admin.create_topics(new).values():
            made.result(30)
        until(lambda: set(names) <= admin.list_topics(timeout=10).topics.keys())

    def send_pages(self) -> None:
        producer = self._producer()
        for page in range(PAGES):
            producer.produce(f"{self.prefix}-pages", json.dumps({"title": f"T{page}"}), f"p{page}", timestamp=1)
        assert producer.flush(30) == 0

    def send_clicks(self, count: int) -> None:
        """Sends clicks that are one second apart and numbered from 1, so that each changes its total."""
        producer = self._producer()
        for number in range(self.sent, self.sent + count):
            value = json.dumps({"page": f"p{number % PAGES}", "n": number + 1})
            producer.produce(f"{self.prefix}-clicks", value, f"k{number}", timestamp=BEGIN_MS + number * 1_000)
        assert producer.flush(60) == 0
        self.sent += count

    def remove_page(self, page: str) -> None:
        producer = self._producer()
        producer.produce(f"{self.prefix}-pages", None, page, timestamp=2)
        assert producer.flush(30) == 0

    def policy(self, topic: str, change: str | None = None) -> str:
        """The cleanup.policy of a topic, which is changed first if there is a `change`."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        resource = ConfigResource(ResourceType.TOPIC, f"{self.prefix}-{topic}")
        if change is not None:
            # The records are from 2001.
            for name, value in (("cleanup.policy", change), ("retention.ms", "-1")):
                entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
                resource.add_incremental_config(entry)
            for done in admin.incremental_alter_configs([resource]).values():
                done.result(30)

        def told() -> str:
            (found,) = (each.result(30) for each in admin.describe_configs([resource]).values())
            return str(found["cleanup.policy"].value)

        if change is not None:
            # The controller has the change; the broker that is asked hears of it a moment later.
            until(lambda: told() == change)
        return told()

    def has(self, topic: str) -> bool:
        """Whether Kafka has the topic."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        return f"{self.prefix}-{topic}" in admin.list_topics(timeout=10).topics

    def send_unreadable(self) -> None:
        """Sends a click that is not JSON."""
        producer = self._producer()
        producer.produce(f"{self.prefix}-clicks", b"{", b"k", timestamp=BEGIN_MS)
        assert producer.flush(60) == 0

    def metric(self, name: str, **labels: str) -> float | None:
        """Value of a series at the bridge's page of metrics; None if it is not there."""
        try:
            page = self.page("/metrics")
        except urllib.error.URLError:
            return None
        return next((sample.value for sample in samples(page, name, **labels)), None)

    def start(self, name: str, *options: str) -> Command:
        """Starts a topology in the process that tests share."""
        arguments = ["topology", "run", self.function(name), "-c", str(self.file), *options]
        command = self._shared.start(arguments, self._environment(), self.log)
        self._processes.append(command)
        return command

    def start_alone(self, name: str, *options: str) -> subprocess.Popen[bytes]:
        """Starts a topology in a process and a JVM of its own."""
        return self._start("topology", "run", self.function(name), *options)

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "engine", *arguments, "-c", str(self.file)],
                env=self._environment(),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def check_finished(self, name: str) -> None:
        """A topology that has stopped has committed each batch that it began, and its state with all clicks sent."""
        folder = self.folder / "var" / "topologies" / f"{self.prefix}-{name}" / "spark"
        begun, committed = (
            max(int(each.name) for each in (folder / kind).iterdir() if each.name.isdecimal())
            for kind in ("offsets", "commits")
        )
        assert begun == committed
        positions = json.loads((folder / "offsets" / str(begun)).read_text().splitlines()[-1])
        assert sum(positions[f"{self.prefix}-clicks"].values()) == self.sent

    def run_part(self, part: str | None = None) -> subprocess.Popen[bytes]:
        """Starts a bridge with one part alone, or with all."""
        return self._start("run", *([] if part is None else ["--only", part]))

    def function(self, name: str) -> str:
        return f"tests.integration.topologies.definitions:{name}"

    def fails(self, name: str, *options: str) -> tuple[int, str]:
        """Exit code and last line of a run that ends by itself."""
        process = self.start(name, *options)
        code = process.wait(patience(120))
        return code, self.log.read_text().splitlines()[-1]

    def command(self, *arguments: str) -> str:
        """What a command about topologies prints; it has a process of its own while another one runs."""
        arguments = ("topology", *arguments, "-c", str(self.file))
        output = self.folder / "command.log"
        output.unlink(missing_ok=True)
        if any(process.poll() is None for process in self._processes):
            with output.open("wb") as file:
                program = [sys.executable, "-m", "engine", *arguments]
                subprocess.run(
                    program, stdout=file, stderr=file, check=False, timeout=patience(120), env=self._environment()
                )
        else:
            self._shared.start(list(arguments), self._environment(), output).wait(patience(120))
        return output.read_text()

    def kill(self, process: subprocess.Popen[bytes] | Command) -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)

    def stop(self, process: subprocess.Popen[bytes] | Command) -> None:
        """Ends a run; if it has processes of its own, all of them at once, as a service manager does."""
        if isinstance(process, Command):
            process.stop()
        else:
            os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(patience(60)) == 0, self.log.read_text()[-3_000:]

    def published(self, topic: str) -> list[tuple[str, dict[str, Any]]]:
        """Keys and values of what readers of committed records see."""
        return [(key, value) for key, value in self._read(topic) if value is not None]

    def times(self, topic: str) -> list[int]:
        """Timestamps of what readers of committed records see."""
        return [record.timestamp()[1] for record in self.records(topic)]

    def latest(self, topic: str) -> dict[str, dict[str, Any]]:
        """What compaction would leave of a topic."""
        return {key: value for key, value in dict(self._read(topic)).items() if value is not None}

    def _read(self, topic: str) -> Iterator[tuple[str, dict[str, Any] | None]]:
        for record in self.records(topic):
            key, value = record.key(), record.value()
            assert key is not None
            yield str(key, "utf-8"), None if value is None else json.loads(value)

    def records(self, topic: str) -> Iterator[Message]:
        """What readers of committed records see of a topic now."""
        return committed_records(self.bootstrap, f"{self.prefix}-{topic}")

    def comes_to(self, topic: str, count: int) -> None:
        """Waits until so many records are published."""
        try:
            until(lambda: len(self.published(topic)) >= count, 120, f"{count} records in {topic}")
        except AssertionError as error:
            end_of_log = self.log.read_text()[-3_000:]
            msg = f"{error}, but {len(self.published(topic))}; the log ends with:\n{end_of_log}"
            raise AssertionError(msg) from None

    def page(self, path: str) -> str:
        """A page of the bridge that runs."""
        with urllib.request.urlopen(f"http://{self.http_address}{path}", timeout=15) as page:
            text: str = page.read().decode()
        return text

    def ready(self) -> dict[str, str]:
        """State and detail of each part of the bridge that runs, by name."""
        try:
            answer = self.page("/ready")
        except urllib.error.HTTPError as error:
            answer = error.read().decode()
        parts = json.loads(answer)["components"]
        return {name: f"{part['state']} {part['detail']}" for name, part in parts.items()}

    def runs(self) -> int:
        """How many runs of topologies have begun to work."""
        return self.log.read_text().count("topology runs") if self.log.exists() else 0

    def commits(self, name: str) -> None:
        """Waits until the state has been committed with all that was published so far."""
        folder = self.folder / "var" / "topologies" / f"{self.prefix}-{name}" / "spark" / "commits"

        def numbers() -> set[str]:
            return {path.name for path in folder.glob("*") if path.name.isdecimal()}

        before = numbers()
        until(lambda: len(numbers() - before) > 1, 60, "two commits of the state")

    def check(self, topic: str) -> None:
        """Each click has changed the totals once, and the totals are those of all clicks."""
        published = self.published(topic)
        assert len(published) == self.sent
        repeated = [each for each, times in Counter(json.dumps(each) for each in published).items() if times > 1]
        assert repeated == []
        last = {(key, value.get("window_start")): value["total"] for key, value in published}
        assert sum(last.values()) == sum(range(self.sent + 1))

    def close(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                self.kill(process)
        if self._owns_process:
            self._shared.close()

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "TOPOLOGY_PREFIX": self.prefix}

    def _producer(self) -> Producer:
        return ordered_producer(self.bootstrap, {"partitioner": "murmur2_random"})


def children(pid: int) -> list[int]:
    """Process ids of the children of a process."""
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture(scope="session")
def shared_process() -> Iterator[SharedProcess]:
    shared = SharedProcess()
    yield shared
    shared.close()


@pytest.fixture
def bench(tmp_path: Path, kafka: EmbeddedKafka, shared_process: SharedProcess) -> Iterator[TopologyBench]:
    made = TopologyBench(tmp_path, kafka.bootstrap, shared_process)
    yield made
    made.close()
