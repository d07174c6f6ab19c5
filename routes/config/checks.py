"""Checks between keys: each looks at all settings, names one rule, and adds its faults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from routes.config.broker_checks import BROKER_CHECKS
from routes.config.fields import FIELDS
from routes.config.kafka import KAFKA_CHECKS, check_reserved
from routes.errors import Fault, Level
from routes.file_systems import unfit_place
from routes.keys.addresses import KAFKA, is_loopback, is_unspecified
from routes.keys.secrets import has_reference
from routes.keys.values import scheme_of
from routes.model import Embedded, Policy, RouterMode, Unmatched
from routes.predicate.doubts import doubts, unknown_field
from routes.predicate.nodes import Literal
from routes.spark_master import is_cluster, kibibytes, master_hosts, too_few_slots, unfit_master
from routes.systems import all_systems
from routes.targets import audit_topic, quarantine_topic, set_aside_topic, state_topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routes.keys.settings import Settings

__all__ = ["RESERVED_SPARK", "check"]

RESERVED_SPARK: Mapping[str, tuple[str | None, str]] = {
    "spark.sql.streaming.checkpointLocation": (None, "set router.checkpoint instead"),
    "spark.sql.ansi.enabled": ("true", "predicates rely on it"),
    "spark.speculation": ("false", "a task that runs twice publishes twice"),
    "spark.task.maxFailures": ("1", "a task that runs twice publishes twice"),
    "spark.dynamicAllocation.enabled": ("false", "real-time mode needs all its executors at once"),
}
"""Settings of Spark that the bridge makes itself, in the form of `RESERVED`."""

_TOPIC_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_HEAP = re.compile(r"[0-9]{1,12}[kmgt]", re.IGNORECASE)
_LEAST_HEAP_KIB = 450 << 10
"""Least heap: half as much again as the 300 MiB that Spark keeps for itself (`UnifiedMemoryManager`)."""
_EVERYTHING = Literal(True)
"""The root of a predicate that takes all messages."""
_SHORTEST_REALTIME_INTERVAL = 5.0
_LOOPBACK = "127.0.0.1"
_CLOSED = "or http.insecure=true where the network is closed to others"
_LOGIN = (
    "set http.token, or http.username and http.password; for probes and Prometheus alone there is http.metrics-address"
)


def check(settings: Settings) -> None:
    """Adds the faults of every check to the settings."""
    for rule in _CHECKS:
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
    """Checks the names of sinks, which routes and topics have, and of topologies, which files have."""
    for section in ("sink", "topologies"):
        for name in settings.names(section):
            if not _TOPIC_NAME.fullmatch(name):
                message, hint = (
                    f"'{name}' is not a valid name of a {_what(section)}",
                    "a-z, A-Z, 0-9, '_' and '-', 100 at most",
                )
                settings.faults.append(settings.first_entry(section, name).key_fault(message, hint))


def reachable_routes(settings: Settings) -> None:
    """Warns of routes that get no message, because an earlier route takes all, or the same ones."""
    seen: dict[Any, str] = {}
    for name in settings.names("routes"):
        include = settings.get("routes.NAME.in.include", name)
        if include is None:
            continue
        if earlier := seen.get(_EVERYTHING) or seen.get(include.root):
            entry = settings.entry("routes.NAME.in.include", name)
            if entry is not None:
                which = "every one" if _EVERYTHING in seen else "the same ones"
                message = f"route '{name}' never gets a message: '{earlier}' takes {which} before it"
                hint = "the first route that matches wins"
                settings.faults.append(entry.fault(message, hint, level=Level.WARNING))
        elif not settings.is_set("routes.NAME.in.exclude", name):
            seen[include.root] = name


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
    if journal is not None and journal == dead_letters:
        settings.fault("routing.dead-letter-topic", "", f"'{journal}' is the journal", "name another topic")
    taken = {journal: "the journal", dead_letters: "the dead-letter topic"}
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
    for name in settings.names("routes"):
        target = settings.get("routes.NAME.out.topic", name)
        if target is not None and target.scheme == KAFKA and str(target.address) in taken:
            message = f"'{target.address}' is {taken[str(target.address)]}"
            settings.fault("routes.NAME.out.topic", name, message, "name another topic")


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
    for key in ("http.address", "http.metrics-address"):
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


def traces_that_hold_together(settings: Settings) -> None:
    """Checks that traces are propagated if spans are sent.

    Spans of sources and sinks find each other by the headers on the records between them.
    """
    if settings.is_set("tracing.endpoint") and settings.get("tracing.propagate") is False:
        message = "'false' tears the spans of sources and sinks apart"
        settings.fault("tracing.propagate", "", message, "remove it, or tracing.endpoint")


def _route_name(settings: Settings, name: str) -> str:
    return settings.get("routes.NAME.name", name) or name


def _what(section: str) -> str:
    return {"routes": "route", "topologies": "topology"}.get(section, section)


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
        for key, field in _fields(settings, name):
            entry, told = settings.entry(key, name), unknown_field(field)
            if entry is not None and told and (offset := entry.value.find(field)) >= 0:
                settings.faults.append(entry.move(Fault(*told, level=Level.WARNING), offset))


def _fields(settings: Settings, name: str) -> Iterator[tuple[str, str]]:
    """Yields the fields that a route takes from a message besides its predicates, each after the key that names it."""
    if found := settings.get("routes.NAME.conv.key", name):
        yield "routes.NAME.conv.key", found
    if target := settings.get("routes.NAME.out.topic", name):
        for reference in target.address.references:
            yield "routes.NAME.out.topic", reference.name


def reserved_spark_settings(settings: Settings) -> None:
    """Checks that settings of Spark which the bridge makes itself have only the value that it would give them."""
    for setting in settings.open("spark.*"):
        if setting.entry.key in RESERVED_SPARK:
            check_reserved(settings, setting, RESERVED_SPARK[setting.entry.key])


def driver_memory(settings: Settings) -> None:
    """Checks the size of the heap, which goes to the JVM as it is written; the JVM takes one letter for a unit."""
    entry, memory = settings.entry("spark.*", "driver.memory"), settings.get("spark.*", "driver.memory")
    if entry is None or memory is None:
        return
    size = kibibytes(memory) if _HEAP.fullmatch(memory) else None
    if size is None:
        settings.faults.append(entry.fault(f"'{memory}' is not the size of a heap", "as in 512m, 2g"))
    elif size < _LEAST_HEAP_KIB:
        settings.faults.append(entry.fault(f"Spark does not start with a heap of '{memory}'", "450m is the least"))


def spark_master(settings: Settings) -> None:
    """Checks that the master, or the cluster by its settings, has a task slot for each journal partition."""
    entry, given = settings.entry("spark.*", "master"), settings.get("spark.*", "master")
    partitions = settings.get("journal.partitions")
    # The number of processors depends on the machine, which need not be the one that checks.
    if entry is None or given in (None, "local[*]") or partitions is None:
        return
    if unfit := unfit_master(given, partitions):
        settings.faults.append(entry.fault(*unfit))
    elif is_cluster(given) and settings.get("router.mode") is not RouterMode.BATCH:
        entries = {setting.entry.key: setting.entry for setting in settings.open("spark.*")}
        if few := too_few_slots(given, {key: each.value for key, each in entries.items()}, partitions):
            setting, message, hint = few
            settings.faults.append(entries.get(setting, entry).fault(message, hint))


def file_systems(settings: Settings) -> None:
    """Checks that Hadoop has the file system of each folder that is named by a URI."""
    spark = {setting.entry.key: setting.entry.value for setting in settings.open("spark.*")}
    for key in ("router.checkpoint", "topologies.state"):
        scheme = scheme_of(settings.get(key))
        if scheme is not None and (unfit := unfit_place(scheme, spark)):
            settings.fault(key, "", *unfit)


def spark_secret(settings: Settings) -> None:
    """Warns of a standalone cluster on a network, whose processes do not identify each other.

    Who reaches the driver's port could run code in it.
    """
    entry, given = settings.entry("spark.*", "master"), settings.get("spark.*", "master")
    hosts = master_hosts(given) if given else []
    if entry is None or all(is_loopback(host) for host, _ in hosts):
        return
    if not settings.is_set("spark.*", "authenticate.secret"):
        message = "Spark's processes do not identify each other"
        hint = "set spark.authenticate.secret=${env:NAME}, and the same secret in the cluster"
        settings.faults.append(entry.fault(message, hint, level=Level.WARNING))


def http_login(settings: Settings) -> None:
    """Checks that user name and password are both set, and that the name has no colon.

    A colon ends the name on the wire (RFC 7617).
    """
    name, password = "http.username", "http.password"
    if settings.is_set(name) and not settings.is_set(password):
        settings.fault(name, "", "a user name without a password", "set http.password")
    if settings.is_set(password) and not settings.is_set(name):
        settings.fault(password, "", "a password without a user name", "set http.username")
    if ":" in (settings.get(name) or ""):
        settings.fault(name, "", "a user name with a colon", "choose one without")


def registry_login(settings: Settings) -> None:
    """Checks that there is one way to log in to the schema registry, and an address for it."""
    registry = "schema.registry"
    name, password, token = (f"{registry}.{part}" for part in ("username", "password", "token"))
    for key, other in ((name, password), (password, name)):
        if settings.is_set(key) and not settings.is_set(other):
            settings.fault(key, "", f"a login without {other}", f"set {other}")
    if settings.is_set(token) and settings.is_set(name):
        settings.fault(token, "", "two ways to log in", f"keep {name} or {token}")
    if ":" in (settings.get(name) or ""):
        settings.fault(name, "", "a user name with a colon", "choose one without")
    for key in (name, token, f"{registry}.tls.ca", f"{registry}.tls.certificate"):
        if settings.is_set(key) and not settings.is_set(f"{registry}.url"):
            settings.fault(key, "", f"'{key}' has no effect without a registry", f"set {registry}.url")


def registry_tls(settings: Settings) -> None:
    """Checks that the files for the schema registry exist, and that certificate and private key are both set."""
    tls = "schema.registry.tls"
    for part in ("ca", "certificate", "key"):
        key, path = f"{tls}.{part}", settings.get(f"{tls}.{part}")
        if path is not None and not settings.has_file(path):
            settings.fault(key, "", f"there is no file '{path}'", f"looked for {settings.base / path}")
    for part, other in (("certificate", "key"), ("key", "certificate")):
        if settings.is_set(f"{tls}.{part}") and not settings.is_set(f"{tls}.{other}"):
            settings.fault(f"{tls}.{part}", "", f"a {part} without a {other}", f"set {tls}.{other}")


def http_tls(settings: Settings) -> None:
    """Checks that certificate and private key are both set and exist."""
    for part, other in (("certificate", "key"), ("key", "certificate")):
        key, path = f"http.tls.{part}", settings.get(f"http.tls.{part}")
        if settings.is_set(key) and not settings.is_set(f"http.tls.{other}"):
            what = "its private key" if other == "key" else "its certificate"
            settings.fault(key, "", f"a {part.replace('key', 'private key')} without {what}", f"set http.tls.{other}")
        if path is not None and not settings.has_file(path):
            settings.fault(key, "", f"there is no file '{path}'", f"looked for {settings.base / path}")


def http_reach(settings: Settings) -> None:
    """Checks that pages which other machines can reach have a login, and TLS unless their network is closed.

    `http.insecure` declares that it is.
    """
    address, metrics = settings.get("http.address"), settings.get("http.metrics-address")
    is_closed = settings.get("http.insecure")
    if address is not None and not is_loopback(address[0]):
        if not (settings.is_set("http.token") or settings.is_set("http.username")):
            message = "other machines can reach this address, and nobody has to log in"
            settings.fault("http.address", "", message, _LOGIN)
        if not settings.is_set("http.tls.certificate") and not is_closed:
            message = "other machines can reach this address, and there is no TLS"
            settings.fault("http.address", "", message, f"set http.tls.certificate and http.tls.key; {_CLOSED}")
    if metrics is None:
        return
    if not is_loopback(metrics[0]) and not is_closed:
        message = "other machines can reach this address, which has no login and no TLS"
        settings.fault("http.metrics-address", "", message, f"choose one of this machine; {_CLOSED}")


def http_peers(settings: Settings) -> None:
    """Checks that peers are other hosts, and that they get the login over TLS unless the network is closed."""
    peers = settings.get("http.peers") or ()
    if peers and all(peer == settings.get("http.address") for peer in peers):
        message = f"'{peers[0]}' is the address of this bridge itself"
        settings.fault("http.peers", "", message, "name the other hosts, or remove the key")
    has_login = settings.is_set("http.token") or settings.is_set("http.username")
    is_private = settings.is_set("http.tls.certificate") or settings.get("http.insecure")
    if has_login and not is_private and not all(is_loopback(peer.host) for peer in peers):
        message = "other machines are sent the login, and there is no TLS"
        settings.fault("http.peers", "", message, f"set http.tls.certificate and http.tls.key; {_CLOSED}")


_CHECKS = (
    something_configured,
    required_keys,
    names_of_topics,
    unique_route_names,
    reachable_routes,
    dead_letter_topic_for_policy,
    separate_topics,
    sources_configured,
    realtime_interval,
    brokers_named_or_embedded,
    distinct_ports,
    traces_that_hold_together,
    doubtful_predicates,
    unknown_fields,
    *BROKER_CHECKS,
    *KAFKA_CHECKS,
    reserved_spark_settings,
    driver_memory,
    spark_master,
    file_systems,
    spark_secret,
    http_login,
    http_tls,
    http_reach,
    http_peers,
    registry_login,
    registry_tls,
)
