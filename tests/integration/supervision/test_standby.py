"""Two bridges of one id on one Kafka: the second waits, and goes on where the first one was, whatever ends that."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from engine.embedded import EmbeddedArtemis, EmbeddedKafka, free_ports
from engine.message import POSITION, BodyType, Message
from routes.properties import Property
from tests.conftest import JARS
from tests.integration.bridge_process import Bridge, configuration, descendants, wait
from tests.integration.connectors.proxy import Proxy
from tests.processes import gone
from tests.topic_records import committed_records, ordered_producer
from tests.waiting import patience

TAKEOVER_SECONDS = 60
"""At most; without load on the machine it is half of that at most."""


class KafkaBehindProxy(EmbeddedKafka):
    """A Kafka with a second listener, whose clients come back through a proxy only."""

    def __init__(self, folder: Path) -> None:
        port, self.behind = free_ports(2)
        super().__init__(folder, port, JARS)
        self.proxy = Proxy(self.behind)

    def _properties(self, controller_port: int) -> dict[str, str]:
        plain = super()._properties(controller_port)
        return plain | {
            "listeners": f"{plain['listeners']},PROXIED://127.0.0.1:{self.behind}",
            "advertised.listeners": f"{plain['advertised.listeners']},PROXIED://127.0.0.1:{self.proxy.port}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
        }

    @property
    def proxied(self) -> str:
        return f"127.0.0.1:{self.proxy.port}"


class Site:
    """A journal with a load on it, and bridges of one id, each with a folder of its own."""

    numbers = count()

    def __init__(self, folder: Path, kafka: EmbeddedKafka, artemis: EmbeddedArtemis) -> None:
        self.folder = folder
        self.kafka = kafka
        self.artemis = artemis
        self.name = f"standby-{next(self.numbers)}"
        self.bridges: list[Bridge] = []
        self.sent = 0

    def bridge(self, folder: str, bootstrap: str = "", **settings: str) -> Bridge:
        """One that is not started yet."""
        (self.folder / folder).mkdir(exist_ok=True)
        lines = {
            "bridge.id": self.name,
            "embedded": "off",
            "kafka.bootstrap.servers": bootstrap or self.kafka.bootstrap,
            "source.jms.url": self.artemis.stomp_url,
            "source.jms.destinations": f"queue:{self.name}",
            "journal.topic": f"{self.name}.journal",
            "routes.orders.in.include": "region = 'emea'",
            "routes.orders.out.topic": f"{self.name}.routed",
            "routing.dead-letter-topic": f"{self.name}.dead",
            "routing.create-topics": "true",
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "embedded.stomp.port": self.artemis.stomp_url.rpartition(":")[2],
            **settings,
        }
        text = "".join(f"{name}={value}\n" for name, value in lines.items())
        bridge = Bridge(configuration(self.folder / folder, text))
        bridge.bootstrap = self.kafka.bootstrap
        self.bridges.append(bridge)
        return bridge

    @contextmanager
    def load(self) -> Iterator[None]:
        """Some hundred messages a second into the journal, while in here; all of them there in the end."""
        stop = Event()
        producer = ordered_producer(self.kafka.bootstrap, {"linger.ms": 5})

        def run() -> None:
            while not stop.wait(0.02):
                for _ in range(10):
                    message = Message(
                        str(self.sent).encode(),
                        BodyType.TEXT,
                        {"JMSMessageID": f"ID:{self.sent}"},
                        {"region": Property("emea"), "number": Property(str(self.sent))},
                    )
                    record = message.to_record()
                    headers: Any = list(record.headers)
                    producer.produce(f"{self.name}.journal", record.value, record.key, headers=headers)
                    self.sent += 1
                producer.poll(0)

        thread = Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            assert producer.flush(60) == 0

    def routed(self) -> tuple[Counter[str], Counter[str]]:
        """How often each number and each journal position is in the output."""
        numbers: Counter[str] = Counter()
        positions: Counter[str] = Counter()
        for message in committed_records(self.kafka.bootstrap, f"{self.name}.routed"):
            headers: Any = dict(message.headers() or ())
            numbers[headers["jms.number"].decode()] += 1
            positions[headers[POSITION].decode()] += 1
        return numbers, positions

    def check(self, doubles_at_most: int = 0) -> None:
        """Each message of the load has been routed, and once."""
        wait(lambda: len(self.routed()[0]) >= self.sent, lambda: [bridge.output for bridge in self.bridges])
        time.sleep(1)
        numbers, positions = self.routed()
        assert set(numbers) >= {str(number) for number in range(self.sent)}
        doubles = [position for position, times in positions.items() if times > 1]
        print(f"\n{self.sent} messages routed, {len(doubles)} twice")
        assert len(doubles) <= doubles_at_most, doubles
        assert numbers.total() - len(numbers) == positions.total() - len(positions)

    def seconds_until_more_is_routed(self, since: float) -> float:
        """Until something arrives that was sent after this call."""
        mark = str(self.sent + 1)
        wait(lambda: mark in self.routed()[0], lambda: [bridge.output for bridge in self.bridges])
        return time.monotonic() - since

    def end(self) -> None:
        for bridge in self.bridges:
            bridge.end()


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBehindProxy]:
    kafka = KafkaBehindProxy(tmp_path_factory.mktemp("proxied"))
    kafka.start()
    yield kafka
    kafka.stop()
    kafka.proxy.close()


@pytest.fixture
def site(tmp_path: Path, kafka: EmbeddedKafka, artemis: EmbeddedArtemis) -> Iterator[Site]:
    made = Site(tmp_path, kafka, artemis)
    yield made
    made.end()


@pytest.fixture
def site_behind_proxy(tmp_path: Path, proxied: KafkaBehindProxy, artemis: EmbeddedArtemis) -> Iterator[Site]:
    made = Site(tmp_path, proxied, artemis)
    yield made
    made.end()


def wait_standing_by(bridge: Bridge) -> None:
    """Until another leads, and all of its parts are prepared."""

    def waits() -> bool:
        assert bridge.running, bridge.output
        return "another bridge leads" in bridge.output and all(
            told["detail"].endswith("to lead") for told in bridge.ready()["components"].values()
        )

    wait(waits, lambda: (bridge.output, bridge.get("/ready")))


def kill_all(bridge: Bridge) -> set[int]:
    """SIGKILL for the supervisor and everything it has started, which are returned."""
    assert bridge.process is not None
    pids = {bridge.process.pid, *descendants(bridge.process.pid)}
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    bridge.process.wait()
    return pids


@pytest.mark.kills
def test_bridges_that_name_one_uri_go_on_by_its_checkpoint(site: Site) -> None:
    place = {"router.checkpoint": f"file://{site.folder}/checkpoint", "router.interval": "5s"}
    bridges = [site.bridge(name, **place) for name in ("first", "second", "third")]
    bridges[0].start()
    bridges[0].wait_ready()
    with site.load():
        for leader, standby in pairwise(bridges):
            standby.start()
            wait_standing_by(standby)
            site.seconds_until_more_is_routed(0)
            killed = kill_all(leader)
            wait(lambda killed=killed: all(map(gone, killed)))
            # Its machine is gone for good.
            shutil.rmtree(leader.settings["embedded.data"])
            site.seconds_until_more_is_routed(time.monotonic())
    site.check()
    assert all("continues from the position noted in Kafka" not in bridge.output for bridge in bridges)


@pytest.mark.kills
def test_the_second_waits_and_takes_over_when_the_first_is_killed(site: Site) -> None:
    first, second = site.bridge("first"), site.bridge("second")
    first.start()
    first.wait_ready()
    second.start()
    with site.load():
        wait_standing_by(second)
        assert "  - standby: another bridge leads (" in second.output
        assert second.output.count("standby:") == 1
        assert second.get("/health")[0] == 200
        assert second.get("/ready")[0] == 503
        assert second.get("/ready?standby=ok")[0] == 200
        assert (first.metric("jmsbridge_leader"), second.metric("jmsbridge_leader")) == (1, 0)
        assert first.ready()["leader"] is True
        assert second.ready()["leader"] is False
        site.seconds_until_more_is_routed(0)
        killed = kill_all(first)
        seconds = site.seconds_until_more_is_routed(time.monotonic())
        print(f"\nkilled: routed again after {seconds:.1f} s")
        assert seconds < TAKEOVER_SECONDS
        assert all(gone(pid) for pid in killed)
        second.wait_ready()
        second.send(range(10**9, 10**9 + 5), site.name)
    site.check()
    wait(lambda: {str(10**9 + number) for number in range(5)} <= set(site.routed()[0]), lambda: second.output)

    first.start()
    wait_standing_by(first)
    with site.load():
        site.seconds_until_more_is_routed(0)
        since = time.monotonic()
        assert second.interrupt() == 0
        stopped = time.monotonic()
        site.seconds_until_more_is_routed(since)
        seconds = time.monotonic() - stopped
        print(f"\nstopped: routed again {seconds:.1f} s after the end")
        assert seconds < TAKEOVER_SECONDS / 2
    site.check()
    assert "continues from the position noted in Kafka" in first.output


@pytest.mark.kills
def test_one_that_is_cut_off_from_kafka_stops_and_the_other_takes_over(
    site_behind_proxy: Site, proxied: KafkaBehindProxy
) -> None:
    site = site_behind_proxy
    first, second = site.bridge("first", proxied.proxied), site.bridge("second")
    first.start()
    first.wait_ready()
    assert first.process is not None
    working = descendants(first.process.pid)
    second.start()
    wait_standing_by(second)
    with site.load():
        site.seconds_until_more_is_routed(0)
        proxied.proxy.close()
        since = time.monotonic()
        wait(lambda: all(gone(pid) for pid in working), lambda: first.output)
        ended = time.monotonic() - since
        seconds = site.seconds_until_more_is_routed(since)
        print(f"\ncut off: ended after {ended:.1f} s, routed again after {seconds:.1f} s")
        assert ended < 10
        assert seconds < TAKEOVER_SECONDS
    site.check()
    assert first.running
    assert first.get("/health")[0] == 200
    assert first.metric("jmsbridge_leader") == 0
    assert first.metric("jmsbridge_component_restarts_total") == 0


@pytest.mark.kills
def test_one_that_stood_still_does_not_go_on_when_another_leads(site: Site) -> None:
    first, second = site.bridge("first"), site.bridge("second")
    first.start()
    first.wait_ready()
    assert first.process is not None
    working = descendants(first.process.pid)
    second.start()
    wait_standing_by(second)
    with site.load():
        site.seconds_until_more_is_routed(0)
        for pid in (first.process.pid, *working):
            os.kill(pid, signal.SIGSTOP)
        since = time.monotonic()
        site.seconds_until_more_is_routed(since)
        time.sleep(max(30 - (time.monotonic() - since), 0))
        for pid in (first.process.pid, *working):
            os.kill(pid, signal.SIGCONT)
        since = time.monotonic()
        wait(lambda: all(gone(pid) for pid in working), lambda: first.output)
        print(f"\nwent on: ended after {time.monotonic() - since:.3f} s")
        time.sleep(5)
    # What its producers had in their buffers when it was stopped, docs/adr/0013-standby.md.
    site.check(doubles_at_most=50)
    assert "another bridge leads" in first.output


@pytest.mark.kills
def test_a_checkpoint_that_is_lost_is_refused_with_two_ways_out_which_both_work(site: Site) -> None:
    bridge = site.bridge("one")
    bridge.start("--only", "router")
    bridge.wait_ready()
    with site.load():
        site.seconds_until_more_is_routed(0)
        kill_all(bridge)
    checkpoint = site.folder / "one" / "var" / "checkpoint"
    checkpoint.rename(checkpoint.with_name("copy"))
    spark = site.folder / "one" / "var" / "log" / "spark.log"
    logged = spark.stat()

    bridge.start("--only", "router")
    assert bridge.process is not None
    assert bridge.process.wait(patience(120)) == 4
    ways = rf"Either restore {checkpoint} from a copy, or set router\.checkpoint to another folder: .* Kafka, which is "
    (line,) = re.findall(r"jms-bridge: (the router's checkpoint cannot be used: .*)", bridge.output)
    assert re.match(rf"the router's checkpoint cannot be used: there is none in {checkpoint} any more\. {ways}", line)

    assert not checkpoint.exists()
    shutil.copytree(checkpoint.with_name("copy"), checkpoint, dirs_exist_ok=True)
    next(checkpoint.glob("*/start.json")).write_text("{")
    bridge.start("--only", "router")
    assert bridge.process.wait(patience(120)) == 4
    line = re.findall(r"jms-bridge: (the router's checkpoint cannot be used: .*)", bridge.output)[-1]
    assert re.search(rf"start\.json is damaged: .*{ways}", line)
    # Spark was not started for either.
    assert spark.stat() == logged

    shutil.rmtree(checkpoint)
    shutil.copytree(checkpoint.with_name("copy"), checkpoint)
    bridge.start("--only", "router")
    bridge.wait_ready()
    with site.load():
        site.seconds_until_more_is_routed(0)
        kill_all(bridge)
    site.bridges.remove(bridge)

    shutil.rmtree(checkpoint)
    moved = site.bridge("one", **{"router.checkpoint": str(checkpoint.with_name("other"))})
    moved.start("--only", "router")
    moved.wait_ready()
    site.check()
