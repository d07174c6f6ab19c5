"""The sections of a configuration: the registry of them all, and what a description of one has to say.

A section whose settings only a part of the engine uses is described by a module of that part, which has the settings,
their keys and their checks. The registry names the module as text, and imports it when a configuration is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from routes.keys.settings import Setting, Settings

__all__ = ["SECTIONS", "Section", "check_reserved", "registered_sections"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Section:
    """Description of a section: the keys with one first segment."""

    about: str
    """Description for the page of all keys."""
    noun: str = ""
    """Word for one NAME of the section; empty: the name of the section."""
    settings: type | None = None
    """Dataclass of the section, with the whole keys; None: `routes.model` has the settings."""
    checks: tuple[Callable[[Settings], None], ...] = ()
    """Rules between keys; each adds its faults to the settings."""
    reserved: Mapping[str, tuple[str | None, str]] = field(default_factory=dict)
    """Settings that the bridge makes itself, by their keys: the one value that is allowed (None: no value), and the
    reason."""
    notes: tuple[str, ...] = ()
    """Paragraphs for the page of all keys, in Markdown, behind the table of the section."""
    listens: tuple[str, ...] = ()
    """Keys of addresses on which the bridge listens."""


SECTIONS: dict[str, Section | str] = {
    "bridge": Section(about="The bridge itself."),
    "routes": Section(
        about="Routes of messages to destinations. NAME is yours to choose. The first route that takes a message "
        "keeps it; routes are tried in the order in which their NAMEs first appear in the file. A key repeated "
        "further down changes its value, not the place of its route.",
        noun="route",
    ),
    "routing": Section(about="Settings for all routes."),
    "replies": Section(about="Replies to requests that went through the bridge: [requests.md](requests.md)."),
    "source": Section(about="Sources of messages. NAME is yours to choose; each source is a connection of its own."),
    "sink": Section(
        about="Systems other than Kafka to which messages go. NAME is yours to choose; `out.topic` names a sink by it, "
        "or by its type if there is only one sink of that type. The router writes the messages for a sink into a "
        "topic of their own, from which the sink takes them.",
    ),
    "claim-check": "engine.claims.section",
    "topologies": "engine.topologies.section",
    "schema": "engine.schemas.section",
    "kafka": "engine.kafka.section",
    "journal": Section(about="The topic that stores every message before the bridge acknowledges it to the source."),
    "router": Section(about="Settings of the router, in which Spark reads the journal and writes to the destinations."),
    "spark": "engine.spark.section",
    "http": "engine.telemetry.http_section",
    "reload": Section(
        about="Reloading of a changed configuration without a restart: "
        "[operations](operations.md#changing-the-configuration). `jms-bridge reload` and SIGHUP start it, too.",
    ),
    "tracing": "engine.tracing_section",
    "find": "engine.find.section",
    "embedded": Section(about="The brokers that come with the bridge, for a first look and for tests."),
}
"""The registry, in the order of the documentation: each first segment of keys, with the description of the section or
the module whose `SECTION` describes it."""


def registered_sections() -> Mapping[str, Section]:
    """Returns the descriptions of all sections by their names, in the order of the registry."""
    return _described(tuple(SECTIONS.items()))


@cache
def _described(registry: tuple[tuple[str, Section | str], ...]) -> Mapping[str, Section]:
    return {name: import_module(entry).SECTION if isinstance(entry, str) else entry for name, entry in registry}


def check_reserved(settings: Settings, setting: Setting, rule: tuple[str | None, str]) -> None:
    """Adds a fault to a setting that the bridge makes itself, unless its value is the allowed one; see `Section`."""
    allowed, reason = rule
    if setting.value != allowed:
        what = f"can only be '{allowed}'" if allowed else "is set by the bridge"
        settings.faults.append(setting.entry.key_fault(f"'{setting.entry.key}' {what}", reason))
