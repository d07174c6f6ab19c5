"""The topics a configuration needs: journal, destinations, those of sinks, the dead-letter topic, and the bridge's own.

What can be wrong with them is found out here, before anything runs, and told in one error that names topic, users and
remedy. What goes wrong later is the journal's and the router's to tell.
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
