"""JetStream API requests that source and sink need: JSON calls, and finding or creating a durable consumer or a stream.

Specification: the JetStream API reference at docs.nats.io. Requests do not go through nats-py's JetStream classes,
because these drop fields that they do not know, such as the limits of a consumer.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog
from nats.errors import NoRespondersError

from engine.connectors.base import MissingError, NotConnectedError
from engine.errors import HardFailureError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine.connectors.nats.connection import Connection
    from engine.connectors.nats.settings import NatsSourceConfig

__all__ = [
    "API",
    "ApiError",
    "Consumer",
    "acknowledged",
    "ask",
    "check_stream",
    "delivery_limit",
    "ensure_consumer",
    "ensure_stream",
    "waiting",
]

API = "$JS.API"

_ACK_WAIT_SECONDS = 30.0
"""`ack_wait` of consumers that the bridge creates. The messages of a killed bridge are redelivered after this time; a
running bridge extends it for its open messages."""
_MOST_UNACKNOWLEDGED = 25_000
"""Limit of unacknowledged messages for each worker; higher than the number that `IngressPipeline` leaves open."""
_NANOSECONDS = 1_000_000_000
_NOT_ENABLED = "JetStream is not enabled there; start the server with -js, or remove {key}"
_NO_STREAM = 10059
_NO_CONSUMER = 10014
_NAME_IN_USE = 10058
_SUBJECTS_OVERLAP = 10065
_KEPT_SECONDS = 86_400
"""Maximum age of an unread reply in the stream that `ensure_stream` creates."""
_NOT_ENABLED_CODES = (10039, 10076)
_LIMIT_CODES = (10002, 10027, 10120)
_LATER = 500
_NONE = -1
_MOST = (1 << 64) - 1
_log = structlog.get_logger(__name__)


class ApiError(Exception):
    """Error that JetStream returned for a request, or for a published message."""

    def __init__(self, error: Any) -> None:
        """Takes the value of `error` in the reply; facts that are missing or malformed get a default."""
        facts = error if isinstance(error, dict) else {}
        super().__init__(str(facts.get("description", "an error without description")))
        self.code = _number(facts, "code", _LATER)
        """Status code with the meaning it has in HTTP."""
        self.err_code = _number(facts, "err_code")
        """JetStream's own error code; 0 if there is none."""

    @property
    def is_not_enabled(self) -> bool:
        """True if JetStream is not enabled on the server or for this account."""
        return self.err_code in _NOT_ENABLED_CODES

    @property
    def is_beyond_limits(self) -> bool:
        """True if a limit of the account or the server does not allow another stream."""
        return self.err_code in _LIMIT_CODES


@dataclass(frozen=True, slots=True)
class Consumer:
    """Durable pull consumer as configured on the server."""

    name: str
    created: str
    """Time of creation, in the server's spelling."""
    ack_wait_seconds: float
    max_batch: int | None
    """Maximum number of messages in one pull request; None: no limit."""
    max_bytes: int | None
    max_expires_seconds: float | None


class DeliveryLimit(NamedTuple):
    """Limit of deliveries of a consumer, by which messages are lost, as texts for users."""

    found: str
    remedy: str


def ask(connection: Connection, subject: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Sends a request to `$JS.API.<subject>` and returns the JSON object of the reply.

    Raises:
        ApiError: JetStream returned an error.
        NotConnectedError: no reply in time, or one that is not a JSON object.
        nats.errors.NoRespondersError: there is no JetStream.
    """
    answer = connection.request(f"{API}.{subject}", json.dumps(body).encode() if body else b"")
    try:
        reply = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise connection.fail("JetStream's answer is not JSON") from error
    if not isinstance(reply, dict):
        raise connection.fail("JetStream's answer is not a JSON object")
    if "error" in reply:
        raise ApiError(reply["error"])
    return reply


def _object(connection: Connection, answer: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns a member of a reply; NotConnectedError if it is not an object."""
    member = answer.get(name)
    if not isinstance(member, dict):
        raise connection.fail(f"JetStream answers without an object '{name}'")
    return member


def _number(answer: Mapping[str, Any], name: str, otherwise: int = 0) -> int:
    """Returns a member of a JSON object; `otherwise` if it is missing, no whole number, or beyond 64 bits."""
    value = answer.get(name)
    return value if type(value) is int and 0 <= value <= _MOST else otherwise


def _texts(answer: Mapping[str, Any], name: str) -> list[str]:
    """Returns the texts in a list of a JSON object; none if it is missing or no list."""
    value = answer.get(name)
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def ensure_consumer(connection: Connection, source: NatsSourceConfig, bridge_id: str) -> Consumer:
    """Finds the durable consumer of `source.stream` that all workers share; creates it if it is missing.

    An existing consumer is used as it is.

    Raises:
        HardFailureError: there is no JetStream, the stream lacks a subject of the source, or the consumer cannot be
            used by a source.
        MissingError: there is no such stream so far.
        NotConnectedError: JetStream is not ready, or the connection is lost.
    """
    name = _consumer_name(source, bridge_id)
    with _refusals(connection, source) as where:
        _check_subjects(connection, source, where)
        description = _find(connection, source, name) or _make(connection, source, name)
    config = _object(connection, description, "config")
    _check_consumer(config, source, name, where)
    if limit := _limited(config, source, name):
        _log.warning(limit.found, source=source.name, consumer=name, remedy=limit.remedy)
    return Consumer(
        name,
        str(description.get("created", "")),
        _number(config, "ack_wait") / _NANOSECONDS or _ACK_WAIT_SECONDS,
        _number(config, "max_batch") or None,
        _number(config, "max_bytes") or None,
        _number(config, "max_expires") / _NANOSECONDS or None,
    )


def check_stream(connection: Connection, source: NatsSourceConfig) -> None:
    """Checks that there is the stream of a source, with its subjects. Raises as `ensure_consumer`."""
    with _refusals(connection, source) as where:
        _check_subjects(connection, source, where)


@contextmanager
def _refusals(connection: Connection, source: NatsSourceConfig) -> Iterator[str]:
    """Translates JetStream's answers about the stream of a source; yields the stream's name in words."""
    key = f"source.{source.name}.stream"
    where = f"source '{source.name}': stream '{source.stream}' at {connection.url}"
    try:
        yield where
    except NoRespondersError as error:
        raise HardFailureError(f"{where}: {_NOT_ENABLED.format(key=key)}") from error
    except ApiError as error:
        raise _translated(error, source, where, key) from error


def delivery_limit(connection: Connection, source: NatsSourceConfig, bridge_id: str) -> DeliveryLimit | None:
    """Returns the limit of deliveries of the source's consumer; None if it has none, or does not exist yet.

    Raises:
        NotConnectedError: no reply in time, or the connection is lost.
    """
    name = _consumer_name(source, bridge_id)
    try:
        found = _find(connection, source, name)
    except (ApiError, NoRespondersError):
        # The source itself says what is wrong with the stream.
        return None
    return None if found is None else _limited(_object(connection, found, "config"), source, name)


def _consumer_name(source: NatsSourceConfig, bridge_id: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", source.consumer or f"{bridge_id}-{source.name}")


def _limited(config: Mapping[str, Any], source: NatsSourceConfig, name: str) -> DeliveryLimit | None:
    most_deliveries = _number(config, "max_deliver")
    if not most_deliveries:
        return None
    times = "once" if most_deliveries == 1 else f"{most_deliveries} times"
    return DeliveryLimit(
        f"consumer '{name}' of stream '{source.stream}' delivers a message {times} at most (max_deliver): each kill of "
        "the bridge or outage of Kafka counts, and then the message never comes again",
        f"remove the limit: nats consumer edit {source.stream} {name} --max-deliver=-1",
    )


def acknowledged(connection: Connection, stream: str, consumer: str) -> int:
    """Returns the consumer's ack floor: the stream sequence up to which all messages are acknowledged.

    Raises:
        NotConnectedError: JetStream does not return it.
    """
    try:
        info = ask(connection, f"CONSUMER.INFO.{stream}.{consumer}")
    except (ApiError, NoRespondersError) as error:
        raise connection.fail(f"JetStream says of the consumer: {error or 'nothing'}") from error
    floor = _number(_object(connection, info, "ack_floor"), "stream_seq", _NONE)
    if floor == _NONE:
        raise connection.fail("JetStream answers without a number in 'ack_floor'")
    return floor


def waiting(connection: Connection, source: NatsSourceConfig, bridge_id: str) -> int:
    """Returns the number of messages of the source's consumer that are not delivered, or not acknowledged.

    Raises:
        NotConnectedError: JetStream does not return it, or has no such consumer yet.
    """
    name = _consumer_name(source, bridge_id)
    try:
        info = ask(connection, f"CONSUMER.INFO.{source.stream}.{name}")
    except (ApiError, NoRespondersError) as error:
        raise connection.fail(f"JetStream says of consumer '{name}': {error or 'nothing'}") from error
    pending, open_ = _number(info, "num_pending", _NONE), _number(info, "num_ack_pending", _NONE)
    if _NONE in (pending, open_):
        raise connection.fail(f"JetStream does not say how many messages consumer '{name}' has pending")
    return pending + open_


def ensure_stream(connection: Connection, name: str, subject: str) -> str:
    """Returns the name of the stream that stores a subject; creates a stream called `name` if there is none.

    A stream created here is a work queue: an acknowledged message is removed. An existing stream is used as it is.

    Raises:
        ApiError: JetStream cannot create the stream, or is not enabled.
        NotAllowedError: the bridge has no permission to ask.
        NotConnectedError: no reply in time, or the connection is lost.
        nats.errors.NoRespondersError: there is no JetStream.
    """
    streams = _texts(ask(connection, "STREAM.NAMES", {"subject": subject}), "streams")
    if streams:
        return streams[0]
    config = {
        "name": name,
        "description": "replies on their way through a JMS bridge",
        "subjects": [subject],
        "retention": "workqueue",
        "storage": "file",
        "max_age": _KEPT_SECONDS * _NANOSECONDS,
    }
    try:
        made = ask(connection, f"STREAM.CREATE.{name}", config)
        return str(_object(connection, made, "config").get("name", name))
    except ApiError as error:
        if error.err_code not in (_NAME_IN_USE, _SUBJECTS_OVERLAP):
            raise
    # Another worker has created it at the same time.
    return name


def _translated(error: ApiError, source: NatsSourceConfig, where: str, key: str) -> Exception:
    if error.is_not_enabled:
        return HardFailureError(f"{where}: {_NOT_ENABLED.format(key=key)}")
    if error.err_code == _NO_STREAM:
        made = f'nats stream add {source.stream} --subjects "{",".join(source.destinations)}"'
        return MissingError(f"{where} does not exist; make it, such as with: {made}")
    if error.code >= _LATER:
        return NotConnectedError(f"JetStream says: {error}")
    return HardFailureError(f"{where}: JetStream says: {error}")


def _check_subjects(connection: Connection, source: NatsSourceConfig, where: str) -> None:
    config = _object(connection, ask(connection, f"STREAM.INFO.{source.stream}"), "config")
    subjects = _texts(config, "subjects")
    # A mirror or a stream with sources gets messages from other streams, whose subjects those may rename.
    if config.get("mirror") or config.get("sources"):
        return
    for wanted in source.destinations:
        if not any(_overlap(wanted.split("."), subject.split(".")) for subject in subjects):
            has = ", ".join(subjects)
            raise HardFailureError(f"{where} has no subject '{wanted}': it has {has}; change one of them")


def _overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    """True if some subject matches both patterns, given as tokens."""
    for first, second in zip(one, other, strict=False):
        if ">" in (first, second):
            return True
        if "*" not in (first, second) and first != second:
            return False
    return len(one) == len(other)


def _find(connection: Connection, source: NatsSourceConfig, name: str) -> dict[str, Any] | None:
    try:
        return ask(connection, f"CONSUMER.INFO.{source.stream}.{name}")
    except ApiError as error:
        if error.err_code == _NO_CONSUMER:
            return None
        raise


def _make(connection: Connection, source: NatsSourceConfig, name: str) -> dict[str, Any]:
    config = {
        "durable_name": name,
        "description": f"source '{source.name}' of a JMS bridge",
        "deliver_policy": "all",
        "ack_policy": "explicit",
        "ack_wait": int(_ACK_WAIT_SECONDS * _NANOSECONDS),
        "max_ack_pending": _MOST_UNACKNOWLEDGED * source.workers,
        # Servers before 2.10 know only `filter_subject`.
        **(
            {"filter_subject": source.destinations[0]}
            if len(source.destinations) == 1
            else {"filter_subjects": list(source.destinations)}
        ),
    }
    # When two workers start at the same time, the second repeats an identical request, which is not an error.
    body = {"stream_name": source.stream, "config": config}
    return ask(connection, f"CONSUMER.DURABLE.CREATE.{source.stream}.{name}", body)


def _check_consumer(config: Mapping[str, Any], source: NatsSourceConfig, name: str, where: str) -> None:
    wrong = None
    if config.get("deliver_subject"):
        wrong = "is a push consumer"
    elif config.get("ack_policy") != "explicit":
        wrong = f"has ack policy {config.get('ack_policy')}, not explicit"
    elif not config.get("durable_name"):
        # The server deletes it after some seconds without a reader, and with it the record of acknowledgements.
        wrong = "is not durable"
    if wrong:
        msg = f"{where}: its consumer '{name}' {wrong}; name another one in source.{source.name}.consumer"
        raise HardFailureError(msg)
    has = _texts(config, "filter_subjects") or [str(config.get("filter_subject") or ">")]
    if sorted(has) != sorted(source.destinations):
        _log.warning(
            "the consumer has other subjects than the source, and stays as it is",
            source=source.name,
            consumer=name,
            consumer_has=", ".join(has),
            source_has=", ".join(source.destinations),
        )
