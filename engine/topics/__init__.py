"""The topics a configuration needs: the journal, the destinations, those of sinks, the dead-letter topic.

What can be wrong with them is found out here, before anything runs, and told in one error that names topic, users and
remedy. What goes wrong later is the journal's and the router's to tell.
"""

from __future__ import annotations

from engine.topics.destinations import check_topics, create_missing, limits
from engine.topics.journal import ensure_journal, ensure_sink_topics
from engine.topics.templates import resolved

__all__ = ["check_topics", "create_missing", "ensure_journal", "ensure_sink_topics", "limits", "resolved"]
