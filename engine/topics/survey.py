"""Preview of the topic checks that a start of the bridge makes; creates no topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka.admin import AclOperation

from engine.topics.destinations import new_topics, read, written
from engine.topics.journal import (
    JOURNAL_USERS,
    journal_problems,
    letter_user,
    new_journal,
    new_letter_topic,
    new_sink_topics,
)
from engine.topics.problems import is_missing, problems_of_access
from engine.topics.state import STATE_USERS, new_state_topic, state_problems

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import KafkaError
    from confluent_kafka.admin import NewTopic, TopicDescription

    from engine.topics.cluster import Cluster
    from engine.topics.problems import Problem
    from routes.model import Config

__all__ = ["Survey", "survey"]


@dataclass(frozen=True, slots=True)
class Survey:
    """State of all topics that a configuration names."""

    there: tuple[str, ...]
    """Topics that exist and have no problem."""
    to_make: tuple[str, ...]
    """Topics that are missing and that the bridge creates when it starts."""
    problems: tuple[Problem, ...]
    """Problems with which the bridge would not start, or not work."""


def survey(cluster: Cluster, config: Config) -> Survey:
    """Looks up all topics that the configuration names; UnreachableError if no broker answers in time."""
    users, new = _users(config), _new(config)
    described = cluster.describe(users)
    missing = [topic for topic, found in described.items() if is_missing(found) and topic in new]
    refused = cluster.refusals([new[topic] for topic in missing], users)
    kept = [topic for topic in (config.journal.topic, config.journal.state_topic) if topic not in missing]
    settings = cluster.settings(kept)
    unfit = [
        problem
        for topic, found in described.items()
        if topic not in missing
        for problem in _problems(config, topic, users[topic], found, settings.get(topic, {}))
    ]
    bad = {problem.topic for problem in (*refused, *unfit)}
    return Survey(
        tuple(topic for topic in described if topic not in missing and topic not in bad),
        tuple(topic for topic in missing if topic not in bad),
        (*unfit, *refused),
    )


def _users(config: Config) -> dict[str, str]:
    """Every topic to look at, with the parts of the bridge that need it.

    A topic that a source reads is left out unless the bridge creates it: the source waits for a missing topic.
    """
    own = {config.journal.topic: JOURNAL_USERS, config.journal.state_topic: STATE_USERS}
    sinks = {sink.topic: f"sink '{sink.name}'" for sink in config.sinks}
    made = {topic: users for topic, users in read(config).items() if topic in new_topics(config)}
    return made | written(config) | sinks | own | {config.letter_topic: letter_user(config)}


def _new(config: Config) -> dict[str, NewTopic]:
    """Topics that the bridge creates if they are missing, as it creates them."""
    own = {config.journal.topic: new_journal(config), config.journal.state_topic: new_state_topic(config)}
    return new_topics(config) | new_sink_topics(config) | new_letter_topic(config) | own


def _problems(
    config: Config, topic: str, users: str, found: TopicDescription | KafkaError, actual: Mapping[str, str]
) -> list[Problem]:
    if topic == config.journal.topic:
        return journal_problems(config, found, actual)
    if topic == config.journal.state_topic:
        return state_problems(config, found, actual)
    needed = [AclOperation.WRITE] if topic in written(config) or topic == config.letter_topic else []
    if any(topic == sink.topic for sink in config.sinks):
        needed.append(AclOperation.READ)
    return problems_of_access(topic, users, found, needed)
