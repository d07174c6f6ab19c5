"""Problems with topics in words: the problem, the users of the topic, and the remedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError
from confluent_kafka.admin import AclOperation

from engine.errors import HardFailureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confluent_kafka.admin import TopicDescription

__all__ = ["Problem", "is_missing", "problem_of_error", "problems_of_access", "refused"]


_MISSING = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)
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


def refused(bootstrap_servers: str, problems: Sequence[Problem]) -> HardFailureError:
    """HardFailureError for all problems, with a line for each."""
    where = f"Kafka at {bootstrap_servers}"
    if len(problems) == 1:
        return HardFailureError(f"{where}: {problems[0]}")
    lines = "".join(f"\n  {problem}" for problem in problems)
    return HardFailureError(f"{where}: {len(problems)} topics cannot be used{lines}")


def is_missing(found: TopicDescription | KafkaError) -> bool:
    """True if the broker answered that the topic does not exist."""
    return isinstance(found, KafkaError) and found.code() in _MISSING


def problems_of_access(
    topic: str, users: str, found: TopicDescription | KafkaError, needed: Sequence[AclOperation]
) -> list[Problem]:
    """Problem of a topic that Kafka does not describe, or that the bridge lacks `needed` operations on; else empty."""
    if isinstance(found, KafkaError):
        return [problem_of_error(topic, users, found)]
    # A cluster without an authorizer allows all operations; some of them send no list.
    allowed = set(found.authorized_operations or needed)
    lacking = [operation.name for operation in needed if operation not in allowed]
    if not lacking:
        return []
    verbs = " and ".join(_VERBS[name] for name in lacking)
    remedy = f"grant {' and '.join(lacking)} on it to the bridge's principal"
    return [Problem(topic, users, f"not authorised to {verbs} it", remedy)]


def problem_of_error(topic: str, users: str, error: KafkaError) -> Problem:
    """The problem that a broker's error stands for."""
    what, remedy = f"is refused: {error.str()} ({error.name()})", "the broker's log may say more"
    if error.code() in _MISSING:
        what, remedy = "does not exist", "create it (kafka-topics.sh --create), or set routing.create-topics=true"
    elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        what = "does not exist, or the bridge is not authorised to see it"
        remedy = "create it, and grant WRITE on it to the bridge's principal"
    elif error.code() == KafkaError.TOPIC_EXCEPTION:
        what, remedy = "is not a valid name for a topic", "letters, digits, '.', '_' and '-', 249 at most"
    return Problem(topic, users, what, remedy)
