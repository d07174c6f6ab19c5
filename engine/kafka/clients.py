"""Maker of the clients of a Kafka cluster, and the settings of members of consumer groups.

Every client is quiet: librdkafka would write to stderr, and the code that uses a client reports its errors in one line.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog
from confluent_kafka import Consumer, KafkaException, Producer, libversion
from confluent_kafka.admin import AdminClient

from engine.kafka.kerberos import use_keytab
from engine.kafka.msk_token import new_msk_token
from engine.kafka.security import KEYTAB, MSK_IAM
from engine.kafka.settings import librdkafka
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from confluent_kafka import KafkaError

    from engine.kafka.settings import Role
    from routes.kafka_access import KafkaAccess

__all__ = [
    "HEARTBEAT_MS",
    "NO_GROUP",
    "QUIET",
    "SESSION_MS",
    "KafkaClients",
    "answers",
    "librdkafka_version",
    "member",
    "sink_group",
]

_log = structlog.get_logger(__name__)
_SILENT = logging.getLogger(f"{__name__}.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False
QUIET: Mapping[str, Any] = {"log_level": 0, "logger": _SILENT}
"""Settings of every client: librdkafka writes fatal errors to stderr at any `log_level` unless it has a logger."""

NO_GROUP = "unused"
"""Group of a consumer that joins none and commits nothing: librdkafka requires a name."""
SESSION_MS = 6_000
"""Shortest session timeout that brokers allow by default: the partitions of a killed member stay unread for this
long."""
HEARTBEAT_MS = 1_500
_FETCHED_KIB = 16 * 1024
_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class KafkaClients:
    """Maker of the clients of one Kafka cluster, which have the user's settings."""

    access: KafkaAccess
    """Address of the cluster, and the user's settings."""

    @property
    def servers(self) -> str:
        """`host:port,…` of the brokers."""
        return self.access.servers

    def consumer(
        self, group: str, settings: Mapping[str, Any] = _NOTHING, defaults: Mapping[str, Any] = _NOTHING
    ) -> Consumer:
        """Returns a new consumer; `settings` precede the user's, and these precede `defaults`.

        Raises as `engine.kafka.settings.librdkafka`, and KafkaException for a setting that the client refuses.
        """
        configured = _configured(self.access, "consumer")
        return Consumer({**defaults, **configured, "group.id": group, **settings, **QUIET})

    def producer(self, settings: Mapping[str, Any] = _NOTHING, defaults: Mapping[str, Any] = _NOTHING) -> Producer:
        """Returns a new producer; settings and errors are as for `consumer`."""
        return Producer({**defaults, **_configured(self.access, "producer"), **settings, **QUIET})

    def admin(self, on_error: Callable[[KafkaError], None] | None = None) -> AdminClient:
        """Returns a new admin client, which calls `on_error` with errors of its connections; raises as `consumer`."""
        settings = {**_configured(self.access, "admin"), **QUIET}
        if on_error is not None:
            settings["error_cb"] = on_error
        return AdminClient(settings)


def _configured(access: KafkaAccess, role: Role) -> dict[str, Any]:
    """The user's settings of a client, with what its login needs of this process: tickets, or a source of tokens.

    Raises as `engine.kafka.settings.librdkafka` and `engine.kafka.msk_token.new_msk_token`.
    """
    settings: dict[str, Any] = dict(librdkafka(access, role))
    if keytab := settings.get(KEYTAB):
        use_keytab(keytab)
    if access.common.get("sasl.mechanism") != MSK_IAM:
        return settings
    # A client that gets none would raise an error without the reason.
    first = [new_msk_token(access.servers)]

    def token(_: str) -> tuple[str, float]:
        if first:
            return first.pop()
        try:
            return new_msk_token(access.servers)
        except BridgeError as error:
            # The client tries again, and tells no reason.
            _log.warning("no token for Kafka", servers=access.servers, why=str(error))
            raise

    return {**settings, "oauth_cb": token}


def answers(servers: str, timeout_seconds: float) -> bool:
    """True if a broker without login and TLS answers at one of the `servers` in time."""
    try:
        return bool(AdminClient({"bootstrap.servers": servers, **QUIET}).list_topics(timeout=timeout_seconds).brokers)
    except KafkaException:
        return False


def member(on_error: Callable[[KafkaError], None], session_ms: int = SESSION_MS) -> dict[str, Any]:
    """Settings of a consumer that is a member of its group.

    Offsets are not stored automatically: the member itself commits the records that it has dealt with.
    """
    return {
        "enable.auto.offset.store": False,
        "session.timeout.ms": session_ms,
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "queued.max.messages.kbytes": _FETCHED_KIB,
        # Pause before the next fetch when the queue is full; the default of a second would leave a gap.
        "fetch.queue.backoff.ms": 20,
        # Limits the delay of a record that follows a pause.
        "fetch.wait.max.ms": 100,
        "error_cb": on_error,
    }


def sink_group(bridge_id: str, sink: str) -> str:
    """Name of the consumer group of a sink's workers."""
    return f"{bridge_id}.sink.{sink}"


def librdkafka_version() -> str:
    """Version of librdkafka, such as `2.16.0`."""
    return str(libversion()[0])
