"""RabbitMQ 3 of the Debian package and RabbitMQ 4 of a later Debian, each as a node of its own beside any other."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from engine.embedded.ports import LOOPBACK, accepts
from engine.embedded.process import ChildProcess
from engine.errors import SetupError
from engine.private import make_folder
from tests.brokers.broker import PASSWORD, USER, Broker, Protocol
from tests.brokers.debian import INSIDE, release_with, within
from tests.brokers.rest import call
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

__all__ = ["RabbitMq", "RabbitMq4", "RabbitNode"]

_DEBIAN = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""The program itself; that in PATH changes to a user and a folder of the system before."""
_RELEASE = "trixie"
"""Debian 13, whose C library is newer than that of the machines on which the tests run."""
_PLUGINS = "[rabbitmq_stomp,rabbitmq_amqp1_0,rabbitmq_management,rabbitmq_auth_backend_oauth2].\n"


@cache
def installed_version() -> str:
    """Returns the version of the Debian package; empty if it is not installed."""
    query = ["dpkg-query", "--show", "--showformat=${Version}", "rabbitmq-server"]
    if shutil.which(query[0]) is None:
        return ""
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout.partition("-")[0]


class RabbitNode(Broker):
    """RabbitMQ with queues that are durable."""

    title: ClassVar[str] = "RabbitMQ"
    speaks: ClassVar[Sequence[Protocol]] = tuple(Protocol)
    # Its client has no selectors.
    keeps_positions: ClassVar[Collection[Protocol]] = ()
    client_port: ClassVar[Protocol] = Protocol.AMQP
    others: ClassVar[Sequence[str]] = ("management", "epmd", "distribution")
    prefixes: ClassVar[Mapping[str, str]]
    """Beginnings of the addresses of AMQP 1.0 by kind of destination, of which none makes the broker make a queue."""

    queue_type: str = "classic"
    """Type of the queues that are created."""
    token_key: str | None = None
    """Public key (PEM) that checks access tokens, which then log in as well as users do; None: tokens do not."""

    _epmd: ChildProcess | None = None

    def stop(self) -> None:
        super().stop()
        if self._epmd is not None:
            self._epmd.stop(5)

    def settings(
        self, protocol: Protocol, port: int | None = None, login: tuple[str, str] = (USER, PASSWORD)
    ) -> dict[str, str]:
        own = super().settings(protocol, port, login)
        # Without it the host of the URL would name a virtual host.
        return own | {".virtual-host": "/"} if protocol is Protocol.STOMP else own

    def destination(self, protocol: Protocol, name: str, kind: str = "queue") -> str:
        """Beside STOMP, its own client reads and sends messages in no format of its own."""
        if protocol is Protocol.STOMP:
            return f"rabbitmq:{kind}/{name}"
        if protocol is Protocol.AMQP:
            return f"{kind}:{self.prefixes[kind]}{name}"
        return super().destination(protocol, name, kind)

    def listening(self, protocol: Protocol, topic: str) -> str:
        if protocol is not Protocol.STOMP:
            return super().listening(protocol, topic)
        queue = f"reader_of_{topic}"
        self.create(queue)
        binding = f"/api/bindings/%2F/e/amq.topic/q/{queue}"
        call(self.ports["management"], binding, "POST", {"routing_key": topic})
        return self.destination(protocol, queue)

    def has_transactions(self, client: Protocol) -> bool:
        """False for AMQP 1.0: the plugin of version 3 never answers who asks for one, and version 4 refuses it."""
        return client is not Protocol.AMQP

    def create(self, queue: str, queue_type: str | None = None) -> None:
        """See `Broker`; `queue_type` is its type, if not that of all queues."""
        wanted = {"durable": True, "arguments": {"x-queue-type": queue_type or self.queue_type}}
        call(self.ports["management"], f"/api/queues/%2F/{queue}", "PUT", wanted)

    def waiting(self, queue: str) -> int:
        found = call(self.ports["management"], "/api/queues/%2F?disable_stats=true&enable_queue_totals=true")
        return next((int(each["messages"]) for each in found if each["name"] == queue), 0)

    @property
    def place(self) -> Path:
        """The folder of the node as its programs see it."""
        return self.folder

    def _as_run(self, command: Sequence[str | Path]) -> Sequence[str | Path]:
        """Returns the command that runs a program of the node."""
        return command

    def _client(self, port: int) -> Mapping[str, str]:
        return {
            ".packages": "com.rabbitmq.jms:rabbitmq-jms:3.4.0",
            ".connection-factory": "com.rabbitmq.jms.admin.RMQConnectionFactory",
            # Its messages carry their destinations as serialised objects.
            ".deserialized-classes": "com.rabbitmq.jms.admin.RMQDestination;java.lang.*;java.util.*;!*",
            ".connection-factory.host": LOOPBACK,
            ".connection-factory.port": str(port),
        }

    def _command(self, program: Path) -> Sequence[str | Path]:
        make_folder(self.folder / "data")
        (self.folder / "plugins").write_text(_PLUGINS)
        (self.folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = {LOOPBACK}:{self.ports[Protocol.AMQP]}\n"
            f"stomp.listeners.tcp.1 = {LOOPBACK}:{self.ports[Protocol.STOMP]}\n"
            f"management.tcp.ip = {LOOPBACK}\nmanagement.tcp.port = {self.ports['management']}\n"
            f"default_user = {USER}\ndefault_pass = {PASSWORD}\n"
            # A test machine has few bytes free at times, and is not a place for a warning by blocked publishers.
            "disk_free_limit.absolute = 50MB\nvm_memory_high_watermark.absolute = 512MB\n"
        )
        if self.token_key is not None:
            (self.folder / "tokens.pem").write_text(self.token_key)
            with (self.folder / "rabbitmq.conf").open("a") as file:
                file.write(
                    "auth_backends.1 = rabbit_auth_backend_oauth2\nauth_backends.2 = rabbit_auth_backend_internal\n"
                    "auth_oauth2.resource_server_id = rabbitmq\nauth_oauth2.default_key = 1\n"
                    f"auth_oauth2.signing_keys.1 = {self.place / 'tokens.pem'}\n"
                )
        own = {
            "ERL_EPMD_ADDRESS": LOOPBACK,
            "ERL_EPMD_PORT": self.ports["epmd"],
            "HOME": self.place,
            "RABBITMQ_CONFIG_FILE": self.place / "rabbitmq.conf",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_DIST_PORT": self.ports["distribution"],
            "RABBITMQ_ENABLED_PLUGINS_FILE": self.place / "plugins",
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_LOG_BASE": self.place / "log",
            "RABBITMQ_MNESIA_BASE": self.place / "data",
            "RABBITMQ_NODENAME": f"bridge{self.ports['epmd']}@localhost",
            "RABBITMQ_PID_FILE": self.place / "pid",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1",
            # With this the script becomes the program, which gets the signals then.
            "RUNNING_UNDER_SYSTEMD": "true",
        }
        # Otherwise RabbitMQ starts one, which outlives it.
        port = self.ports["epmd"]
        epmd = self._as_run(["epmd", "-address", LOOPBACK, "-port", str(port)])
        self._epmd = ChildProcess(epmd, self.folder, self.folder / "log" / "epmd.log")
        until(lambda: accepts(port), 30, "epmd listens")
        return self._as_run(["env", *(f"{name}={value}" for name, value in own.items()), program])

    def _answers(self) -> bool:
        try:
            call(self.ports["management"], "/api/healthchecks/node")
            return True
        except OSError:
            return False


class RabbitMq(RabbitNode):
    """RabbitMQ of this machine's Debian package, 3.10.8 in Debian 12."""

    version: ClassVar[str] = installed_version()
    # Its plugin fails when Qpid JMS takes back the credit for what has not come (`send_drained` in its error).
    application_fails_under_load: ClassVar[Collection[Protocol]] = (Protocol.AMQP,)
    # By the shorter `/queue/` the broker makes a queue with its own attributes, or fails.
    prefixes: ClassVar[Mapping[str, str]] = {"queue": "/amq/queue/", "topic": "/topic/"}

    def _find_program(self) -> Path:
        if shutil.which("epmd") is None:
            raise SetupError("no epmd: apt-get install erlang-base")
        if _DEBIAN.exists():
            return _DEBIAN
        if found := shutil.which("rabbitmq-server"):
            return Path(found)
        raise SetupError("no rabbitmq-server: apt-get install --no-install-recommends rabbitmq-server")


class RabbitMq4(RabbitNode):
    """RabbitMQ of Debian 13, whose AMQP 1.0 is native, below a root folder of its own."""

    version: ClassVar[str] = "4.0.5"
    prefixes: ClassVar[Mapping[str, str]] = {"queue": "/queues/", "topic": "/exchanges/amq.topic/"}

    _root: Path | None = None

    @property
    def place(self) -> Path:
        return Path(INSIDE)

    def _as_run(self, command: Sequence[str | Path]) -> Sequence[str | Path]:
        assert self._root is not None
        return within(self._root, self.folder, command)

    def _find_program(self) -> Path:
        self._root = release_with(_RELEASE, "rabbitmq-server")
        program = Path("/usr/lib/rabbitmq/lib", f"rabbitmq_server-{self.version}", "sbin/rabbitmq-server")
        if not (self._root / program.relative_to("/")).exists():
            raise SetupError(f"Debian {_RELEASE} has another version of RabbitMQ than {self.version}")
        return program
