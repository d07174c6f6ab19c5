"""Fixtures for tests of sources against real brokers."""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.embedded import EmbeddedKafka, EmbeddedNats, free_ports
from engine.embedded.ports import accepts
from engine.jars import HALLMARKS, jars
from engine.kafka.topics import BridgeTopics
from tests.conftest import JARS
from tests.dropboxes import Dropboxes
from tests.integration.connectors.amqp_harness import AmqpHarness, AmqpSinkHarness
from tests.integration.connectors.amqp_jms import QpidClient
from tests.integration.connectors.dropbox_harness import DropboxHarness, DropboxSinkHarness
from tests.integration.connectors.jms_ends import Ends, child, ends_of
from tests.integration.connectors.jms_harness import JmsHarness, JmsSinkHarness, client
from tests.integration.connectors.kafka_harness import KafkaSinkHarness
from tests.integration.connectors.nats_harness import Connectors, NatsHarness
from tests.integration.connectors.proxy import Proxy
from tests.integration.connectors.running import Running, configure
from tests.integration.connectors.sinks import NatsSinkHarness, RunningSink, StompSinkHarness
from tests.integration.connectors.stomp_harness import StompHarness
from tests.integration.connectors.stomp_jms import StrictArtemis
from tests.integration.connectors.systems import SINKS, SOURCES
from tests.java import class_archive
from tests.waiting import until

if TYPE_CHECKING:
    from engine.embedded import EmbeddedArtemis
    from routes.model import Config
    from tests.integration.connectors.harness import Harness
    from tests.integration.connectors.sinks import SinkHarness

Configure = Callable[[Mapping[str, str]], "Config"]
Start = Callable[..., Running]
StartSink = Callable[..., RunningSink]

Connect = Callable[..., QpidClient]
MakeEnds = Callable[..., Ends]
Proxied = Callable[..., Proxy]

_names = itertools.count(1)


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    """One that the test may halt."""
    server = EmbeddedKafka(tmp_path / "kafka", *free_ports(1), JARS)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def stomp(artemis: EmbeddedArtemis) -> StompHarness:
    return StompHarness(artemis)


@pytest.fixture(scope="session")
def qpid(artemis: EmbeddedArtemis) -> Iterator[QpidClient]:
    """A JMS application over AMQP, which connects again when Artemis was away."""
    client = QpidClient(f"failover:({artemis.amqp_url})")
    yield client
    # Not closed: Qpid JMS waits for a minute for the answer of a connection that a test has cut.
    client.leave()


@pytest.fixture
def port() -> int:
    """Where an AMQP listener is to be."""
    return free_ports(1)[0]


@pytest.fixture
def connect(port: int) -> Iterator[Connect]:
    """Connects a JMS application to the listener; arguments are options of the URL."""
    clients: list[QpidClient] = []

    def make(options: str = "") -> QpidClient:
        until(lambda: accepts(port))
        clients.append(QpidClient(f"amqp://127.0.0.1:{port}{options}"))
        return clients[-1]

    yield make
    for each in clients:
        each.close()


@pytest.fixture
def amqp(artemis: EmbeddedArtemis, qpid: QpidClient) -> AmqpHarness:
    return AmqpHarness(artemis, qpid)


@pytest.fixture
def amqp_sink(artemis: EmbeddedArtemis, qpid: QpidClient) -> AmqpSinkHarness:
    return AmqpSinkHarness(artemis, qpid)


@pytest.fixture(scope="session")
def core(artemis: EmbeddedArtemis) -> Iterator[QpidClient]:
    """A JMS application by Artemis' own client, which connects again when Artemis was away."""
    url = f"{artemis.core_url}?reconnectAttempts=-1&retryInterval=100&callTimeout=60000"
    client = QpidClient(url)
    yield client
    client.leave()


@pytest.fixture(scope="session")
def core_archive(artemis: EmbeddedArtemis, tmp_path_factory: pytest.TempPathFactory) -> Sequence[str]:
    """Options with which the process of a source or sink by Artemis' own client starts in half the time."""
    keys = client(artemis.core_url)

    def record(listed: Path) -> str:
        both = ends_of(tmp_path_factory.mktemp("archive"), keys, "queue:archive")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JDK_JAVA_OPTIONS", f"{os.environ['JDK_JAVA_OPTIONS']} -XX:DumpLoadedClassList={listed}")
            both.source.connect()
        command = Path(f"/proc/{child()}/cmdline").read_text().split("\0")
        both.close()
        return command[command.index("-cp") + 1]

    made = (jars() / "jms" / HALLMARKS["jms"]).stat().st_mtime_ns
    return class_archive(f"{keys['.class-path']}{jars()}{made}", record)


@pytest.fixture
def fast_core(core_archive: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Has processes of Artemis' own client start from their archive."""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", " ".join([os.environ["JDK_JAVA_OPTIONS"], *core_archive]))


@pytest.fixture
def ends(tmp_path: Path, queue: str) -> Iterator[MakeEnds]:
    """Makes a source and a sink of type `jms` of these keys; arguments by name are further keys of the source."""
    made: list[Ends] = []

    def make(given: Mapping[str, str], destination: str = "", **source: str) -> Ends:
        made.append(ends_of(tmp_path, given, destination or f"queue:{queue}", **source))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(scope="session")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StrictArtemis]:
    server = StrictArtemis(tmp_path_factory.mktemp("strict") / "data", *free_ports(3), JARS)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def jms(artemis: EmbeddedArtemis, core: QpidClient, fast_core: None) -> JmsHarness:
    return JmsHarness(artemis, core)


@pytest.fixture
def jms_sink(artemis: EmbeddedArtemis, core: QpidClient, fast_core: None) -> JmsSinkHarness:
    return JmsSinkHarness(artemis, core)


@pytest.fixture
def jetstream(nats: EmbeddedNats) -> NatsHarness:
    return NatsHarness(nats)


@pytest.fixture
def own(tmp_path: Path, nats_server: Path) -> Iterator[NatsHarness]:
    """A NATS server of the test's own, to kill."""
    server = EmbeddedNats(tmp_path / "own", *free_ports(1), nats_server)
    server.start()
    yield NatsHarness(server)
    server.stop()


@pytest.fixture
def connectors(tmp_path: Path) -> Iterator[Connectors]:
    """Makes NATS sources and sinks, and closes them."""
    made = Connectors(tmp_path)
    yield made
    made.close()


@pytest.fixture(params=SOURCES)
def harness(request: pytest.FixtureRequest) -> Harness:
    """Each connector's broker; the names are those of the fixtures that give it."""
    found: Harness = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=SINKS)
def sink_harness(request: pytest.FixtureRequest) -> SinkHarness:
    """The same for sinks."""
    found: SinkHarness = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def stomp_sink(stomp: StompHarness) -> StompSinkHarness:
    return StompSinkHarness(stomp)


@pytest.fixture
def nats_sink(nats: EmbeddedNats) -> NatsSinkHarness:
    return NatsSinkHarness(nats)


@pytest.fixture(scope="session")
def other_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A second Kafka cluster, which tests may kill and start again."""
    server = EmbeddedKafka(tmp_path_factory.mktemp("other"), *free_ports(1), JARS, heap_megabytes=256)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def kafka_sink(other_kafka: EmbeddedKafka) -> KafkaSinkHarness:
    return KafkaSinkHarness(other_kafka)


@pytest.fixture
def boxes(tmp_path: Path) -> Dropboxes:
    return Dropboxes(tmp_path / "spool")


@pytest.fixture
def dropbox(boxes: Dropboxes) -> DropboxHarness:
    return DropboxHarness(boxes)


@pytest.fixture
def dropbox_sink(boxes: Dropboxes) -> DropboxSinkHarness:
    return DropboxSinkHarness(boxes)


@pytest.fixture
def start_sink() -> Iterator[StartSink]:
    """Starts workers of sinks; those still running are stopped at the end."""
    running: list[RunningSink] = []

    def begin(config: Config, worker: int = 1) -> RunningSink:
        running.append(RunningSink(config, worker))
        return running[-1]

    yield begin
    for each in running:
        if each.alive:
            each.stop()


@pytest.fixture
def queue() -> str:
    """A name nobody else uses."""
    return f"q{next(_names)}-{uuid.uuid4().hex[:6]}"


@pytest.fixture
def configured(kafka: EmbeddedKafka, tmp_path: Path, queue: str) -> Configure:
    """Makes a configuration with a fresh journal, which exists."""

    def make(settings: Mapping[str, str]) -> Config:
        config = configure(tmp_path, kafka.bootstrap, f"journal-{queue}", settings)
        BridgeTopics(config).ensure_journal()
        return config

    return make


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts workers; those still running are stopped at the end."""
    running: list[Running] = []

    def begin(config: Config, worker: int = 1) -> Running:
        running.append(Running(config, worker))
        return running[-1]

    yield begin
    for each in running:
        if each.alive:
            each.stop()


@pytest.fixture
def proxied() -> Iterator[Proxied]:
    """Puts a proxy in front of a port; the second argument is its own port, if not any."""
    proxies: list[Proxy] = []

    def make(target_port: int, port: int = 0) -> Proxy:
        proxies.append(Proxy(target_port, port))
        return proxies[-1]

    yield make
    for each in proxies:
        each.__exit__()
