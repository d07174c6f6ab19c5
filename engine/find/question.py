"""Question of a search: what a record has to have, in which topics, and how many records are wanted."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from routes.predicate import parse

if TYPE_CHECKING:
    from routes.predicate import Predicate

__all__ = ["FindQuestion", "TopicKind"]


class TopicKind(StrEnum):
    """Kinds of the topics of a bridge that have messages in them."""

    JOURNAL = "journal"
    DESTINATION = "destination"
    """A topic to which a route publishes."""
    SINK = "sink"
    """A topic between the router and a sink."""
    DEAD_LETTERS = "dead-letters"
    """The topic of dead letters, or their quarantine."""


@dataclass(frozen=True, slots=True)
class FindQuestion:
    """Question of a search: a record is found if it has everything that is asked for; nothing asked for is all."""

    message_id: str | None = None
    """JMSMessageID, with `ID:` in front or without."""
    correlation_id: str | None = None
    """JMSCorrelationID, with `ID:` in front or without."""
    key: str | None = None
    """Key of the record."""
    headers: tuple[tuple[str, str], ...] = ()
    """Names and values of JMS fields (`JMSType` or `Type`), properties, or headers as the record has them
    (`jmsbridge.source`). Of several values under one name, any is enough."""
    where: str | None = None
    """Predicate of the routing language that has to be true."""
    text: str | None = None
    """Text of which the body has the bytes in UTF-8."""
    since: int | None = None
    """Time of the oldest record, in milliseconds since 1970; Kafka's time of a record counts."""
    until: int | None = None
    """Time before which a record is, in milliseconds since 1970."""
    kinds: frozenset[TopicKind] = frozenset(TopicKind)
    """Kinds of topics to read."""
    most: int = 20
    """Most records to find."""
    resume: str | None = None
    """Token of an earlier answer to the same question, from which the search goes on."""
    topics: frozenset[str] = frozenset()
    """Names of further topics of the bridge to read, beside those of `kinds`."""
    either_id: str | None = None
    """JMSMessageID or JMSCorrelationID, with `ID:` in front or without."""

    @property
    def predicate(self) -> Predicate | None:
        """The predicate of `where`; PredicateError with its column if the text breaks the language."""
        return None if self.where is None else parse(self.where)

    @property
    def digest(self) -> str:
        """Text that only equal questions have, however much they want and wherever they go on."""
        asked = replace(self, most=1, resume=None, kinds=frozenset(), topics=frozenset())
        places = [*sorted(self.kinds), *sorted(self.topics)]
        return hashlib.sha256(repr((asked, places)).encode("utf-8", "surrogatepass")).hexdigest()[:16]
