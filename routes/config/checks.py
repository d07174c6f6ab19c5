"""Checks between keys: each looks at all settings, names one rule, and adds its faults."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from routes.config.broker_checks import BROKER_CHECKS
from routes.config.fields import FIELDS
from routes.config.header_checks import HEADER_CHECKS
from routes.config.mask_checks import MASK_CHECKS, taken_fields
from routes.config.name_checks import NAME_CHECKS
from routes.errors import Fault, Level
from routes.keys.addresses import KAFKA, is_unspecified
from routes.keys.secrets import has_reference
from routes.keys.table import named_of
from routes.model import Embedded, Policy, RouterMode, Unmatched
from routes.predicate.bodies import body_path
from routes.predicate.doubts import doubts, unknown_field
from routes.predicate.implication import Covers, is_never_true
from routes.predicate.nodes import Literal
from routes.section_registry import registered_sections
from routes.systems import all_systems
from routes.targets import (
    actions_topic,
    audit_topic,
    looks_topic,
    position_topic,
    quarantine_topic,
    set_aside_topic,
    state_topic,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from routes.keys.settings import Settings

__all__ = ["check"]

_MOST_NAMES = 3
_TOPIC_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_EVERYTHING = Literal(True)
"""The root of a predicate that takes all messages."""
_SHORTEST_REALTIME_INTERVAL = 5.0
_LOOPBACK = "127.0.0.1"


def check(settings: Settings) -> None:
    """Adds the faults of every check to the settings."""
    for rule in (*_CHECKS, *(rule for section in registered_sections().values() for rule in section.checks)):
        rule(settings)


def something_configured(settings: Settings) -> None:
    """Checks that there is at least one route."""
    if settings.names("routes"):
        return
    if not settings.by_key and not settings.faults:
        message, hint = (
            "nothing is configured",
            "bridge.id, a source and a route are the least; `jms-bridge config docs` lists all keys",
        )
    else:
        message, hint = "no route is configured", "as in routes.orders.in.include=msg.address==orders"
    settings.faults.append(Fault(message, hint, settings.file))


def required_keys(settings: Settings) -> None:
    """Checks that every route, every source and the bridge have the keys that they need."""
    if not settings.by_key:
        return
    for row in FIELDS.fields:
        if not row.required:
            continue
        if "NAME" not in row.key:
            if not settings.is_set(row.key):
                settings.faults.append(
                    Fault(f"'{row.key}' is missing", f"as in {row.key}={row.example}", settings.file)
                )
            continue
        for name in settings.names(row.section):
            system = settings.get(f"{row.section}.NAME.type", name) if row.systems else None
            if not settings.is_set(row.key, name) and (not row.systems or (system and system.name in row.systems)):
                key = row.key.replace("NAME", name)
                entry = settings.first_entry(row.section, name)
                hint = f"as in {key}={row.example}"
                settings.faults.append(entry.key_fault(f"{_what(row.section)} '{name}' has no '{key}'", hint))


def unique_route_names(settings: Settings) -> None:
    """Checks that route names are unique: metrics and dead letters tell routes apart by name."""
    taken: dict[str, str] = {}
    for name in settings.names("routes"):
        shown = _route_name(settings, name)
        if shown in taken:
            message = f"the route name '{shown}' is taken by routes.{taken[shown]}"
            entry = settings.entry("routes.NAME.name", name) or settings.first_entry("routes", name)
            settings.faults.append(entry.fault(message, f"give routes.{name}.name another value"))
        taken.setdefault(shown, name)


def names_of_topics(settings: Settings) -> None:
    """Checks the names of sinks, which routes and topics have, and those of other parts, which files have."""
    parts = (name for name, each in registered_sections().items() if each.settings and named_of(each.settings))
    for section in ("sink", *parts):
        for name in settings.names(section):
            if not _TOPIC_NAME.fullmatch(name):
                message, hint = (
                    f"'{name}' is not a valid name of a {_what(section)}",
                    "a-z, A-Z, 0-9, '_' and '-', 100 at most",
                )
                settings.faults.append(settings.first_entry(section, name).key_fault(message, hint))


def reachable_routes(settings: Settings) -> None:
    """Warns of routes that get no message, because earlier routes take all, the same ones, or all of them."""
    seen: dict[Any, str] = {}
    covers = Covers()
    for name in settings.names("routes"):
        include = settings.get("routes.NAME.in.include", name)
        if include is None:
            continue
        which, hint = "every one" if _EVERYTHING in seen else "the same ones", "the first route that matches wins"
        equal = seen.get(_EVERYTHING) or seen.get(include.root)
        earlier: tuple[str, ...] = (equal,) if equal else ()
        # A route with a format also takes bodies that cannot be read.
        if not earlier and not settings.is_set("routes.NAME.in.body", name):
            earlier = covers.names_of(include.root)
            which, hint = (
                "all that it could take",
                f"move it before '{earlier[0] if earlier else ''}', since the first route that matches wins",
            )
        if earlier:
            entry = settings.entry("routes.NAME.in.include", name)
            if entry is not None:
                verb = "takes" if len(earlier) == 1 else "take"
                shown = _some(earlier)
                message = f"route '{name}' never gets a message: {shown} {verb} {which} before it"
                settings.faults.append(entry.fault(message, hint, level=Level.WARNING))
        elif not settings.is_set("routes.NAME.in.exclude", name) and not settings.get("routes.NAME.in.continue", name):
            seen[include.root] = name
            covers.add(name, include.root)


def _some(names: Sequence[str]) -> str:
    """Returns the names of routes, the first ones of many."""
    more = f" and {len(names) - _MOST_NAMES} more routes" if len(names) > _MOST_NAMES else ""
    return ", ".join(f"'{name}'" for name in names[:_MOST_NAMES]) + more


def routes_that_exclude_all(settings: Settings) -> None:
    """Warns of routes whose second condition leaves out everything that the first one takes."""
    for name in settings.names("routes"):
        include, exclude = (settings.get(f"routes.NAME.in.{key}", name) for key in ("include", "exclude"))
        entry = settings.entry("routes.NAME.in.exclude", name)
        # A route with a format also takes bodies that cannot be read.
        if include is None or exclude is None or entry is None or settings.is_set("routes.NAME.in.body", name):
            continue
        if is_never_true(include.root, but=exclude.root) and not is_never_true(include.root):
            message = f"route '{name}' never gets a message: this leaves out all that its in.include takes"
            settings.faults.append(entry.fault(message, "correct one of the two conditions", level=Level.WARNING))


def routes_that_go_on(settings: Settings) -> None:
    """Warns of a last route that lets its messages go on, since there is no route for them."""
    for name in settings.names("routes")[-1:]:
        if settings.get("routes.NAME.in.continue", name) and (entry := settings.entry("routes.NAME.in.continue", name)):
            message, hint = "no route comes after this one", "move the route up, or remove the key"
            settings.faults.append(entry.fault(message, hint, level=Level.WARNING))


def dead_letter_topic_for_policy(settings: Settings) -> None:
    """Checks that there is a dead-letter topic if a policy sets messages aside."""
    if settings.is_set("routing.dead-letter-topic"):
        return
    users = [("routing.on-soft-failure", ""), ("routing.on-unmatched", "")]
    users += [("routes.NAME.on-soft-failure", name) for name in settings.names("routes")]
    for key, name in users:
        if settings.get(key, name) in (Policy.DEAD_LETTER, Unmatched.DEAD_LETTER):
            message, hint = "'dead-letter' needs a topic", "as in routing.dead-letter-topic=jms-bridge.dead-letter"
            settings.fault(key, name, message, hint)


def separate_topics(settings: Settings) -> None:
    """Checks that journal, dead letters, sinks and destinations are different topics.

    Otherwise the bridge would read its own output.
    """
    journal, dead_letters = settings.get("journal.topic"), settings.get("routing.dead-letter-topic")
    if dead_letters is None and journal is not None:
        dead_letters = set_aside_topic(journal)
    taken: dict[str, str] = {}
    if journal is not None:
        positions = {position_topic(journal): "the topic of positions in other clusters"}
        audits = {looks_topic(journal): "the audit of looks", actions_topic(journal): "the audit of actions"}
        taken = {journal: "the journal", **audits, **positions}
    if dead_letters in taken:
        message = f"'{dead_letters}' is {taken[dead_letters]}"
        settings.fault("routing.dead-letter-topic", "", message, "name another topic")
    taken.setdefault(dead_letters, "the dead-letter topic")
    if dead_letters is not None:
        beside = {
            audit_topic(dead_letters): "the audit of dead letters",
            quarantine_topic(dead_letters): "the quarantine of dead letters",
        }
        if journal in beside:
            settings.fault("routing.dead-letter-topic", "", f"'{journal}' is {beside[journal]}", "name another topic")
        taken |= beside
    state = settings.get("journal.state-topic") or (journal and state_topic(journal))
    if state is not None and state in taken:
        key = "journal.state-topic" if settings.is_set("journal.state-topic") else "routing.dead-letter-topic"
        settings.fault(key, "", f"'{state}' is {taken[state]}", "name another topic")
    taken.setdefault(state, "the topic of the bridge's own state")
    for name in settings.names("sink"):
        topic = settings.effective("sink.NAME.topic", name)
        if topic in taken:
            settings.fault("sink.NAME.topic", name, f"'{topic}' is {taken[topic]}", "name another topic")
        taken.setdefault(topic, f"the topic of sink '{name}'")
    _destinations_apart(settings, taken)


def _destinations_apart(settings: Settings, taken: Mapping[Any, str]) -> None:
    for name in settings.names("routes"):
        for target in settings.get("routes.NAME.out.topic", name) or ():
            if target.scheme == KAFKA and str(target.address) in taken:
                message = f"'{target.address}' is {taken[str(target.address)]}"
                settings.fault("routes.NAME.out.topic", name, message, "name another topic", offset=target.offset)


def sources_configured(settings: Settings) -> None:
    """Warns of a configuration without a source, which routes only messages in the journal and is rarely meant."""
    if settings.names("routes") and not settings.names("source"):
        message, hint = "no source is configured", "only messages already in the journal are routed"
        settings.faults.append(Fault(message, hint, settings.file, level=Level.WARNING))


def realtime_interval(settings: Settings) -> None:
    """Checks the interval of the real-time mode: Spark refuses one shorter than five seconds."""
    interval, mode = settings.get("router.interval"), settings.get("router.mode")
    if interval is not None and mode is RouterMode.REALTIME and interval < _SHORTEST_REALTIME_INTERVAL:
        message = "in real-time mode the interval is 5s or more"
        settings.fault(
            "router.interval", "", message, "it does not delay messages; a longer one costs time after a crash"
        )


def brokers_named_or_embedded(settings: Settings) -> None:
    """Checks that each broker is either named or embedded, and not both."""
    mode = settings.get("embedded")
    kafka = settings.is_set("kafka.bootstrap.servers")
    if mode is Embedded.ON and kafka:
        settings.fault(
            "embedded",
            "",
            "'on' starts a Kafka beside kafka.bootstrap.servers",
            "write auto, or remove kafka.bootstrap.servers",
        )
    if mode is not Embedded.OFF:
        return
    if not kafka:
        settings.fault("embedded", "", "'off' leaves no Kafka", "set kafka.bootstrap.servers")
    for section in ("source", "sink"):
        for name in settings.names(section):
            system = settings.get(f"{section}.NAME.type", name)
            place, key = system.place if system else ("broker", "url")
            listens = settings.is_set(f"{section}.NAME.listen", name)
            if key and not listens and not settings.is_set(f"{section}.NAME.{key}", name):
                message = f"'off' leaves no {place} for {section} '{name}'"
                settings.fault("embedded", "", message, f"set {section}.{name}.{key}")


def distinct_ports(settings: Settings) -> None:
    """Checks that the pages, the listeners and the embedded brokers have different ports."""
    taken: list[_Port] = []
    for port in _ports(settings):
        if other := next(filter(port.clashes, taken), None):
            late, early = (port, other) if settings.is_set(port.key, port.name) else (other, port)
            message = f"port {port.number} is also the one of '{early.setting}'"
            settings.fault(late.key, late.name, message, "choose another")
        taken.append(port)


class _Port(NamedTuple):
    """Port that the bridge listens on, with the key that sets it."""

    key: str
    name: str
    """NAME in the key; empty if it has none."""
    host: str
    number: int

    @property
    def setting(self) -> str:
        """The key as the file has it."""
        return self.key.replace("NAME", self.name)

    def clashes(self, other: _Port) -> bool:
        """Returns True if no two programs can listen on both; port 0 is any free port."""
        hosts = {_LOOPBACK if host == "localhost" else host for host in (self.host, other.host)}
        return 0 != self.number == other.number and (len(hosts) == 1 or any(map(is_unspecified, hosts)))


def _ports(settings: Settings) -> Iterator[_Port]:
    """Yields the ports of pages, listeners and embedded brokers, except those of brokers that do not start."""
    for key in (key for section in registered_sections().values() for key in section.listens):
        if address := settings.get(key):
            yield _Port(key, "", *address)
    embedded = set() if settings.is_set("kafka.bootstrap.servers") else {"embedded.kafka.port"}
    for section in ("source", "sink"):
        for name in settings.names(section):
            if listen := settings.get(f"{section}.NAME.listen", name):
                url = urlsplit(listen)
                yield _Port(f"{section}.NAME.listen", name, url.hostname or "", url.port or 0)
            elif not settings.is_set(f"{section}.NAME.url", name):
                system = settings.get(f"{section}.NAME.type", name)
                embedded.update(system.server.port_keys if system and system.server else ())
    if settings.get("embedded") is Embedded.OFF:
        return
    servers = (system.server for system in all_systems() if system.server)
    for key in dict.fromkeys(("embedded.kafka.port", *(key for server in servers for key in server.port_keys))):
        if (key in embedded or settings.is_set(key)) and (number := settings.get(key)) is not None:
            yield _Port(key, "", _LOOPBACK, number)


def _route_name(settings: Settings, name: str) -> str:
    return settings.get("routes.NAME.name", name) or name


def _what(section: str) -> str:
    described = registered_sections().get(section)
    return (described and described.noun) or section


def doubtful_predicates(settings: Settings) -> None:
    """Warns of predicates, or parts of them, that are true for no message."""
    for name in settings.names("routes"):
        for key in ("routes.NAME.in.include", "routes.NAME.in.exclude"):
            entry, predicate = settings.entry(key, name), settings.get(key, name)
            if entry is None or predicate is None:
                continue
            for doubt in doubts(predicate):
                # The content of a reference must not be shown.
                if not has_reference(predicate.source(doubt.node)):
                    offset, _ = predicate.span(doubt.node)
                    settings.faults.append(entry.fault(doubt.message, doubt.hint, offset, Level.WARNING))


def unknown_fields(settings: Settings) -> None:
    """Warns of keys and destinations that are made of a field which no message has."""
    for name in settings.names("routes"):
        for key, field in taken_fields(settings, name):
            entry, told = settings.entry(key, name), None if body_path(field) else unknown_field(field)
            if entry is not None and told and (offset := entry.value.find(field)) >= 0:
                settings.faults.append(entry.move(Fault(*told, level=Level.WARNING), offset))


_CHECKS = (
    something_configured,
    required_keys,
    names_of_topics,
    unique_route_names,
    reachable_routes,
    routes_that_exclude_all,
    routes_that_go_on,
    dead_letter_topic_for_policy,
    separate_topics,
    sources_configured,
    realtime_interval,
    brokers_named_or_embedded,
    distinct_ports,
    doubtful_predicates,
    unknown_fields,
    *HEADER_CHECKS,
    *MASK_CHECKS,
    *NAME_CHECKS,
    *BROKER_CHECKS,
)
