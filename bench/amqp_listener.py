"""Rate at which the AMQP listener accepts the messages of one JMS client with asynchronous sends.

The client is Qpid JMS (`peer/jms/JmsSender.java`): each send has a completion listener, 5,000 at most are open. A
message is accepted when Kafka has it. Client, listener and Kafka share the machine, as in the other measurements.
"""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING

from bench import programs
from bench.broker import PARTITIONS
from bench.processes import running
from bench.report import Check, Report, table
from bench.workload import properties
from engine.embedded import free_ports
from engine.embedded.ports import accepts
from engine.java import find_java

if TYPE_CHECKING:
    from bench.broker import Broker
    from bench.options import Options

__all__ = ["measure"]

TARGET_RATE = 10_000
_BODY_BYTES = 400
_PATIENCE_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class Pass:
    """Pass of one client over its messages."""

    rate: float
    """Messages accepted in a second after the warm-up."""
    cpu_per_million: float
    """CPU seconds of the listener for a million messages, the warm-up and its start among them."""


def measure(kafka: Broker, options: Options) -> Report:
    """Runs it some times, each with a client and a listener of its own."""
    passes = [_pass(kafka, options) for _ in range(options.rounds)]
    rates = sorted(each.rate for each in passes)
    cpu = median(each.cpu_per_million for each in passes)
    row = ["one Qpid JMS client", f"{rates[0]:,.0f} / {median(rates):,.0f} / {rates[-1]:,.0f}", f"{cpu:.1f}"]
    title = f"AMQP listener into Kafka, persistent text messages of {_BODY_BYTES} bytes, asynchronous sends"
    made = table(title, ["", "messages/s min / median / max", "CPU-s per million"], [row])
    check = Check("amqp listener: messages/s of one client", median(rates), TARGET_RATE, at_least=True)
    return Report("amqp-listener", [made], [check], [asdict(each) for each in passes])


def _pass(kafka: Broker, options: Options) -> Pass:
    name = f"bench-{uuid.uuid4().hex[:8]}"
    kafka.create(name)
    folder = options.folder / name
    folder.mkdir()
    port, http = free_ports(2)
    own = {
        "journal.partitions": str(PARTITIONS),
        "embedded.data": str(folder),
        "router.checkpoint": str(folder / "checkpoint"),
        "http.address": f"127.0.0.1:{http}",
        "source.apps.type": "amqp",
        "source.apps.listen": f"amqp://127.0.0.1:{port}",
        "source.apps.destinations": f"queue:{name}",
        **options.settings,
    }
    file = folder / "bridge.properties"
    file.write_text(properties(kafka.bootstrap, name, [f"{name}.out"] * 5, own))
    command = [sys.executable, "-m", "engine", "run", "--only", "source:apps", "--config", str(file)]
    with running(command, options.folder / f"{name}.log", programs.ROOT) as process:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not accepts(port):
            if time.monotonic() > deadline:
                raise RuntimeError(f"the listener does not listen, see {name}.log")
            time.sleep(0.1)
        begun = time.time()
        seconds = _send(f"amqp://127.0.0.1:{port}", name, options)
        cpu_seconds = process.cpu_seconds(begun, time.time())
    kafka.delete(name)
    messages = options.source_warm_up + options.source_messages
    found = Pass(options.source_messages / seconds, cpu_seconds / messages * 1e6)
    print(f"{found.rate:,.0f} messages/s, {found.cpu_per_million:.1f} CPU-s per million", flush=True)
    return found


def _send(url: str, queue: str, options: Options) -> float:
    """Seconds from the first send after the warm-up to the last acceptance."""
    jars = ":".join(map(str, programs.JARS.glob("artemis/*/lib/*.jar")))
    program = programs.ROOT / "bench" / "peer" / "jms" / "JmsSender.java"
    counts = [str(options.source_warm_up), str(options.source_messages), str(_BODY_BYTES)]
    command = [str(find_java()), "-Xmx1g", "-cp", jars, str(program), url, queue, *counts]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE_SECONDS)
    if done.returncode != 0:
        msg = f"JmsSender failed: {done.stderr.strip()[-2000:]}"
        raise RuntimeError(msg)
    return float(done.stdout.split()[-1])
