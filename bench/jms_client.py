"""Sources and sinks of type `jms`, without Kafka, beside a bare loop in Java of the same client: `-m bench.jms_client`.

The contestants send and receive the same messages in turns: with Artemis' own client, and with that of ActiveMQ Classic
(OpenWire), each at its own broker. The sink and the bare sender use transactions of the same size, the bare receiver
those at which it is fastest. What is compared is the child process with its
pipe and the conversion of messages; `bench connectors` measures whole sources and sinks. The exit status is 1 if a
target is missed.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.connectors.case import message_of
from bench.report import Check
from engine.connectors.base import Outgoing
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.system import connector
from engine.embedded import EmbeddedArtemis, free_ports
from engine.embedded.artemis import artemis_home
from engine.jars import jars
from engine.java import find_java
from routes import config as configuration
from tests.brokers.broker import PASSWORD, USER, Protocol
from tests.brokers.classic import Classic5
from tests.brokers.packages import jars as package_jars

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from routes.model import Config

TARGET_RATIO = 0.9
_CORE, _OPENWIRE = "core", "openwire"
_FACTORIES = {
    _CORE: "org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory",
    _OPENWIRE: "org.apache.activemq.ActiveMQConnectionFactory",
}
_PROGRAM = Path(__file__).with_name("JmsBare.java")
_WITH_IDS = "bare send with ids"
"""The bare loop that has the broker drop duplicates, as the sink does."""
_SENT = 500
"""Messages in a transaction of a sink."""
_TAKEN = {_CORE: 1000, _OPENWIRE: 200}
"""Messages in a transaction of the bare receiver, by client: the size at which it is fastest.

ActiveMQ Classic hands out less and less with larger transactions: at 1,000 it gave the bare receiver 114 to 2,000
messages a second, at 100 to 200 always more than 3,000.
"""


@dataclass(frozen=True, slots=True)
class _Client:
    """JMS client beside its running broker."""

    name: str
    url: str
    """URL for the bare loop, with the login if there is one."""
    class_path: str
    """Class path of the bare loop."""
    settings: Mapping[str, str]
    """Keys of a source and sink of this client, with their dot."""
    broker: int
    """Process id of the broker."""
    duplicate_id: str = ""
    """Property by which the broker drops what a sink sends again; empty: it drops nothing."""


def main() -> None:
    """Prints messages a second for each pass, the medians, and the targets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--client", choices=_FACTORIES, action="append", help="only this one")
    given = parser.parse_args()
    missed = False
    for name in given.client or _FACTORIES:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            start = _classic if name == _OPENWIRE else _artemis
            client = start(Path(folder), stack)
            checks = _measure(_config(Path(folder), client), client, given.messages, given.rounds)
            for check in checks:
                told = "met" if check.passed else "missed"
                print(f"{check.name}: {check.value:.2f}, at least {check.target}: {told}", flush=True)
                missed = missed or not check.passed
    sys.exit(missed)


def _artemis(folder: Path, stack: ExitStack) -> _Client:
    core, stomp, amqp = free_ports(3)
    artemis = EmbeddedArtemis(folder / "artemis", core, stomp, amqp, jars().absolute())
    artemis.start()
    stack.callback(artemis.stop)
    classes = f"{artemis_home(jars().absolute())}/lib/*"
    factory = {".connection-factory": _FACTORIES[_CORE], ".connection-factory.brokerURL": artemis.core_url}
    assert artemis.pid is not None
    settings = {".class-path": f"{classes}.jar", **factory}
    return _Client(_CORE, artemis.core_url, classes, settings, artemis.pid, "_AMQ_DUPL_ID")


def _classic(folder: Path, stack: ExitStack) -> _Client:
    classic = stack.enter_context(Classic5(folder))
    url = f"tcp://127.0.0.1:{classic.port(Protocol.JMS)}?jms.userName={USER}&jms.password={PASSWORD}"
    classes = package_jars(f"org.apache.activemq:activemq-client:{classic.version}")[0].parent
    settings = {key: text for key, text in classic.settings(Protocol.JMS).items() if key not in (".type", ".packages")}
    assert classic.pid is not None
    return _Client(_OPENWIRE, url, f"{classes}/*", {".class-path": f"{classes}/*.jar", **settings}, classic.pid)


def _config(folder: Path, client: _Client) -> Config:
    lines = {"bridge.id": "bench", "kafka.bootstrap.servers": "127.0.0.1:1", "source.in.destinations": "queue:bench"}
    lines |= {"routes.r.in.include": "TRUE", "routes.r.out.topic": "bench"}
    own = {".type": "jms", **client.settings}
    lines |= {f"{section}{key}": text for section in ("source.in", "sink.out") for key, text in own.items()}
    file = folder / "bench.properties"
    file.write_text("".join(f"{key}={text}\n" for key, text in lines.items()), encoding="utf-8")
    return configuration.load(file)


def _measure(config: Config, client: _Client, messages: int, rounds: int) -> list[Check]:
    """Runs all contestants in turns; returns the targets of source and sink."""
    found: dict[str, list[float]] = {}
    cpu: dict[str, list[tuple[float, ...]]] = {}
    outgoing = [Outgoing(n, message_of(n), "queue/bench", f"bench/{n}") for n in range(messages)]
    for number in range(rounds):
        again = [Outgoing(each.number, each.message, each.address, f"{number}/{each.id}") for each in outgoing]
        passes = [
            ("sink", partial(_sink, config, again)),
            ("bare receive", partial(_bare, client, "receive", messages, _TAKEN[client.name])),
            ("bare send", partial(_bare, client, "send", messages, _SENT)),
            ("source", partial(_source, config, messages)),
        ]
        if client.duplicate_id:
            passes += [
                (_WITH_IDS, partial(_bare, client, "send", messages, _SENT, client.duplicate_id)),
                ("bare receive", partial(_bare, client, "receive", messages, _TAKEN[client.name])),
            ]
        for name, run in passes:
            python, java, broker = time.process_time(), _children_seconds(), _seconds_of(client.broker)
            found.setdefault(name, []).append(messages / run())
            used = (
                time.process_time() - python,
                _children_seconds() - java,
                _seconds_of(client.broker) - broker,
            )
            cpu.setdefault(name, []).append(tuple(seconds / messages * 1e6 for seconds in used))
            print(f"{client.name}, {name}: {found[name][-1]:,.0f}/s", flush=True)
    for name, rates in found.items():
        python, java, broker = (statistics.median(each) for each in zip(*cpu[name], strict=True))
        told = "" if name.startswith("bare") else f"Python {python:.0f}, "
        shares = f"{told}client {java:.0f}, broker {broker:.0f} CPU-s a million"
        print(f"{client.name}, median of {name}: {statistics.median(rates):,.0f}/s, {shares}")
    checks = []
    for name, bare in (("source", "bare receive"), ("sink", "bare send"), ("sink", _WITH_IDS)):
        if bare not in found:
            continue
        others = found[bare][:: len(found[bare]) // rounds]
        ratio = statistics.median(own / other for own, other in zip(found[name], others, strict=True))
        if bare == _WITH_IDS:
            print(f"{client.name}, sink: {ratio:.2f} of the rate of {bare}")
            continue
        checks.append(Check(f"{client.name}, {name}: rate to the bare loop's", ratio, TARGET_RATIO, at_least=True))
    return checks


def _children_seconds() -> float:
    """CPU time of the processes that have ended: the clients, but not the broker."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _seconds_of(process: int) -> float:
    """CPU time of a running process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _bare(client: _Client, what: str, messages: int, batch: int, *identity: str) -> float:
    command = [str(find_java()), "-cp", client.class_path, str(_PROGRAM), _FACTORIES[client.name], client.url]
    command += [what, "bench", str(messages), str(batch), *identity]
    environment = {key: text for key, text in os.environ.items() if key != "JDK_JAVA_OPTIONS"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout) / 1000


def _sink(config: Config, outgoing: Sequence[Outgoing]) -> float:
    sink: Any = connector(config.sinks[0].type).make_sink(SystemEndpoint.of(config, config.sinks[0]), 1)
    sink.connect()
    try:
        begin, at, confirmed = time.perf_counter(), 0, 0
        while confirmed < len(outgoing):
            if at < len(outgoing) and at - confirmed < sink.most_under_way:
                sink.send(outgoing[at : at + _SENT])
                at += _SENT
            else:
                confirmed += len(sink.outcomes(1))
        return time.perf_counter() - begin
    finally:
        sink.close()


def _source(config: Config, messages: int) -> float:
    source: Any = connector(config.sources[0].type).make_source(SystemEndpoint.of(config, config.sources[0]), 1)
    source.connect()
    try:
        begin, received = time.perf_counter(), 0
        tokens: list[object] = []
        while received < messages:
            delivery = source.receive(0.01)
            if delivery is not None:
                received += 1
                tokens.append(delivery.token)
            if tokens and (delivery is None or len(tokens) >= _SENT):
                source.acknowledge(tokens)
                tokens.clear()
        source.acknowledge(tokens)
        return time.perf_counter() - begin
    finally:
        source.close()


if __name__ == "__main__":
    main()
