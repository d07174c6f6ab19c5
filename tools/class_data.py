"""Makes the class-data archives with which Kafka, Artemis and Spark start in half the time.

`python -m tools.class_data FOLDER`: runs a bridge with brokers of its own on free ports and takes some messages through
it, while each of its JVMs lists the classes that it loads. Then Java makes an archive of each list in FOLDER. Copies
of some jars are made before (`tools.jar_copies`). Called once for each version of the jars: by set-up for development,
else after the first run. A bridge may run and start meanwhile: each archive and copy gets its name when it is whole.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

from engine.embedded import free_ports
from engine.embedded.artemis import artemis_home
from engine.jars import RECORD, copies, jars
from engine.java import class_options, find_java
from engine.spark.jvm import class_options as spark_class_options
from engine.spark.jvm import spark_jars, used_jars
from tools.jar_copies import convert_lambdas, copy_jars
from tools.run import ends_with_us

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["main"]

_READY_SECONDS = 600.0
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
    ["find", "--where", "msg.body.amount > 1000 OR region = 'emea'"],
)
"""Commands that take messages through the bridge: one is routed, one is a dead letter, one no route takes."""

_ALSO = {"spark": ("find",)}
"""JVMs that share the archive of another one, which has their classes too."""

_ID = re.compile(r" id: [0-9]+$")
"""Number of a class in its list, which classes of a class loader of their own refer to."""

_SPECIES = re.compile(r"@lambda-form-invoker \[SPECIES_RESOLVE\]")
"""Lines of a class list about classes that a JVM makes in its memory. From an archive they end a JVM of Java 17 that
has a Flight Recorder or an agent: these look for the class's file, which there is not."""


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
    folder.mkdir(parents=True, exist_ok=True)
    # What is no longer the copy of a jar would be found by no JVM.
    kept = copy_jars(spark_jars(), copies())
    kept += convert_lambdas([*(jars() / "spark").glob("*.jar"), *used_jars()], copies(), _run)
    for other in set(copies().iterdir()) - set(kept):
        other.unlink()
    with tempfile.TemporaryDirectory() as temporary:
        _list_classes(Path(temporary))
        _dump(Path(temporary), folder)


def _list_classes(temporary: Path) -> None:
    """Runs a bridge whose JVMs write the lists `NAME.lst`, which are whole when it has ended."""
    ports = dict(zip(("http", "kafka", "core", "stomp", "amqp"), free_ports(5), strict=True))
    configuration, log = temporary / "class-data.properties", temporary / "log"
    configuration.write_text(_CONFIGURATION.format(data=temporary / "data", **ports))
    recording = {**os.environ, RECORD: str(temporary)}
    with log.open("w") as output:
        bridge = subprocess.Popen(
            [*ends_with_us(), sys.executable, "-m", "engine", "run", "--config", configuration],
            env=recording,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            _await_ready(bridge, f"http://127.0.0.1:{ports['http']}/ready", log)
            for command in _MESSAGES:
                _run([sys.executable, "-m", "engine", *command, "--config", configuration], recording)
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


def _dump(lists: Path, folder: Path) -> None:
    """Makes the archives, all at once; the options say where the JVMs find their classes, as when they run."""
    java, own = find_java(), jars()
    options = {
        "kafka": class_options(own.absolute() / "kafka"),
        "artemis": class_options(artemis_home(own) / "lib"),
        "spark": spark_class_options(own / "spark"),
    }
    with ThreadPoolExecutor() as pool:
        for name, size in pool.map(lambda each: (each, _archive(java, each, options[each], lists, folder)), options):
            print(f"archive of {name}: {size >> 20} MiB", flush=True)


def _archive(java: Path, name: str, options: list[str], lists: Path, folder: Path) -> int:
    """Makes one archive; returns its size in bytes."""
    archive, source, arguments = folder / f"{name}.jsa", lists / f"{name}.lst", lists / f"{name}.arguments"
    fresh = archive.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    lines = source.read_text().splitlines()
    known = {_ID.sub("", line) for line in lines}
    for other in _ALSO.get(name, ()):
        # Without numbers, since those of another list have other meanings.
        named = (_ID.sub("", line) for line in (lists / f"{other}.lst").read_text().splitlines())
        lines += [line for line in named if line not in known and " id: " not in line]
    source.write_text("".join(f"{line}\n" for line in lines if not _SPECIES.match(line)))
    # In a file, since Spark's class path is longer than some systems take on a command line.
    arguments.write_text("".join(f'"{option}"\n' for option in options))
    made = [f"-XX:SharedClassListFile={source}", f"-XX:SharedArchiveFile={fresh}"]
    said = _run([java, "-Xshare:dump", "-Xlog:cds=off", *made, f"@{arguments}"])
    if not fresh.exists():
        message = f"no archive of {name}: {' '.join(said.split())}"
        raise _RecordingError(message)
    return fresh.replace(archive).stat().st_size


def _run(command: list[str | Path], environment: Mapping[str, str] = os.environ) -> str:
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stderr + done.stdout).strip().splitlines() or ["it said nothing"]
        message = f"{' '.join(map(str, command))}: {said[-1]}"
        raise _RecordingError(message)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
