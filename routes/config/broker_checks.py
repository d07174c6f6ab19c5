"""Checks between the keys of sources and sinks, and between routes and the sinks they name."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from routes.config.addresses import KAFKA
from routes.config.fields import FIELDS
from routes.config.listener_checks import ANY, listeners
from routes.config.selectors import doubtful_selectors
from routes.config.values import one_of
from routes.model import WireFormat
from routes.targets import (
    ADDRESSES,
    JMS,
    KAFKAS_OWN,
    TOPIC,
    System,
    audit_topic,
    may_be_sent_to,
    quarantine_topic,
    set_aside_topic,
    sink_topic,
    state_topic,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routes.config.addresses import Destination
    from routes.config.binding import Settings

__all__ = ["BROKER_CHECKS"]

_SECTIONS = ("source", "sink")
_SCHEMES = {System.STOMP: ("stomp", "stomp+ssl"), System.AMQP: ("amqp", "amqps"), System.NATS: ("nats", "tls")}
_TLS = ("stomp+ssl", "amqps", "tls")
_SUBJECT = re.compile(r"(?:[^\x00-\x20\x7f.*>]+|\*)(?:\.(?:[^\x00-\x20\x7f.*>]+|\*))*(?:\.>)?|>")


def keys_of_their_type(settings: Settings) -> None:
    """Checks that each key is one of the type of its system; another key would have no effect."""
    for section, name, system in _brokers(settings):
        for row in FIELDS.in_section(section):
            entry = settings.entry(row.key, name)
            if entry is not None and row.systems and system not in row.systems:
                message = f"'{entry.key}' is for type {one_of([s.value for s in row.systems])}, not {system}"
                settings.faults.append(entry.key_fault(message, "remove the line"))


def urls_of_their_type(settings: Settings) -> None:
    """Checks that the scheme of a URL fits the type."""
    for section, name, system in _brokers(settings):
        url = settings.get(f"{section}.NAME.url", name)
        if url is not None and system in _SCHEMES and url.partition(":")[0] not in _SCHEMES[system]:
            wanted = one_of([f"{scheme}://host:port" for scheme in _SCHEMES[system]])
            settings.fault(f"{section}.NAME.url", name, f"'{url}' is no URL for type {system}", f"write {wanted}")


def login(settings: Settings) -> None:
    """Checks that a password has a user name, and that there is at most one way to log in."""
    for section, name, _ in _brokers(settings):
        given = [way for way in ("username", "token", "credentials") if settings.is_set(f"{section}.NAME.{way}", name)]
        if settings.is_set(f"{section}.NAME.password", name) and "username" not in given:
            hint = f"set {section}.{name}.username"
            settings.fault(f"{section}.NAME.password", name, "a password without a user name", hint)
        if len(given) > 1:
            message = f"{section} '{name}' has {len(given)} ways to log in"
            settings.fault(f"{section}.NAME.{given[1]}", name, message, f"keep one of {one_of(given)}")


def tls(settings: Settings) -> None:
    """Checks that TLS settings are for TLS URLs and name existing files, and that a private key has its certificate."""
    for section, name, system in _brokers(settings):
        if system not in _SCHEMES:
            continue
        for part in ("tls.ca", "tls.certificate", "tls.key", "tls.verify", "credentials"):
            key = f"{section}.NAME.{part}"
            entry, value = settings.entry(key, name), settings.get(key, name)
            if entry is None:
                continue
            if part != "credentials" and _is_plain(settings, section, name):
                where = "listen" if settings.is_set(f"{section}.NAME.listen", name) else "url"
                hint = f"write {section}.{name}.{where}={_tls_scheme(settings, section, name)}://…"
                settings.faults.append(entry.key_fault(f"'{entry.key}' has no effect without TLS", hint))
            if isinstance(value, Path) and not settings.has_file(value):
                hint = f"looked for {settings.base / value}"
                settings.faults.append(entry.fault(f"there is no file '{value}'", hint))
        key, certificate = f"{section}.NAME.tls.key", f"{section}.NAME.tls.certificate"
        if settings.is_set(key, name) and not settings.is_set(certificate, name):
            hint = f"set {section}.{name}.tls.certificate"
            settings.fault(key, name, "a private key without its certificate", hint)


def destinations(settings: Settings) -> None:
    """Checks that the destinations of a source are written as its system writes them."""
    for name in settings.names("source"):
        system = settings.get("source.NAME.type", name)
        entry = settings.entry("source.NAME.destinations", name)
        for destination in settings.get("source.NAME.destinations", name) or ():
            is_any = destination == ANY and settings.is_set("source.NAME.listen", name)
            if system in JMS and not is_any and not re.fullmatch(r"(?:queue|topic):\s*\S.*", destination):
                meant = destination.rpartition(":")[2].strip() or "orders"
                message, hint = f"'{destination}' is not a destination", f"write queue:{meant} or topic:{meant}"
            elif system is System.NATS and not _SUBJECT.fullmatch(destination):
                message = f"'{destination}' is not a subject"
                hint = "words between dots, `*` for any one word, a last `>` for any that follow: orders.*.eu, prices.>"
            elif system is System.KAFKA and (fault := _no_topics(settings, destination)):
                message, hint = fault
            else:
                continue
            if entry is not None:
                settings.faults.append(entry.fault(message, hint, max(entry.value.find(destination), 0)))


def _no_topics(settings: Settings, pattern: str) -> tuple[str, str] | None:
    """Returns message and hint for a faulty regular expression of topics; None if it is right."""
    try:
        re.compile(pattern)
    except re.error as error:
        return (
            f"'{pattern}' is no regular expression: {error}",
            "as in orders, or orders\\\\..*: commas separate several",
        )
    sinks = [settings.get("sink.NAME.topic", name) or sink_topic(name) for name in settings.names("sink")]
    journal = settings.get("journal.topic")
    state = settings.get("journal.state-topic") or state_topic(journal)
    dead_letters = settings.get("routing.dead-letter-topic") or set_aside_topic(journal)
    if pattern in (journal, state, dead_letters, audit_topic(dead_letters), quarantine_topic(dead_letters), *sinks):
        return f"'{pattern}' is a topic of the bridge itself", "take messages from topics that others write"
    return None


def durable_subscriptions(settings: Settings) -> None:
    """Checks that a durable subscription is one of topics."""
    for name in settings.names("source"):
        listed = settings.get("source.NAME.destinations", name)
        if listed is None or not settings.is_set("source.NAME.subscription", name):
            continue
        if not any(destination.startswith("topic:") for destination in listed):
            hint = f"source.{name}.destinations has queues only, which keep their messages anyway"
            settings.fault("source.NAME.subscription", name, "a durable subscription of no topic", hint)


def sinks(settings: Settings) -> None:
    """Checks names, types, formats and reply destinations of sinks."""
    for name in settings.names("sink"):
        if name == KAFKA:
            entry = settings.first_entry("sink", name)
            settings.faults.append(entry.key_fault("a sink cannot be named 'kafka'", "Kafka needs no sink"))
        if settings.get("sink.NAME.format", name) is WireFormat.AUTO:
            hint = "write headers, json, typed, typed-1.0 or raw"
            settings.fault("sink.NAME.format", name, "'auto' is for sources", hint)
        system, reply_to = settings.get("sink.NAME.type", name), settings.get("sink.NAME.reply-to", name)
        if system is System.KAFKA:
            hint = f"remove sink '{name}'; a route names a topic, as in routes.NAME.out.topic=orders"
            settings.fault("sink.NAME.type", name, "Kafka needs no sink", hint)
            continue
        if system is not None and reply_to is not None and not re.fullmatch(ADDRESSES[system].pattern, reply_to):
            hint = "as in bridge.replies" if system is System.NATS else "as in queue:bridge.replies"
            message = f"'{reply_to}' is no place for replies, {ADDRESSES[system].expected.partition(',')[0]}"
            settings.fault("sink.NAME.reply-to", name, message, hint)
        elif system is not None and reply_to is not None and not may_be_sent_to(system, reply_to):
            settings.fault("sink.NAME.reply-to", name, *_internal(reply_to, system))


def targets(settings: Settings) -> None:
    """Checks that every destination is a Kafka topic, or a valid address of exactly one sink."""
    types = {name: settings.get("sink.NAME.type", name) for name in settings.names("sink")}
    for route in settings.names("routes"):
        target = settings.get("routes.NAME.out.topic", route)
        if target is None:
            continue
        if target.scheme == KAFKA:
            if str(target.address).startswith(KAFKAS_OWN):
                message = f"'{target.address}' is a topic of Kafka itself"
                settings.fault("routes.NAME.out.topic", route, message, "name another topic")
            elif target.address.references and not TOPIC.fullmatch(_sample(target)):
                message, hint = (
                    f"'{target.address}' is no Kafka topic",
                    "letters, digits, '.', '_' and '-' beside headers",
                )
                settings.fault("routes.NAME.out.topic", route, message, hint)
            continue
        found = [target.scheme] if target.scheme in types else [n for n, t in types.items() if t == target.scheme]
        if len(found) != 1:
            message, hint = _which_sink(target, found, types)
        elif (system := types[found[0]]) is None or may_be_sent_to(system, _sample(target)):
            continue
        elif re.fullmatch(ADDRESSES[system].pattern, _sample(target)):
            message, hint = _internal(str(target.address), system)
        else:
            message, hint = f"'{target.address}' is no destination of type {system}", ADDRESSES[system].expected
        settings.fault("routes.NAME.out.topic", route, message, hint)


def _internal(address: str, system: System) -> tuple[str, str]:
    """Returns message and hint for an address that the servers of a system use themselves."""
    return f"'{address}' is an address that servers of type {system} use themselves", "name one of your applications"


def _which_sink(target: Destination, found: list[str], types: dict[str, System | None]) -> tuple[str, str]:
    if found:
        named = one_of([f"{name}:{target.address}" for name in found])
        return f"there are {len(found)} sinks of type {target.scheme}", f"name one of them: {named}"
    if target.scheme in ADDRESSES:
        return f"there is no sink of type {target.scheme}", f"add sink.{target.scheme}.type={target.scheme}"
    near = get_close_matches(target.scheme, [*types, *list(System), KAFKA], n=1)
    hint = f"did you mean {near[0]}:{target.address}?" if near else "as in kafka:orders, or SINK:ADDRESS"
    return f"'{target.scheme}' is neither kafka nor a sink", hint


def _sample(target: Destination) -> str:
    """Returns an example of the address for a message.

    An address that begins with a header may begin like any address.
    """
    if not isinstance(target.address.parts[0], str) and target.scheme != KAFKA:
        return "queue:x"
    return target.address.fill(lambda _: "x") or ""


def _brokers(settings: Settings) -> Iterator[tuple[str, str, System]]:
    """Yields section, NAME and type of each source and sink whose type is known."""
    for section in _SECTIONS:
        for name in settings.names(section):
            system = settings.get(f"{section}.NAME.type", name)
            if system is not None:
                yield section, name, system


def _is_plain(settings: Settings, section: str, name: str) -> bool:
    """Returns True if a connection is without TLS.

    A URL with a fault in it counts as with TLS, to avoid a second fault.
    """
    key = f"{section}.NAME.{'listen' if settings.is_set(f'{section}.NAME.listen', name) else 'url'}"
    url = settings.get(key, name)
    return not settings.is_set(key, name) or (url is not None and url.partition(":")[0] not in _TLS)


def _tls_scheme(settings: Settings, section: str, name: str) -> str:
    return _SCHEMES[settings.get(f"{section}.NAME.type", name)][1]


BROKER_CHECKS = (
    keys_of_their_type,
    urls_of_their_type,
    login,
    tls,
    destinations,
    durable_subscriptions,
    doubtful_selectors,
    listeners,
    sinks,
    targets,
)
