"""Topics that a search reads, and the offsets in them that a question is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.find.question import TopicKind
from engine.printable import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.find.question import FindQuestion
    from engine.find.stretches import Ranges
    from engine.kafka.offsets import KafkaOffsets
    from routes.model import Config, Route

__all__ = ["SearchedOffsets", "searched_topics", "topic_kinds"]


def searched_topics(known: Mapping[str, TopicKind], question: FindQuestion) -> dict[str, TopicKind]:
    """Topics among the known ones of a bridge that a question is about, whether they exist or not.

    Raises UsageError if a topic of the question is unknown.
    """
    if unknown := sorted(question.topics - known.keys()):
        msg = (
            f"the bridge has no topic '{unknown[0]}'; a search reads {', '.join(TopicKind)} "
            f"or single ones of {listed(list(known))}"
        )
        raise UsageError(msg)
    return {topic: kind for topic, kind in known.items() if kind in question.kinds or topic in question.topics}


def topic_kinds(config: Config, routes: Iterable[Route]) -> dict[str, TopicKind]:
    """Topics of a bridge that have messages in them; `routes` are its own, with the topics that templates can make."""
    letters, _, quarantine = config.letter_topics
    destinations = (topic for route in routes for target in route.targets if not target.sink for topic in target.topics)
    found = dict.fromkeys(destinations, TopicKind.DESTINATION)
    found |= {sink.topic: TopicKind.SINK for sink in config.sinks}
    found |= {letters: TopicKind.DEAD_LETTERS, quarantine: TopicKind.DEAD_LETTERS}
    return {config.journal.topic: TopicKind.JOURNAL} | found | {config.journal.topic: TopicKind.JOURNAL}


@dataclass(frozen=True, slots=True)
class SearchedOffsets:
    """Offsets that a question is about, as they are when it is asked."""

    ranges: Mapping[tuple[str, int], Ranges]
    """Offsets of each partition of a topic that have to be read, in the order in which they are."""
    notes: tuple[str, ...]
    """Sentences about what cannot be read."""

    @staticmethod
    def of(offsets: KafkaOffsets, topics: Mapping[str, TopicKind], question: FindQuestion) -> SearchedOffsets:
        """Asks Kafka for the offsets.

        Its index of times leads to the first record of a time, so nothing before that of `since` has to be read. What
        comes behind the first record of `until` is read last: some of it may be older than its place.

        Raises:
            HardFailureError: Kafka refuses access.
            UnreachableError: Kafka does not answer.
        """
        starts, ends = offsets.starts(topics), offsets.ends(topics)
        committed = offsets.ends(topics, committed=True)
        since = starts if question.since is None else offsets.since(topics, question.since)
        until = committed if question.until is None else offsets.since(topics, question.until)
        found: dict[tuple[str, int], Ranges] = {}
        for topic, of in committed.items():
            for partition, end in of.items():
                first, start, between = (
                    min(each.get(topic, {}).get(partition, end), end) for each in (starts, since, until)
                )
                start = max(first, start)
                between = max(between, start)
                found[topic, partition] = ((start, between), (between, end))
        held = {
            topic: sum(max(end - committed[topic].get(p, end), 0) for p, end in of.items())
            for topic, of in ends.items()
            if topic in committed
        }
        notes = [
            *(
                f"topic '{topic}' does not exist"
                for topic, kind in topics.items()
                # Topics of dead letters are made for the first one.
                if topic not in committed and kind is not TopicKind.DEAD_LETTERS
            ),
            *(
                f"the last {count:,} offsets of '{topic}' are of open transactions"
                for topic, count in held.items()
                if count
            ),
        ]
        return SearchedOffsets(found, tuple(notes))
