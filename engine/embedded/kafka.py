"""The embedded Kafka: one node (KRaft, broker and controller in one JVM) on loopback."""

from __future__ import annotations

import base64
import contextlib
import subprocess
import uuid
from typing import TYPE_CHECKING, ClassVar

from engine.embedded.controller import unregister_broker
from engine.embedded.jvm import JvmServer
from engine.embedded.ports import LOOPBACK, accepts, free_ports
from engine.errors import SetupError
from engine.jars import HALLMARKS, class_data_options
from engine.java import class_options
from engine.kafka import clients
from engine.private import UMASK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["EmbeddedKafka"]

_DEFAULT_MAX_MESSAGE_BYTES = 64 * 1024 * 1024

_NODE_ID = 1
_REFUSED_REGISTRATION = "DUPLICATE_BROKER_REGISTRATION"

# One node keeps one copy; few partitions and threads start faster and suffice for one machine.
_ONE_NODE = {
    "process.roles": "broker,controller",
    "node.id": str(_NODE_ID),
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "data",
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    # A bridge that was stopped for longer than a week goes on where it was.
    "offsets.retention.minutes": "2147483647",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.min.isr": "1",
    # One node has no other to hand its partitions to. While it tries, they have no leader, and Kafka takes them for
    # deleted: a transaction that commits then ends without its markers, and consumers that read committed wait for
    # ever.
    "controlled.shutdown.enable": "false",
    # The same happens when the controller takes the only broker for dead, because the machine had no time for its
    # heartbeats. `_forget_last_run` does what this limit otherwise does at a start.
    "broker.session.timeout.ms": str(2**31 - 1),
    # A broker that is refused asks again after this time.
    "broker.heartbeat.interval.ms": "300",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "4",
    # The default of 128 MiB would be a quarter of the heap.
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
}


class EmbeddedKafka(JvmServer):
    """Kafka for one machine; `data/kafka` holds its configuration, topics and logs."""

    title: ClassVar[str] = "Kafka"

    def __init__(
        self,
        data: Path,
        port: int,
        jars: Path,
        *,
        heap_megabytes: int = 512,
        max_message_bytes: int = _DEFAULT_MAX_MESSAGE_BYTES,
    ) -> None:
        """`jars` is the folder with `kafka/*.jar`; `max_message_bytes` is the limit of topics that set none."""
        super().__init__(data / "kafka", {"embedded.kafka.port": port}, heap_megabytes)
        self._port = port
        self._jars = jars.absolute() / "kafka"
        self._max_message_bytes = max_message_bytes
        self._controller_port = 0
        self._has_forgotten = False

    @property
    def bootstrap(self) -> str:
        """The address `host:port` for `bootstrap.servers`."""
        return f"{LOOPBACK}:{self._port}"

    def _prepare(self, java: Path) -> None:
        if not any(self._jars.glob(HALLMARKS["kafka"])):
            msg = f"no Kafka in {self._jars}: run `make setup`"
            raise SetupError(msg)
        (self._controller_port,) = free_ports(1)
        self._has_forgotten = False
        lines = (f"{key}={value}\n" for key, value in self._properties(self._controller_port).items())
        (self.folder / "server.properties").write_text("".join(lines))
        if not (self.folder / "data" / "meta.properties").exists():
            self._format(java)

    def _properties(self, controller_port: int) -> dict[str, str]:
        """The broker's properties; the controller's port is internal and may change with each start.

        Paths are relative to the broker's folder: the absolute path, with whatever characters, need not survive Java's
        rules for properties files.
        """
        broker = f"PLAINTEXT://{self.bootstrap}"
        return _ONE_NODE | {
            "listeners": f"{broker},CONTROLLER://{LOOPBACK}:{controller_port}",
            "advertised.listeners": broker,
            "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
            "message.max.bytes": str(self._max_message_bytes),
        }

    def _cluster_id(self) -> str:
        """A new id of a cluster."""
        return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")

    def _format(self, java: Path) -> None:
        """Formats the empty folder with a cluster id, which it keeps for good."""
        # Joined by `=`, because an id may begin with a dash.
        tool = ["kafka.tools.StorageTool", "format", f"--cluster-id={self._cluster_id()}", "--config=server.properties"]
        options = ["-XX:TieredStopAtLevel=1", *class_data_options("kafka"), *self._logging()]
        done = subprocess.run(
            [java, *options, *class_options(self._jars), *tool],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            umask=UMASK,
        )
        if done.returncode != 0:
            said = (done.stderr + done.stdout).strip().splitlines() or ["not a word"]
            msg = f"embedded Kafka cannot use {self.folder / 'data'}: {said[0]}"
            raise SetupError(msg)

    def _program(self) -> Sequence[str]:
        return [*class_options(self._jars), "kafka.Kafka", "server.properties"]

    def _answers(self) -> bool:
        if not accepts(self._port):
            self._forget_last_run()
            return False
        # A new client first has to connect, which takes more than a second on a busy machine.
        return clients.answers(self.bootstrap, 5)

    def _forget_last_run(self) -> None:
        """Removes the registration of the last run when the controller refuses this one because of it.

        A stopped or killed broker is still registered, and the controller waits for the end of its session before it
        lets the same broker in again.
        """
        if self._has_forgotten or _REFUSED_REGISTRATION not in self._logged():
            return
        with contextlib.suppress(OSError):  # asked again while the broker does not answer
            self._has_forgotten = unregister_broker(self._controller_port, _NODE_ID)
