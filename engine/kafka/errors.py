"""Errors of Kafka: the kinds that the bridge tells apart, and refusals that no retry overcomes, with their remedies.

A kind is a set of codes, for `error.code() in KIND`. Codes whose names begin with `_` are those of the client
(librdkafka); the others are a broker's answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from engine.errors import HardFailureError, UnreachableError

if TYPE_CHECKING:
    from routes.kafka_access import KafkaAccess

__all__ = [
    "END",
    "FENCED",
    "GONE",
    "LOGIN",
    "MISSING",
    "OF_A_RECORD",
    "PASSING",
    "UNKNOWN_MEMBER",
    "UNKNOWN_QUESTION",
    "UNPLACED",
    "UNREACHABLE",
    "UNREADY",
    "KafkaUnavailableError",
    "UnusableTopicError",
    "is_fatal",
    "is_invalid_name",
    "is_login_refused",
    "is_of_unused_group",
    "is_text_too_long",
    "is_too_large",
    "refusal",
    "refused_setting",
    "remedy",
    "unanswered",
    "unavailable",
    "unusable",
]

PASSING = frozenset(
    {
        *(KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE, KafkaError._MSG_TIMED_OUT),
        *(KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN),
        # No leader of a partition is known.
        KafkaError._NOENT,
        *(KafkaError.REQUEST_TIMED_OUT, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION),
        # A broker has not yet heard of the leader that another broker has named, as after the creation of a topic.
        *(KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.FENCED_LEADER_EPOCH, KafkaError.OFFSET_NOT_AVAILABLE),
        *(KafkaError.NETWORK_EXCEPTION, KafkaError.KAFKA_STORAGE_ERROR, KafkaError.REPLICA_NOT_AVAILABLE),
        *(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR),
    }
)
"""Kafka does not answer at present; the same request may succeed later."""
UNREADY = frozenset(
    {
        *(KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.REPLICA_NOT_AVAILABLE),
        *(KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.OFFSET_NOT_AVAILABLE),
        *(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR),
    }
)
"""Answers of a broker that runs and is not ready yet."""
UNKNOWN_QUESTION = frozenset({KafkaError.UNSUPPORTED_VERSION, KafkaError._UNSUPPORTED_FEATURE})
"""The broker is too old for the request."""
UNREACHABLE = frozenset({KafkaError._ALL_BROKERS_DOWN})
"""The client has no connection to any broker."""
MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})
"""The topic does not exist, or the broker has not heard of it yet."""
OF_A_RECORD: Mapping[int, bool] = {
    **dict.fromkeys((*MISSING, KafkaError.TOPIC_EXCEPTION, KafkaError.TOPIC_AUTHORIZATION_FAILED), True),
    **dict.fromkeys((KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD, KafkaError.INVALID_TIMESTAMP), False),
}
"""Refusals of single records that a new attempt does not change, each with True if it is of the whole topic."""
GONE = MISSING | {KafkaError._UNKNOWN_PARTITION}
"""The topic or the partition does not exist."""
UNPLACED = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})
"""The partition has no record at the position of a consumer."""
END = frozenset({KafkaError._PARTITION_EOF})
"""The end of a partition is reached."""
LOGIN = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})
"""The login is refused, or no token or ticket for it could be fetched; see `is_login_refused`."""
_NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token"  # noqa: S105 - librdkafka's words
_NO_KDC = "Cannot contact any KDC"
"""Words of MIT's Kerberos about servers that do not answer at present."""
_TOKEN_REFUSALS = (
    *("invalid_client", "unauthorized_client", "access_denied", "invalid_scope", "invalid_target"),
    *("invalid_grant", "unsupported_grant_type", "invalid_request"),
)
"""Answers of an issuer that refuse a client, which a new attempt does not change (RFC 6749, section 5.2)."""
UNKNOWN_MEMBER = frozenset({KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_INSTANCE_ID})
"""The consumer group does not have this member any more."""
FENCED = frozenset({KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED})
"""Another producer with the same transactional id has taken over."""
_FATAL = frozenset({KafkaError._FATAL, KafkaError._FENCED, KafkaError.FENCED_INSTANCE_ID, KafkaError.PRODUCER_FENCED})

_MISSING_TOPIC = "there is no such topic; create it, or start the whole bridge, which does"
_LOGIN = "the login is refused; check {keys}sasl.*"
_VERBS = {"READ": "read", "WRITE": "write to", "READ and WRITE": "read and write"}
_REMEDIES: Mapping[int, str] = {
    **dict.fromkeys(MISSING, _MISSING_TOPIC),
    **dict.fromkeys(LOGIN, _LOGIN),
    KafkaError.TOPIC_EXCEPTION: "Kafka does not take that for a topic's name",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "not authorised to {verb} the topic; grant {rights} on it",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "not authorised to read in the group; grant READ on it",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "not authorised to write; grant IDEMPOTENT_WRITE on the cluster",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "not authorised to write in transactions; grant WRITE and "
    "DESCRIBE on the transactional id",
    KafkaError.MSG_SIZE_TOO_LARGE: "its max.message.bytes is less than what the bridge may write; raise it, or lower "
    "journal.max-message-bytes",
}
"""Kafka errors that no retry can overcome, each with its reason and remedy."""


class KafkaUnavailableError(UnreachableError):
    """Kafka does not answer at present; a later attempt may succeed, and only a command ends."""


class UnusableTopicError(HardFailureError):
    """A part lacks a topic of its own, or the right to use it. A part of a bridge waits until it has it."""


def is_fatal(error: KafkaError) -> bool:
    """True if the client that reports the error has failed for good and has to be replaced by a new one.

    confluent-kafka 2.16 sets `KafkaError.fatal()` only on errors that a transactional call raises. The errors of a
    message, a delivery report and a commit carry the code `_FATAL` alone (librdkafka, `rd_kafka_fatal_error`).
    """
    return error.fatal() or error.code() in _FATAL


def is_invalid_name(error: KafkaError) -> bool:
    """True if Kafka does not take a text for a topic's name."""
    return error.code() == KafkaError.TOPIC_EXCEPTION


def is_of_unused_group(error: KafkaError | None) -> bool:
    """True if an error refuses the consumer group, which a consumer that neither joins it nor commits does not need."""
    return error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED


def is_too_large(error: KafkaError) -> bool:
    """True if a record exceeds the `max.message.bytes` of its topic."""
    return error.code() == KafkaError.MSG_SIZE_TOO_LARGE


def is_text_too_long(error: KafkaError) -> bool:
    """True if Kafka refuses the text beside a committed offset (`offset.metadata.max.bytes`)."""
    return error.code() == KafkaError.OFFSET_METADATA_TOO_LARGE


def is_login_refused(error: KafkaError) -> bool:
    """True if Kafka refuses the login, or the issuer of tokens the client; false if no token or ticket was fetched."""
    if error.code() not in LOGIN or _NO_KDC in error.str():
        return False
    return _NO_TOKEN not in error.str() or any(f'"{refused}"' in error.str() for refused in _TOKEN_REFUSALS)


def remedy(error: KafkaError, rights: str = "READ", keys: str = "kafka.") -> str | None:
    """Reason and remedy of a refusal in one line; None for an error that a retry may overcome.

    `rights` are those on the topic that the request needs: READ, WRITE, or READ and WRITE; `keys` those of
    `KafkaAccess`.
    """
    found = None if error.code() in LOGIN and not is_login_refused(error) else _REMEDIES.get(error.code())
    return None if found is None else found.format(verb=_VERBS[rights], rights=rights, keys=keys)


def refusal(
    error: KafkaError, servers: str, what: str, rights: str = "READ", keys: str = "kafka."
) -> HardFailureError | None:
    """Error for the operator about a refusal; None for an error that a retry may overcome.

    `what` names the thing that is refused, such as `topic 'orders'`; `rights` and `keys` are as for `remedy`.
    """
    if is_login_refused(error):
        where = f"Kafka at {servers} refuses the login: {error.str()}"
        return HardFailureError(f"{where}; check {keys}sasl.* and {keys}security.protocol")
    if found := remedy(error, rights, keys):
        return HardFailureError(f"Kafka at {servers} refuses {what}: {found} ({error.name()})")
    return None


def unavailable(servers: str, why: str) -> KafkaUnavailableError:
    """Error of a request that Kafka does not answer."""
    return KafkaUnavailableError(f"Kafka at {servers} does not answer ({why}); is it running?")


def unanswered(servers: str, error: KafkaError, what: str = "") -> KafkaUnavailableError:
    """Error of a request that Kafka cannot answer at present, for an error in PASSING; `what` was asked about."""
    why = f"{what}: {error.str()}" if what else error.str()
    if error.code() not in UNREADY:
        return unavailable(servers, why)
    return KafkaUnavailableError(f"Kafka at {servers} is still starting, or moves partitions ({why}); try again")


def unusable(access: KafkaAccess, why: Exception | None = None) -> UnreachableError:
    """Error of a part that Kafka has kept waiting for longer than `router.outage-timeout`."""
    seconds = access.outage_timeout_seconds
    detail = "" if why is None else f": {why}"
    return UnreachableError(
        f"Kafka at {access.servers} has not been usable for {seconds:g} seconds "
        f"(router.outage-timeout){detail}. Start the bridge again when Kafka is back: nothing is lost"
    )


def refused_setting(error: Exception) -> str | None:
    """Line for the operator about the setting that a client refuses; None for any other error.

    Lint cannot check every setting: only the client's own libraries can judge, for example, a certificate file.
    """
    if isinstance(error, KafkaException) and error.args[0].code() == KafkaError._INVALID_ARG:
        return f"a Kafka setting cannot be used: {error.args[0].str()}"
    return None
