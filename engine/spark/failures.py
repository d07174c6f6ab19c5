"""Exceptions of Spark and its Kafka clients, translated to errors for users.

The class of an error tells whether the query should be tried again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException

from engine.errors import HardFailureError, ServerEndedError, UnreachableError
from engine.kafka.errors import KafkaUnavailableError, UnusableTopicError
from engine.spark.hadoop_path import StorageUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.streaming.query import StreamingQuery


__all__ = [
    "Cause",
    "RecordRefusedError",
    "causes_of",
    "error_causes",
    "failure_of",
    "query_failure",
    "refusal_reason",
    "spark_failure",
]

Cause = tuple[str, str]
"""Java class name and message of a throwable."""

_KAFKA = "org.apache.kafka.common.errors.", "org.apache.kafka.common.Invalid", "org.apache.kafka.clients.consumer."
_FINAL = {
    "InvalidTopicException": "Kafka takes the name of a topic for invalid",
    "TopicAuthorizationException": "not authorised to use a topic",
    "ClusterAuthorizationException": "not authorised by the Kafka cluster",
    "GroupAuthorizationException": "not authorised to use a consumer group",
    "TransactionalIdAuthorizationException": "not authorised to use a transactional id",
    "AuthenticationException": "Kafka does not accept the login",
    "SaslAuthenticationException": "Kafka does not accept the login",
    "SslAuthenticationException": "the TLS handshake with Kafka fails",
    "RecordTooLargeException": "Kafka does not take a record because of its size",
    "UnsupportedVersionException": "the Kafka broker is too old",
    "PolicyViolationException": "a policy of the Kafka cluster forbids a record",
    "InvalidRecordException": "Kafka rejects a record",
    "InvalidTimestampException": "Kafka does not take a record because of its time",
}
_NO_LOGIN = "javax.security.auth.login.LoginException"
_TOKEN_REFUSED = "will not attempt further retries"  # noqa: S105 - words of Kafka's client
_MISSING = "UnknownTopicOrPartitionException"
_PASSING = {
    "TimeoutException",
    "DisconnectException",
    "NetworkException",
    "BrokerNotAvailableException",
    "CoordinatorNotAvailableException",
    "LeaderNotAvailableException",
    "NotLeaderOrFollowerException",
    "UnknownLeaderEpochException",
    "FencedLeaderEpochException",
    "OffsetNotAvailableException",
    "ReplicaNotAvailableException",
    "NotEnoughReplicasException",
    "NotEnoughReplicasAfterAppendException",
    "KafkaStorageException",
    "OffsetOutOfRangeException",
    "UnknownServerException",
    "OutOfOrderSequenceException",
    "InterruptException",
}
_FENCED = {"ProducerFencedException", "InvalidProducerEpochException"}
_OWN: dict[str, type[Exception]] = {
    "jmsbridge.kafka.UnusableTopicException": UnusableTopicError,
    "jmsbridge.predicate.ClaimFolderException": StorageUnavailableError,
    "jmsbridge.serdes.RegistryException": HardFailureError,
    "jmsbridge.serdes.RegistryOutageException": UnreachableError,
    "jmsbridge.streams.DamagedStateException": HardFailureError,
}
_REFUSED_RECORD = "jmsbridge.kafka.RefusedRecordException"
# Spark's messages about a journal that lost records before Spark read them. Recovery handles this case.
_DATA_LOSS = ("KAFKA_DATA_LOSS", "Some data may have been lost", "STREAMING_READ_LIMIT")
_STORAGE, _STORAGE_PAGE = "org.apache.hadoop.", "wiki.apache.org/hadoop/"
"""Package of exceptions of file systems of Hadoop, and the ends of their messages about connections."""
_LOST_EXECUTOR = (
    "ExecutorLostFailure",
    "an executor of Spark was lost",
    "SparkContext was shut down",
    "Master removed",
)
"""Parts of Spark's messages about an executor or a cluster that has ended; a new start waits for another one."""
_CAUSES_AT_MOST = 20


class RecordRefusedError(Exception):
    """Kafka has refused a record for its own sake: the next run does without it.

    `refusal` is the message of `jmsbridge.kafka.RefusedRecordException`, a JSON object.
    """

    def __init__(self, refusal: str) -> None:
        self.refusal = refusal
        fields = json.loads(refusal)
        super().__init__(f"topic {fields['topic']!r} does not take a record: {fields['error']}")


def query_failure(query: StreamingQuery) -> Exception | None:
    """The error that ended a query; None if the query runs or was stopped."""
    causes = causes_of(query)
    return failure_of(causes) if causes else None


def causes_of(query: StreamingQuery) -> list[Cause]:
    """The chain of Java exceptions that ended a query, outermost first; empty if the query runs or was stopped."""
    error: Any = query._jsq.exception()
    return list(_chain(error.get())) if error.isDefined() else []


def spark_failure(error: Exception) -> Exception:
    """Translates an exception of PySpark to an error whose text does not depend on the JVM.

    PySpark's exceptions fetch their text from the JVM when it is shown, and the JVM may be gone by then.
    """
    causes = error_causes(error)
    return failure_of(causes) if causes else RuntimeError(f"Spark refuses: {error}")


def error_causes(error: Exception) -> list[Cause]:
    """The chain of Java exceptions of an exception of PySpark, outermost first; empty if it has none."""
    if isinstance(error, Py4JJavaError):
        return list(_chain(error.java_exception))
    if isinstance(error, CapturedException) and error._origin is not None:
        return list(_chain(error._origin))
    return []


def refusal_reason(kind: str) -> str:
    """Words for a Java class of Kafka's errors that no new attempt mends; the name of the class for others."""
    name = kind.rpartition(".")[2]
    return _FINAL.get(name, name)


def failure_of(causes: Sequence[Cause], topic: str = "") -> Exception:
    """The error that a chain of Java exceptions, outermost first, stands for.

    RecordRefusedError for a record that Kafka refuses, UnusableTopicError for a topic that takes none; HardFailureError
    if Kafka or a schema registry refuses for good; KafkaUnavailableError if a new attempt may succeed; UnreachableError
    for a schema registry that was away for too long; StorageUnavailableError for the file system of the checkpoint;
    ServerEndedError for an executor that was lost or that Kafka refuses in favour of its successor; RuntimeError for
    any other exception. `topic` is that of the record which failed, if it is known.
    """
    for name, message in causes:
        if name == _REFUSED_RECORD:
            return RecordRefusedError(message)
    where = f" (topic {topic!r})" if topic else ""
    for name, message in reversed(causes):
        if known := _known(name, message, where):
            return known
    for name, message in causes:
        if name.startswith(_STORAGE) or _STORAGE_PAGE in message:
            return StorageUnavailableError(f"the file system of the checkpoint fails: {message.partition(chr(10))[0]}")
    if lost := _lost(causes):
        return ServerEndedError(lost)
    name, message = causes[-1]
    return RuntimeError(f"Spark's query ended: {name.rpartition('.')[2]}: {message.partition(chr(10))[0]}")


def _known(name: str, message: str, where: str) -> Exception | None:
    """The error for one of the bridge's own Java exceptions, or of Kafka's; None for any other."""
    kind = name.rpartition(".")[2]
    if name in _OWN:
        return _OWN[name](message)
    if name == _NO_LOGIN:
        reason = f"no token or ticket for the login to Kafka: {message.rpartition('Exception: ')[2]}"
        return (HardFailureError if _TOKEN_REFUSED in message else KafkaUnavailableError)(reason)
    if name.startswith(_KAFKA) and kind in _FINAL:
        return HardFailureError(f"{_FINAL[kind]}{where}: {message}")
    if name.startswith(_KAFKA) and kind == _MISSING:
        return UnusableTopicError(f"Kafka does not have a topic{where}: {message}")
    if (name.startswith(_KAFKA) and kind in _PASSING) or any(sign in message for sign in _DATA_LOSS):
        return KafkaUnavailableError(f"{kind}{where}: {message}")
    return None


def _lost(causes: Sequence[Cause]) -> str | None:
    """Text about an executor that was lost, or that Kafka refuses in favour of its successor; None for other causes."""
    if any(name.startswith(_KAFKA) and name.rpartition(".")[2] in _FENCED for name, _ in causes):
        return "another task publishes in place of one that was taken for lost"
    is_lost = any(sign in message for _, message in causes for sign in _LOST_EXECUTOR)
    return "Spark has lost an executor" if is_lost else None


def _chain(throwable: Any) -> Iterator[Cause]:
    for _ in range(_CAUSES_AT_MOST):
        if throwable is None:
            return
        yield str(throwable.getClass().getName()), str(throwable.getMessage() or "")
        throwable = throwable.getCause()
