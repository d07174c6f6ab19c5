"""Kafka admin client with a deadline for all its calls, and the problems with topics that it finds, in words."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType

from engine.errors import HardFailureError
from engine.kafka.errors import (
    LOGIN,
    MISSING,
    PASSING,
    UNREACHABLE,
    UNREADY,
    KafkaUnavailableError,
    refusal,
    refused_setting,
    unanswered,
)
from engine.kafka.security import OAUTHBEARER
from routes.errors import ConfigurationError, Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from confluent_kafka.admin import AdminClient, ClusterMetadata, TopicDescription

    from engine.kafka.clients import KafkaClients
    from routes.kafka_access import KafkaAccess

__all__ = [
    "Cluster",
    "Problem",
    "describe",
    "is_missing",
    "problem_of_error",
    "problems_of_access",
    "propagation_seconds",
    "refused",
]

_PROPAGATION_SECONDS = 2.0
_STARTING_SECONDS = 30.0

_SLICE_SECONDS = 0.5
_PAUSE_SECONDS = 0.1
_LEAST_REQUEST_SECONDS = 1.0
_NOT_AUTHORISED = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
_VERBS = {"READ": "read", "WRITE": "write"}


@dataclass(frozen=True, slots=True)
class Problem:
    """Reason for which a topic cannot be used, with the parts of the bridge that need it and the remedy."""

    topic: str
    users: str
    """Parts of the bridge that need the topic."""
    what: str
    """The problem, as a predicate with the topic as its subject."""
    remedy: str
    """Advice for the operator."""

    def __str__(self) -> str:
        return f"topic '{self.topic}' ({self.users}): {self.what}; {self.remedy}"


def propagation_seconds(access: KafkaAccess) -> float:
    """Seconds for which a topic that exists may stay unknown to a broker.

    The embedded Kafka answers before it has read all of its topics, which takes a while on a busy machine.
    """
    return _STARTING_SECONDS if access.is_embedded else _PROPAGATION_SECONDS


def refused(bootstrap_servers: str, problems: Sequence[Problem]) -> HardFailureError:
    """HardFailureError for all problems, with a line for each."""
    where = f"Kafka at {bootstrap_servers}"
    if len(problems) == 1:
        return HardFailureError(f"{where}: {problems[0]}")
    lines = "".join(f"\n  {problem}" for problem in problems)
    return HardFailureError(f"{where}: {len(problems)} topics cannot be used{lines}")


def is_missing(description: TopicDescription | KafkaError) -> bool:
    """True if the broker answered that the topic does not exist."""
    return isinstance(description, KafkaError) and description.code() in MISSING


def problems_of_access(
    topic: str, users: str, description: TopicDescription | KafkaError, needed: Sequence[str]
) -> list[Problem]:
    """Problem of a topic that Kafka does not describe, or that the bridge lacks `needed` rights on; else empty."""
    if isinstance(description, KafkaError):
        return [problem_of_error(topic, users, description)]
    # A cluster without an authorizer allows all operations; some of them send no list.
    allowed = {operation.name for operation in description.authorized_operations or ()}
    lacking = [right for right in needed if allowed and right not in allowed]
    if not lacking:
        return []
    verbs = " and ".join(_VERBS[right] for right in lacking)
    remedy = f"grant {' and '.join(lacking)} on it to the bridge's principal"
    return [Problem(topic, users, f"not authorised to {verbs} it", remedy)]


def problem_of_error(topic: str, users: str, error: KafkaError) -> Problem:
    """The problem that a broker's error stands for."""
    what, remedy = f"is refused: {error.str()} ({error.name()})", "the broker's log may say more"
    if error.code() in MISSING:
        what, remedy = "does not exist", "create it (kafka-topics.sh --create), or set routing.create-topics=true"
    elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        what = "does not exist, or the bridge is not authorised to see it"
        remedy = "create it, and grant WRITE on it to the bridge's principal"
    elif error.code() == KafkaError.TOPIC_EXCEPTION:
        what, remedy = "is not a valid name for a topic", "letters, digits, '.', '_' and '-', 249 at most"
    return Problem(topic, users, what, remedy)


def describe(client: AdminClient, topics: Iterable[str], seconds: float) -> dict[str, TopicDescription | KafkaError]:
    """Description of each topic with the operations that this client may do to it, or the broker's error.

    Raises:
        KafkaException: no answer in that many seconds.
    """
    names = list(topics)
    if not names:
        return {}
    asked = TopicCollection(names)
    descriptions: dict[str, TopicDescription | KafkaError] = {}
    futures = client.describe_topics(asked, include_authorized_operations=True, request_timeout=seconds)
    for topic, future in futures.items():
        try:
            descriptions[topic] = future.result()
        except KafkaException as error:
            if error.args[0].code() in PASSING:
                raise
            descriptions[topic] = error.args[0]
    return descriptions


class Cluster:
    """Admin client of a Kafka cluster that has answered at least once."""

    def __init__(self, clients: KafkaClients, timeout_seconds: float) -> None:
        """Connects; `timeout_seconds` limits all calls of this object together.

        Raises:
            KafkaUnavailableError: no broker answers in time.
            HardFailureError: a broker refuses the login or the certificate.
            ConfigurationError: the client does not know the value of a `kafka.*` setting.
        """
        self._clients = clients
        self._timeout_seconds = timeout_seconds
        self._deadline = time.monotonic() + timeout_seconds
        self._errors: list[KafkaError] = []
        try:
            self._client = clients.admin(self._errors.append)
        except KafkaException as error:
            fault = Fault(refused_setting(error) or str(error), file=str(clients.access.file))
            raise ConfigurationError([fault]) from error
        self._connect()

    def describe(self, topics: Iterable[str], *, patiently: bool = False) -> dict[str, TopicDescription | KafkaError]:
        """Description of each topic with the operations that this client may do to it, or the broker's error.

        If asked `patiently`, looks for a missing topic again for a while, since brokers take one to learn of a new one.
        """
        seconds = propagation_seconds(self._clients.access) if patiently else 0.0
        names, until = list(topics), time.monotonic() + seconds
        descriptions = self._describe(names)
        while any(map(is_missing, descriptions.values())) and time.monotonic() < until:
            time.sleep(_PAUSE_SECONDS)
            descriptions = self._describe(names)
        return descriptions

    def names(self) -> list[str]:
        """Names of all topics that this client may see; KafkaUnavailableError if no broker answers."""
        return list(self._metadata().topics)

    def settings(self, topics: Iterable[str]) -> dict[str, Mapping[str, str]]:
        """Settings of each topic; a topic that is missing, or whose settings the client may not read, is left out."""
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        if not resources:
            return {}
        futures = self._client.describe_configs(resources, request_timeout=self._seconds_left())
        found: dict[str, Mapping[str, str]] = {}
        for resource, future in futures.items():
            try:
                found[resource.name] = {name: entry.value for name, entry in future.result().items()}
            except KafkaException as error:
                self._answer(error)
        return found

    def brokers(self) -> tuple[int, str]:
        """Number of brokers, and the id of their cluster; KafkaUnavailableError if no broker answers."""
        metadata = self._metadata()
        return len(metadata.brokers), metadata.cluster_id or ""

    def offsets_kept_ms(self) -> int | None:
        """Milliseconds for which Kafka keeps the offsets of groups without members; None if it refuses to tell.

        Raises:
            KafkaUnavailableError: no broker answers in time.
        """
        broker = next(iter(self._metadata().brokers))
        resource = ConfigResource(ResourceType.BROKER, str(broker))
        (future,) = self._client.describe_configs([resource], request_timeout=self._seconds_left()).values()
        try:
            return int(future.result()["offsets.retention.minutes"].value) * 60_000
        except KafkaException as error:
            self._answer(error)
            return None

    def ensure(self, topics: Sequence[NewTopic], users: Mapping[str, str]) -> dict[str, TopicDescription | KafkaError]:
        """Creates those topics that are missing; returns the descriptions of all. Raises as `create` does."""
        descriptions = self.describe(topic.topic for topic in topics)
        return descriptions | self.create([topic for topic in topics if is_missing(descriptions[topic.topic])], users)

    def create(self, topics: Sequence[NewTopic], users: Mapping[str, str]) -> dict[str, TopicDescription | KafkaError]:
        """Creates topics, and returns their descriptions; a topic that exists already is not an error.

        `users` tells for each topic which parts of the bridge need it, for the text of errors.

        Raises:
            HardFailureError: Kafka refuses some; the text names them all.
            KafkaUnavailableError: no broker answers in time.
        """
        if not topics:
            return {}
        if problems := self._create(topics, users, only_validate=False):
            raise refused(self._clients.servers, problems)
        return self.describe([topic.topic for topic in topics], patiently=True)

    def refusals(self, topics: Sequence[NewTopic], users: Mapping[str, str]) -> list[Problem]:
        """Reasons for which Kafka would refuse to create the topics; creates none."""
        return self._create(topics, users, only_validate=True) if topics else []

    def _create(self, topics: Sequence[NewTopic], users: Mapping[str, str], *, only_validate: bool) -> list[Problem]:
        seconds = self._seconds_left()
        futures = self._client.create_topics(
            list(topics), operation_timeout=seconds, request_timeout=seconds, validate_only=only_validate
        )
        problems = []
        for topic in topics:
            try:
                futures[topic.topic].result()
            except KafkaException as error:
                refusal = self._answer(error)
                if refusal.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    problems.append(_not_created(topic, users[topic.topic], refusal))
        return problems

    def _describe(self, names: list[str]) -> dict[str, TopicDescription | KafkaError]:
        try:
            return describe(self._client, names, self._seconds_left())
        except KafkaException as error:
            raise self._unreachable() from error

    def _metadata(self) -> ClusterMetadata:
        try:
            return self._client.list_topics(timeout=self._seconds_left())
        except KafkaException as error:
            raise self._unreachable() from error

    def _connect(self) -> None:
        """Waits for a broker. A refused login or certificate ends the wait, since a retry cannot help."""
        while True:
            try:
                self._client.list_topics(timeout=min(_SLICE_SECONDS, self._timeout_seconds))
            except KafkaException as error:
                self._client.poll(0)
                self._stop_on_refusal()
                if time.monotonic() >= self._deadline:
                    raise self._unreachable() from error
            else:
                return

    def _stop_on_refusal(self) -> None:
        servers, keys = self._clients.access.servers, self._clients.access.keys
        for error in self._errors:
            if error.code() in LOGIN and (refused_login := refusal(error, servers, "the login", keys=keys)):
                raise refused_login
            # In TLS 1.3 a broker refuses a client's certificate only after the handshake. The error then has not the
            # code _SSL but that of a closed connection.
            if error.code() == KafkaError._SSL or "SSL alert" in error.str():
                msg = f"Kafka at {servers}: no TLS: {error.str()}; check {keys}ssl.* and {keys}security.protocol"
                raise HardFailureError(msg)

    def _answer(self, error: KafkaException) -> KafkaError:
        """The broker's error; KafkaUnavailableError if there was no answer."""
        cause: KafkaError = error.args[0]
        if cause.code() in UNREADY:
            raise unanswered(self._clients.servers, cause) from error
        if cause.code() in PASSING:
            raise self._unreachable() from error
        return cause

    def _unreachable(self) -> KafkaUnavailableError:
        fit = f"does {self._clients.access.keys}security.protocol fit?"
        reasons = [error.str() for error in self._errors if error.code() not in UNREACHABLE]
        if self._errors and not reasons:
            reasons = [f"connections are accepted and closed: {fit}"]
        elif handshakes := [reason for reason in reasons if "SSL_HANDSHAKE" in reason]:
            # Preferred to later errors of attempts that failed before the handshake: it says most about the cause.
            reasons = [f"{handshakes[-1]}: {fit}"]
        elif not reasons and self._clients.access.common.get("sasl.mechanism") == OAUTHBEARER:
            # librdkafka asks again for a while before it says so.
            reasons = ["no token yet: does the issuer of tokens answer?"]
        last = f" ({reasons[-1]})" if reasons else ""
        where = f"no Kafka at {self._clients.access.servers} for {self._timeout_seconds:g} s{last}"
        return KafkaUnavailableError(f"{where}; start it, or correct {self._clients.access.keys}bootstrap.servers")

    def _seconds_left(self) -> float:
        return max(self._deadline - time.monotonic(), _LEAST_REQUEST_SECONDS)


def _not_created(topic: NewTopic, users: str, error: KafkaError) -> Problem:
    if error.code() in _NOT_AUTHORISED:
        remedy = "grant CREATE on it to the bridge's principal, or create it by hand"
        return Problem(topic.topic, users, "does not exist, and the bridge is not authorised to create it", remedy)
    if error.code() == KafkaError.INVALID_REPLICATION_FACTOR:
        what = f"does not exist, and cannot be created with {topic.replication_factor} copies"
        return Problem(topic.topic, users, what, "lower journal.replication, or write broker")
    return problem_of_error(topic.topic, users, error)
