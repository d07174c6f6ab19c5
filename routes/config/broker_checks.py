"""Checks between the keys of sources and sinks, and between routes and the sinks they name."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from routes.config.fields import FIELDS
from routes.keys.addresses import KAFKA
from routes.keys.values import one_of
from routes.systems import SYSTEMS, all_systems, schemes_of, system_named
from routes.targets import KAFKAS_OWN, TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routes.keys.addresses import Destination
    from routes.keys.settings import Settings
    from routes.systems import System

__all__ = ["BROKER_CHECKS"]

_SECTIONS = ("source", "sink")


def keys_of_their_type(settings: Settings) -> None:
    """Checks that each key is one of the type of its system; another key would have no effect."""
    for section, name, system in _brokers(settings):
        for row in FIELDS.in_section(section):
            if not row.systems or system.name in row.systems:
                continue
            for setting in settings.of_row(row, name):
                message = f"'{setting.entry.key}' is for type {one_of(list(row.systems))}, not {system}"
                settings.faults.append(setting.entry.key_fault(message, "remove the line"))


def urls_of_their_type(settings: Settings) -> None:
    """Checks that the scheme of a URL fits the type."""
    for section, name, system in _brokers(settings):
        url = settings.get(f"{section}.NAME.url", name)
        own = [scheme.name for scheme in system.schemes]
        if url is not None and own and url.partition(":")[0] not in own:
            wanted = one_of([f"{scheme}://host:port" for scheme in own])
            settings.fault(f"{section}.NAME.url", name, f"'{url}' is not a URL for type {system}", f"write {wanted}")


def backups(settings: Settings) -> None:
    """Checks that the URLs of backups have the scheme of the URL beside them, which TLS settings are for."""
    for section, name, _ in _brokers(settings):
        key = f"{section}.NAME.backup-urls"
        scheme = (settings.get(f"{section}.NAME.url", name) or "").partition(":")[0]
        for each in settings.get(key, name) or ():
            if not scheme:
                hint = f"set {section}.{name}.url, the address of the broker itself"
                settings.fault(key, name, "the embedded broker has no backup", hint)
                break
            if each.partition(":")[0] != scheme:
                settings.fault(key, name, f"'{each}' is not a URL like that of the broker", f"write {scheme}://…")


def urls_without_server(settings: Settings) -> None:
    """Checks that a source or sink has a URL if the bridge starts no server of its type."""
    for section, name, system in _brokers(settings):
        given = any(settings.is_set(f"{section}.NAME.{key}", name) for key in ("url", "listen"))
        if system.schemes and system.server is None and not given:
            entry, key = settings.first_entry(section, name), f"{section}.{name}.url"
            hint = f"as in {key}={system.schemes[0].name}://host:port"
            settings.faults.append(entry.key_fault(f"{section} '{name}' has no '{key}'", hint))


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
        if not system.schemes:
            continue
        for part in ("tls.ca", "tls.certificate", "tls.key", "tls.verify", "credentials"):
            key = f"{section}.NAME.{part}"
            entry, value = settings.entry(key, name), settings.get(key, name)
            if entry is None:
                continue
            if part != "credentials" and _is_plain(settings, section, name):
                where = "listen" if settings.is_set(f"{section}.NAME.listen", name) else "url"
                hint = f"write {section}.{name}.{where}={_tls_scheme(system)}://…"
                settings.faults.append(entry.key_fault(f"'{entry.key}' has no effect without TLS", hint))
            if isinstance(value, Path) and not settings.has_file(value):
                hint = f"looked for {settings.base / value}"
                settings.faults.append(entry.fault(f"there is no file '{value}'", hint))
        key, certificate = f"{section}.NAME.tls.key", f"{section}.NAME.tls.certificate"
        if settings.is_set(key, name) and not settings.is_set(certificate, name):
            hint = f"set {section}.{name}.tls.certificate"
            settings.fault(key, name, "a private key without its certificate", hint)


def own_checks(settings: Settings) -> None:
    """Checks the rules of each system for its sources and sinks, and its own sections."""
    for section, name, system in _brokers(settings):
        system.check(settings, section, name)
    for system in all_systems():
        system.check_sections(settings)


def sinks(settings: Settings) -> None:
    """Checks names and reply destinations of sinks."""
    for name in settings.names("sink"):
        if name == KAFKA:
            entry = settings.first_entry("sink", name)
            settings.faults.append(entry.key_fault("a sink cannot be named 'kafka'", "Kafka needs no sink"))
        system, reply_to = settings.get("sink.NAME.type", name), settings.get("sink.NAME.reply-to", name)
        if system is None or system.sink is None or reply_to is None:
            continue
        if not re.fullmatch(system.addresses.pattern, reply_to):
            message = f"'{reply_to}' is not a place for replies, {system.addresses.expected.partition(',')[0]}"
            settings.fault("sink.NAME.reply-to", name, message, f"as in {system.reply_example}")
        elif not system.may_be_sent_to(reply_to):
            settings.fault("sink.NAME.reply-to", name, *_internal(reply_to, system))


def targets(settings: Settings) -> None:
    """Checks that every destination is a Kafka topic, or a valid address of exactly one sink."""
    types = {name: settings.get("sink.NAME.type", name) for name in settings.names("sink")}
    for route in settings.names("routes"):
        for target in settings.get("routes.NAME.out.topic", route) or ():
            if (fault := _target_fault(target, types)) is not None:
                settings.fault("routes.NAME.out.topic", route, *fault, offset=target.offset)


def _target_fault(target: Destination, types: dict[str, System | None]) -> tuple[str, str] | None:
    """Returns message and hint for a destination that cannot be one; None for all others."""
    if target.scheme == KAFKA:
        if str(target.address).startswith(KAFKAS_OWN):
            return f"'{target.address}' is a topic of Kafka itself", "name another topic"
        if target.address.references and not TOPIC.fullmatch(_sample(target)):
            return (
                f"'{target.address}' is not a valid Kafka topic name",
                "letters, digits, '.', '_' and '-' beside headers",
            )
        return None
    found = (
        [target.scheme] if target.scheme in types else [n for n, t in types.items() if t and t.name == target.scheme]
    )
    if len(found) != 1:
        return _which_sink(target, found, types)
    system = types[found[0]]
    if system is None or system.may_be_sent_to(_sample(target)):
        return None
    if re.fullmatch(system.addresses.pattern, _sample(target)):
        return _internal(str(target.address), system)
    return f"'{target.address}' is not a destination of type {system}", system.addresses.expected


def _internal(address: str, system: System) -> tuple[str, str]:
    """Returns message and hint for an address that the servers of a system use themselves."""
    return f"'{address}' is an address that servers of type {system} use themselves", "name one of your applications"


def _which_sink(target: Destination, sinks: list[str], types: dict[str, System | None]) -> tuple[str, str]:
    if sinks:
        named = one_of([f"{name}:{target.address}" for name in sinks])
        return f"there are {len(sinks)} sinks of type {target.scheme}", f"name one of them: {named}"
    if target.scheme in ("queue", "topic"):
        brokers = [name for name, system in types.items() if system and system.is_jms]
        named = one_of([f"{name}:{target.scheme}/{target.address}" for name in brokers or ["SINK"]])
        return f"'{target.scheme}:{target.address}' names no sink", f"write {named}"
    if target.scheme in SYSTEMS and system_named(target.scheme).sink:
        return f"there is no sink of type {target.scheme}", f"add sink.{target.scheme}.type={target.scheme}"
    near = get_close_matches(target.scheme, [*types, *SYSTEMS, KAFKA], n=1)
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
    return not settings.is_set(key, name) or (
        url is not None and not schemes_of(all_systems())[url.partition(":")[0]].is_tls
    )


def _tls_scheme(system: System) -> str:
    return next((scheme.name for scheme in system.schemes if scheme.is_tls), "")


BROKER_CHECKS = (
    keys_of_their_type,
    urls_of_their_type,
    backups,
    urls_without_server,
    login,
    tls,
    own_checks,
    sinks,
    targets,
)
