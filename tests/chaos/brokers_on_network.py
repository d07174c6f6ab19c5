"""Kafka and Artemis for other hosts: `python -m tests.chaos.brokers_on_network FOLDER ADDRESS`, until input ends."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from engine.embedded import EmbeddedArtemis, EmbeddedKafka
from engine.embedded.server import ETC
from engine.jars import jars

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["KAFKA_PORT", "STOMP_PORT"]

KAFKA_PORT, STOMP_PORT = 9092, 61613
_LOCAL_KAFKA_PORT = 9093


class _Kafka(EmbeddedKafka):
    """The embedded Kafka, which listens on loopback, with a second listener."""

    address = ""

    def _properties(self, controller_port: int) -> dict[str, str]:
        made = super()._properties(controller_port)
        second = f",NETWORK://{self.address}:{KAFKA_PORT}"
        return made | {
            "listeners": made["listeners"] + second,
            "advertised.listeners": made["advertised.listeners"] + second,
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,NETWORK:PLAINTEXT",
        }


class _Artemis(EmbeddedArtemis):
    """The embedded Artemis, which listens on loopback, on every address of the host."""

    def _program(self) -> Sequence[str | Path]:
        etc = self.folder / "etc"
        shutil.copytree(ETC, etc, dirs_exist_ok=True)
        file = etc / "broker.xml"
        file.write_text(file.read_text().replace("127.0.0.1", "0.0.0.0"))  # noqa: S104
        return [each.replace(str(ETC), str(etc)) if isinstance(each, str) else each for each in super()._program()]


def _serve(folder: Path, address: str) -> None:
    kafka = _Kafka(folder, _LOCAL_KAFKA_PORT, jars())
    kafka.address = address
    artemis = _Artemis(folder, 61616, STOMP_PORT, 5672, jars())
    try:
        kafka.start()
        artemis.start()
        print("up", flush=True)
        sys.stdin.read()
    finally:
        artemis.stop()
        kafka.stop()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), sys.argv[2])
