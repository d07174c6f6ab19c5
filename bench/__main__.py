"""`python -m bench`: runs the measurements that were asked for, one after the other, on a Kafka of their own.

Those of codecs and routes need neither Kafka nor the Java programs; those of sources and sinks need only Kafka, beside
what they start themselves.
"""

from __future__ import annotations

import shlex
import signal
import sys
import uuid
from typing import TYPE_CHECKING, NoReturn

from confluent_kafka import KafkaException
from rich.console import Console

from bench import (
    amqp_listener,
    codecs,
    connectors,
    content,
    executors,
    find,
    find_load,
    growth,
    intervals,
    jms_source,
    latency,
    memory,
    programs,
    recovery,
    requests,
    routes,
    scale,
    start,
    stream_latency,
    stream_state,
    streams,
    throughput,
)
from bench.broker import broker
from bench.history import compared
from bench.nexmark import measurement as nexmark
from bench.options import parse
from bench.python_engines import measurement as python_engines
from bench.report import machine, save, targets
from routes.errors import BridgeError

if TYPE_CHECKING:
    from bench.options import Options
    from bench.report import Report

_WIDTH = 110
_MEASURE = {
    "throughput": throughput.measure,
    "content": content.measure,
    "latency": latency.measure,
    "memory": memory.measure,
    "start": start.measure,
    "streams": streams.measure,
    "stream-latency": stream_latency.measure,
    "stream-state": stream_state.measure,
    "recovery": recovery.measure,
    "jms-source": jms_source.measure,
    "amqp-listener": amqp_listener.measure,
    "connectors": connectors.measure,
    "scale": scale.measure,
    "intervals": intervals.measure,
    "executors": executors.measure,
    "find": find.measure,
    "find-load": find_load.measure,
    "nexmark": nexmark.measure,
    "python-engines": python_engines.measure,
}
_WITHOUT_PROGRAMS = {"jms-source", "amqp-listener", "connectors", "find", "python-engines"}
_ALONE = {
    "codecs": codecs.measure,
    "requests": requests.measure,
    "routes": routes.measure,
    "growth": growth.measure,
}


def main(arguments: list[str]) -> int:
    """Runs it; 1 if a target is missed or a contestant does not do its work."""
    options = parse(arguments)
    # SIGTERM as well has to end what was started.
    signal.signal(signal.SIGTERM, _stop)
    options.folder.mkdir(parents=True, exist_ok=True)
    before = machine()
    try:
        if (_MEASURE.keys() - _WITHOUT_PROGRAMS).intersection(options.measurements):
            programs.build()
        if "nexmark" in options.measurements and any(program.is_flink for program in options.programs):
            programs.build("flink")
        reports = [_measured(name, options) for name in options.measurements]
    except (BridgeError, KafkaException, RuntimeError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    checks = [check for report in reports for check in report.checks]
    console = Console(width=_WIDTH)
    for report in reports:
        console.print(*report.tables, sep="\n")
    console.print(targets(checks))
    if earlier := compared(options.folder, before, checks):
        console.print(earlier)
    console.print(f"on {before['cpus']} CPUs ({before['cpu']}), load {before['load_average'][0]:.1f} before it began")
    console.print(f"everything measured: {save(options.folder, reports, before, shlex.join(arguments))}")
    return 0 if all(check.passed for check in checks) else 1


def _measured(name: str, options: Options) -> Report:
    print(f"== {name}", flush=True)
    if name in _ALONE:
        return _ALONE[name](options)
    with broker(options.folder / f"data-{uuid.uuid4().hex[:8]}", programs.JARS) as kafka:
        return _MEASURE[name](kafka, options)


def _stop(signum: int, frame: object) -> NoReturn:
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
