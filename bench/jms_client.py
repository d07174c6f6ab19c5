"""Sources and sinks of type `jms`, without Kafka, beside a bare loop in Java of the same client: `-m bench.jms_client`.

The contestants receive and send the same messages in transactions of the same size, in turns. What is compared is the
child process with its pipe and the conversion of messages; `bench connectors` measures whole sources and sinks.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.connectors.case import message_of
from engine.connectors.base import Outgoing
from engine.connectors.system import connector
from engine.embedded import EmbeddedArtemis, free_ports
from engine.embedded.artemis import artemis_home
from engine.embedded.java import find_java
from engine.jars import jars
from routes import config as configuration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from routes.model import Config

_FACTORY = "org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory"
_PROGRAM = Path(__file__).with_name("JmsBare.java")
_SENT, _TAKEN = 500, 1000
"""Messages in a transaction of a sink and of a source."""


def main() -> None:
    """Prints messages a second for each pass, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        core, stomp, amqp = free_ports(3)
        artemis = EmbeddedArtemis(Path(folder, "artemis"), core, stomp, amqp, jars().absolute())
        artemis.start()
        try:
            _measure(_config(Path(folder), artemis.core_url), artemis.core_url, given.messages, given.rounds)
        finally:
            artemis.stop()


def _config(folder: Path, url: str) -> Config:
    lines = {"bridge.id": "bench", "kafka.bootstrap.servers": "127.0.0.1:1", "source.in.destinations": "queue:bench"}
    lines |= {"routes.r.in.include": "TRUE", "routes.r.out.topic": "bench"}
    own = {".type": "jms", ".class-path": f"{artemis_home(jars().absolute())}/lib/*.jar"}
    own |= {".connection-factory": _FACTORY, ".connection-factory.brokerURL": url}
    lines |= {f"{section}{key}": text for section in ("source.in", "sink.out") for key, text in own.items()}
    file = folder / "bench.properties"
    file.write_text("".join(f"{key}={text}\n" for key, text in lines.items()), encoding="utf-8")
    return configuration.load(file)


def _measure(config: Config, url: str, messages: int, rounds: int) -> None:
    found: dict[str, list[float]] = {}
    cpu: dict[str, list[tuple[float, ...]]] = {}
    outgoing = [Outgoing(n, message_of(n), "queue/bench", f"bench/{n}") for n in range(messages)]
    for number in range(rounds):
        again = [Outgoing(each.number, each.message, each.address, f"{number}/{each.id}") for each in outgoing]
        for name, run in (
            ("sink", partial(_sink, config, again)),
            ("bare receive", partial(_bare, url, "receive", messages, _TAKEN)),
            ("bare send", partial(_bare, url, "send", messages, _SENT)),
            ("source", partial(_source, config, messages)),
        ):
            python, java = time.process_time(), _children_seconds()
            found.setdefault(name, []).append(messages / run())
            used = (time.process_time() - python, _children_seconds() - java)
            cpu.setdefault(name, []).append(tuple(seconds / messages * 1e6 for seconds in used))
            print(f"{name}: {found[name][-1]:,.0f}/s", flush=True)
    for name, rates in found.items():
        python, java = (statistics.median(each) for each in zip(*cpu[name], strict=True))
        told = "" if name.startswith("bare") else f"Python {python:.0f} and "
        print(f"median of {name}: {statistics.median(rates):,.0f}/s, {told}Java {java:.0f} CPU-s a million")


def _children_seconds() -> float:
    """CPU time of the processes that have ended: the clients, but not the broker."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _bare(url: str, what: str, messages: int, batch: int) -> float:
    classes = f"{artemis_home(jars().absolute())}/lib/*"
    command = [str(find_java()), "-cp", classes, str(_PROGRAM), _FACTORY, url, what, "bench", str(messages), str(batch)]
    environment = {key: text for key, text in os.environ.items() if key != "JDK_JAVA_OPTIONS"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout) / 1000


def _sink(config: Config, outgoing: Sequence[Outgoing]) -> float:
    sink: Any = connector(config.sinks[0].type).make_sink(config, config.sinks[0], 1)
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
    source: Any = connector(config.sources[0].type).make_source(config, config.sources[0], 1)
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
