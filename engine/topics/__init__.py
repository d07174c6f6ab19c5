"""Creation and checks of the topics that a configuration needs.

These are the journal, destinations, topics of sinks, the dead-letter topic, and the bridge's own topics. The checks run
before the bridge starts and raise one error that names each unusable topic, its users and the remedy. Errors during the
run are reported by the journal and the router.
"""

from __future__ import annotations

from engine.topics.cluster import Cluster
from engine.topics.dead_letters import ensure_audit_topic, ensure_quarantine_topic, exists, identity
from engine.topics.destinations import check_topics, create_missing, limits
from engine.topics.journal import ensure_journal, ensure_sink_topics
from engine.topics.state import ensure_state_topic
from engine.topics.survey import Survey, survey
from engine.topics.templates import resolved

__all__ = [
    "Cluster",
    "Survey",
    "check_topics",
    "create_missing",
    "ensure_audit_topic",
    "ensure_journal",
    "ensure_quarantine_topic",
    "ensure_sink_topics",
    "ensure_state_topic",
    "exists",
    "identity",
    "limits",
    "resolved",
    "survey",
]
