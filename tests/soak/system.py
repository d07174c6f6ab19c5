"""The bridge of the chaos suite, set up for millions of messages: most from topic to topic, some through everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.chaos.ledger import DEAD, SOURCES
from tests.chaos.outputs import JOURNAL
from tests.chaos.system import System

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SHARES", "bound_topics", "make"]

SHARES = {"kafka": 0.8, "nats": 0.075, "stomp": 0.05, "amqp": 0.05, "dropbox": 0.025}
"""Of all messages, by source."""

# Messages of the Kafka source go to its topic, and files to files; `numbers.is_for_topic` says the same.
_MORE = "".join(
    [f"routes.from-{source}.in.include=from = '{source}'\n" for source in SOURCES]
    + [f"routes.to-{to}.in.include=to = '{to}' AND from <> 'kafka'\n" for to in ("stomp", "amqp", "nats")]
    + ["routes.to-nowhere.in.include=to = 'dead' AND from <> 'kafka'\n"]
    + ["routes.to-dropbox.in.include=to = 'dropbox' AND from = 'dropbox'\n"]
)
_STREAM_MESSAGES = 200_000
_TOPIC_BYTES = 1_500_000_000
"""Of each partition: some minutes of them, longer than the bridge is ever behind."""
_SEGMENT_BYTES = 100_000_000


def make(folder: Path, mode: str) -> System:
    """Not started."""
    return System(folder, mode, _MORE, stream_messages=_STREAM_MESSAGES)


def bound_topics(bootstrap: str) -> None:
    """So that the disk does not fill; for topics that exist."""
    limits = {"retention.bytes": _TOPIC_BYTES, "segment.bytes": _SEGMENT_BYTES}
    entries = [
        ConfigEntry(name, str(value), incremental_operation=AlterConfigOpType.SET) for name, value in limits.items()
    ]
    topics = [JOURNAL, f"chaos.{DEAD}", "chaos.in", *(f"chaos.{source}" for source in SOURCES)]
    resources = [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries) for topic in topics]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.incremental_alter_configs(resources).values():
        done.result(30)
