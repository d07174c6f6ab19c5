"""The field table: every key of `jms-bridge.properties`. Parsing, lint, help and docs/configuration.md use it.

Rows are made of the keys that the fields of the settings declare: in `routes.sections`, `routes.model`,
`routes.systems` and each system's folder.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from routes.keys.table import KeyTable, rows_of
from routes.model import Config, Route, TopologyConfig
from routes.systems import SinkConfig, SourceConfig, all_systems

if TYPE_CHECKING:
    from routes.keys.table import Field
    from routes.systems import System

__all__ = ["FIELDS", "sections"]

_SECTIONS = {
    "bridge": "The bridge itself.",
    "routes": "Routes of messages to destinations. NAME is yours to choose. The first route that takes a message "
    "keeps it; routes are tried in the order in which their NAMEs first appear in the file. A key repeated "
    "further down changes its value, not the place of its route.",
    "routing": "Settings for all routes.",
    "replies": "Replies to requests that went through the bridge: [requests.md](requests.md).",
    "source": "Sources of messages. NAME is yours to choose; each source is a connection of its own.",
    "sink": "Systems other than Kafka to which messages go. NAME is yours to choose; `out.topic` names a sink by it, "
    "or by its type if there is only one sink of that type. The router writes the messages for a sink into a "
    "topic of their own, from which the sink takes them.",
    "topologies": "[Topologies](streams.md) that run as parts of the bridge, each in a process of its own. NAME is "
    "yours to choose.",
    "schema": "The registry that keeps the schemas of [Avro and Protobuf values](streams.md#avro-and-protobuf) in "
    "topologies.",
    "kafka": "Settings of the Kafka clients, by the names of Kafka's own (Java) clients. Settings that librdkafka, "
    "the bridge's other client, names differently are translated for it; settings that it does not have are "
    "left out there. A value that one of the two refuses is a fault.",
    "journal": "The topic that stores every message before the bridge acknowledges it to the source.",
    "router": "Settings of the router, in which Spark reads the journal and writes to the destinations.",
    "spark": "Settings of the Spark session.",
    "http": "The [status page](status-page.md), metrics and health. `/health` is open to everybody, so that probes "
    "need no login, and says only that the "
    "bridge is alive, whether it leads and how many dead letters are open; with a login configured all other pages ask "
    "for it.",
    "reload": "Reloading of a changed configuration without a restart: "
    "[operations](operations.md#changing-the-configuration). `jms-bridge reload` and SIGHUP start it, too.",
    "tracing": "The traces of OpenTelemetry that messages belong to: [tracing.md](tracing.md).",
    "embedded": "The brokers that come with the bridge, for a first look and for tests.",
}
"""The first segments of keys in the order of the documentation, each with a description; those of systems come behind
the sinks."""
_AFTER = "sink"


def sections() -> dict[str, str]:
    """Returns the first segments of keys in the order of the documentation, each with a description."""
    found: dict[str, str] = {}
    for section, text in _SECTIONS.items():
        found[section] = text
        if section == _AFTER:
            found |= {each.name: each.about for system in all_systems() for each in system.sections}
    return found


def _rows() -> tuple[Field, ...]:
    return _rows_of(all_systems())


@cache
def _rows_of(systems: tuple[System, ...]) -> tuple[Field, ...]:
    order = list(sections())
    rows = (
        *rows_of("", Config),
        *rows_of("routes.NAME.", Route),
        *rows_of("source.NAME.", SourceConfig, systems=[(each.source, each.name) for each in systems if each.source]),
        *rows_of("sink.NAME.", SinkConfig, systems=[(each.sink, each.name) for each in systems if each.sink]),
        *rows_of("topologies.NAME.", TopologyConfig),
        *(row for system in systems for each in system.sections for row in rows_of(f"{each.name}.NAME.", each.kind)),
    )
    return tuple(sorted(rows, key=lambda row: order.index(row.section)))


FIELDS = KeyTable(_rows)
