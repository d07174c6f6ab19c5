"""Real servers for the tests: one Kafka, Artemis and NATS for each pytest worker, started when a test first asks."""

from __future__ import annotations

import functools
import gc
import itertools
import logging
import os
import signal
import uuid
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import hypothesis
import pytest
import structlog
from confluent_kafka.admin import AdminClient, NewTopic

from engine.embedded import EmbeddedArtemis, EmbeddedKafka, EmbeddedNats, find_nats_server, free_ports
from engine.errors import SetupError
from tests.waiting import until
from tools.setup import NATS, jars_are_current

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from engine.embedded.server import EmbeddedServer
    from tests.token_issuer import TokenIssuer

Server = TypeVar("Server", bound="EmbeddedServer")

TESTS = Path(__file__).parent
JARS = TESTS.parent / ".jars"
ONE_WORKER = (
    TESTS / "integration" / "restarted_bridge",
    TESTS / "integration" / "topologies",
    TESTS / "integration" / "one_bridge",
    TESTS / "spark",
    TESTS / "integration" / "default_bridge",
    TESTS / "integration" / "topics",
)
"""Folders whose files share a bridge, a Spark session or a server, `conftest.py` of each; the longest first."""

_SLOWEST, _LONG_SECONDS = 10, 60
"""Number of files that are named at the end of a run, and the seconds that it takes at least."""

# How long one example takes says nothing on a machine that does other work beside it.
hypothesis.settings.register_profile("bridge", deadline=None)
hypothesis.settings.load_profile("bridge")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuses tests with the jars of other sources, whose failures say nothing."""
    if not hasattr(session.config, "workerinput") and JARS.is_dir() and not jars_are_current():
        pytest.exit("the jars are not those of the sources: make setup-dev", pytest.ExitCode.USAGE_ERROR)


def pytest_configure() -> None:
    """Has JVMs start without the optimising compiler, which takes half of the CPU time of a short life.

    A shell starts programs in the background with SIGINT ignored, and so would all commands that tests interrupt.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["JDK_JAVA_OPTIONS"] = "-XX:TieredStopAtLevel=1"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Has the garbage collector leave alone what is made by the collection of tests, as that lives to the end.

    To look through it again and again would take a tenth of the CPU time of the fast tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Orders the tests: first those that start whole bridges and those that wait for servers, in turn, then the others.

    A bridge keeps all cores busy while it starts, and tests of connectors wait most of the time: side by side they take
    about as long as one of them. Files that share a bridge stay together; they begin, since they take longest.
    """
    units: dict[Path, list[pytest.Item]] = {}
    for item in items:
        units.setdefault(_unit(item.path), []).append(item)
    light = TESTS / "integration" / "processes"
    shared = [unit for unit in ONE_WORKER if unit in units]
    busy = [
        unit for unit in units if _is_below(unit, TESTS / "chaos", TESTS / "integration") and light not in unit.parents
    ]
    waiting = [unit for unit in busy if _is_below(unit, TESTS / "integration" / "connectors")]
    bridges = shared + [unit for unit in busy if unit not in (*shared, *waiting)]
    pairs = itertools.zip_longest(bridges, waiting)
    order = [unit for pair in pairs for unit in pair if unit is not None]
    order += [unit for unit in units if unit not in order]
    items[:] = [item for unit in order for item in units[unit]]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the files whose tests took longest, set-up and tear-down included."""
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0]] += report.duration
    if sum(seconds.values()) > _LONG_SECONDS:
        terminalreporter.section("slowest files")
        for file, spent in seconds.most_common(_SLOWEST):
            terminalreporter.write_line(f"{spent:6.0f} s  {file}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Has all files of a folder in `ONE_WORKER` run on one worker, where `--dist loadfile` asks for whole files."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class FolderScheduling(LoadFileScheduling):
        """One worker for each file, or for each folder of `ONE_WORKER`."""

        def _split_scope(self, nodeid: str) -> str:
            return str(_unit(config.rootpath / super()._split_scope(nodeid)))

    return FolderScheduling(config, log)


@functools.cache
def _unit(path: Path) -> Path:
    return next((folder for folder in ONE_WORKER if path.is_relative_to(folder)), path)


def _is_below(path: Path, *folders: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Removes the log handler of a command that a test ran in this process; its stderr was the test's own."""
    root = logging.getLogger()
    level, before = root.level, set(root.handlers)
    yield
    for handler in set(root.handlers) - before:
        if type(handler) is logging.StreamHandler:
            root.removeHandler(handler)
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def issuer() -> Iterator[TokenIssuer]:
    """An OpenID Connect server that is ready."""
    from tests.token_issuer import TokenIssuer

    with TokenIssuer() as server:
        yield server


class TopicFactory(Protocol):
    """Makes a topic nobody else uses and returns its name."""

    def __call__(self, name: str = "topic", partitions: int = 1, config: Mapping[str, str] | None = None) -> str: ...


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A Kafka that is ready; `.bootstrap` is its address."""
    yield from _running(EmbeddedKafka(tmp_path_factory.mktemp("data"), *free_ports(1), JARS))


@pytest.fixture(scope="session")
def artemis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedArtemis]:
    """An Artemis that is ready; `.stomp_url`, `.amqp_url`, `.core_url` are its addresses."""
    yield from _running(EmbeddedArtemis(tmp_path_factory.mktemp("data"), *free_ports(3), JARS))


@pytest.fixture(scope="session")
def nats_server() -> Path:
    """The program, for servers of a test's own; where there is none, the test is skipped with what set-up said."""
    try:
        return find_nats_server()
    except SetupError as error:
        pytest.skip(NATS.missing.read_text() if NATS.missing.exists() else str(error))


@pytest.fixture(scope="session")
def nats(tmp_path_factory: pytest.TempPathFactory, nats_server: Path) -> Iterator[EmbeddedNats]:
    """A NATS server with JetStream that is ready; `.url` is its address."""
    yield from _running(EmbeddedNats(tmp_path_factory.mktemp("data"), *free_ports(1), nats_server))


@pytest.fixture(scope="session")
def topic(kafka: EmbeddedKafka) -> TopicFactory:
    """`topic("orders", partitions=2, config={"max.message.bytes": "1000"})` creates one with a fresh name."""
    # `log_level` 0: at the end Kafka goes before its client, which would report it.
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    run, count = uuid.uuid4().hex[:6], itertools.count(1)

    def create(name: str = "topic", partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        fresh = f"{name}-{run}-{next(count)}"
        new = NewTopic(fresh, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
        admin.create_topics([new])[fresh].result(timeout=30)
        # The controller has made it; the broker that clients ask hears of it a moment later.
        until(lambda: fresh in admin.list_topics(timeout=10).topics)
        return fresh

    return create


def _running(server: Server) -> Iterator[Server]:
    try:
        server.start()
    except SetupError:
        if server.log.exists():
            print(server.log.read_text(errors="replace")[-4000:])
        raise
    yield server
    server.stop()
