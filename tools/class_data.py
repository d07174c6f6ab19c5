"""Records the class-data archives with which Kafka, Artemis and Spark start in half the time.

`python -m tools.class_data FOLDER`: runs a bridge with brokers of its own on free ports, takes a few messages through
it, and has each of its JVMs write the classes that it has loaded into FOLDER. Set-up calls it once for each version of
the jars. Needs `jcmd`, which comes with a JDK.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import psutil

from engine.embedded import find_java, free_ports
from engine.jars import RECORD

__all__ = ["main"]

_MAIN_CLASSES = {
    "kafka.Kafka": "kafka",
    "org.apache.activemq.artemis.cli.Artemis": "artemis",
    "org.apache.spark.deploy.SparkSubmit": "spark",
}
"""Names of the archives, by what the JVM runs."""

_READY_SECONDS = 240.0
_STOP_SECONDS = 60.0
_CONFIGURATION = """
bridge.id=class-data
http.address=127.0.0.1:{http}
embedded.data={data}
router.checkpoint={data}/checkpoint
embedded.kafka.port={kafka}
embedded.artemis.port={core}
embedded.stomp.port={stomp}
embedded.amqp.port={amqp}
source.stomp.type=stomp
source.stomp.destinations=queue:orders
source.amqp.type=amqp
source.amqp.destinations=queue:payments
routes.orders.in.include=msg.address==orders && msg.header.region IS NOT NULL
routes.orders.out.topic=orders
routes.payments.in.include=msg.address = 'payments' AND (amount > 1000 OR region LIKE 'e%')
routes.payments.out.topic=payments
routes.payments.conv.key=msg.header.CorrelationId
routing.dead-letter-topic=class-data.dead-letter
routing.on-soft-failure=dead-letter
"""
_MESSAGES = (
    ["send", "queue:orders", "--property", "region=emea", "hello"],
    ["send", "amqp:queue/payments", "--typed-property", "amount:int=5000", "hello"],
    ["send", "amqp:queue/payments", "--property", "region=asia", "hello"],
    ["receive", "kafka:orders", "--count", "1"],
    ["receive", "kafka:class-data.dead-letter", "--count", "1"],
)
"""Commands that take messages through the bridge: one is routed, one is a dead letter, one no route takes."""


class _RecordingError(Exception):
    """Why there are no archives, in one line."""


def main() -> int:
    """The exit status: 0, or 1 after a line that says what failed."""
    try:
        _record(Path(sys.argv[1]).absolute())
    except _RecordingError as error:
        print(error)
        return 1
    return 0


def _record(folder: Path) -> None:
    jcmd = find_java().resolve().with_name("jcmd")
    if not jcmd.exists():
        message = f"no jcmd beside {jcmd.with_name('java')}, which is not a whole JDK"
        raise _RecordingError(message)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        ports = dict(zip(("http", "kafka", "core", "stomp", "amqp"), free_ports(5), strict=True))
        configuration, log = Path(temporary, "class-data.properties"), Path(temporary, "log")
        configuration.write_text(_CONFIGURATION.format(data=Path(temporary, "data"), **ports))
        with log.open("w") as output:
            bridge = subprocess.Popen(
                [sys.executable, "-m", "engine", "run", "--config", configuration],
                env={**os.environ, RECORD: "1"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                _await_ready(bridge, f"http://127.0.0.1:{ports['http']}/ready", log)
                for command in _MESSAGES:
                    _run([sys.executable, "-m", "engine", *command, "--config", configuration])
                _dump(jcmd, bridge.pid, folder)
            finally:
                bridge.send_signal(signal.SIGTERM)
                bridge.wait(_STOP_SECONDS)


def _await_ready(bridge: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline and bridge.poll() is None:
        try:
            with urlopen(url, timeout=5):  # noqa: S310 # the bridge's own address
                return
        except (URLError, OSError):
            time.sleep(0.5)
    said = log.read_text().strip().splitlines() or ["it said nothing"]
    message = f"the bridge was not ready after {_READY_SECONDS:.0f} s: {said[-1]}"
    raise _RecordingError(message)


def _dump(jcmd: Path, bridge: int, folder: Path) -> None:
    """Has each JVM below the process `bridge` write its archive."""
    own = {str(process.pid) for process in psutil.Process(bridge).children(recursive=True)}
    running = [line.split()[:2] for line in _run([jcmd, "-l"]).splitlines()]
    found = {_MAIN_CLASSES[main]: pid for pid, main, *_ in running if pid in own and main in _MAIN_CLASSES}
    if missing := sorted(set(_MAIN_CLASSES.values()) - found.keys()):
        message = f"no JVM of {', '.join(missing)} among those that jcmd lists"
        raise _RecordingError(message)
    for name, pid in found.items():
        archive = folder / f"{name}.jsa"
        archive.unlink(missing_ok=True)
        said = _run([jcmd, pid, "VM.cds", "dynamic_dump", archive])
        if not archive.exists():
            message = f"no archive of {name}: {' '.join(said.split())}"
            raise _RecordingError(message)
        print(f"archive of {name}: {archive.stat().st_size >> 20} MiB", flush=True)


def _run(command: list[str | Path]) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr + done.stdout).strip().splitlines() or ["it said nothing"]
        message = f"{' '.join(map(str, command))}: {said[-1]}"
        raise _RecordingError(message)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
