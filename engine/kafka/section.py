"""Section `kafka` of a configuration: names and values of the clients' settings, and those that the bridge makes.

Java's names are those of kafka-clients 3.9 (`ProducerConfig`, `ConsumerConfig`), librdkafka's those of its
CONFIGURATION.md. `engine.kafka.settings` translates by these tables. The checks find misspelt names, values that a
client refuses, and settings that only one client supports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from engine.kafka.login_checks import ClientKeys, check_certificates, check_in_the_clear, check_login, not_one_of
from routes.errors import Level
from routes.keys.values import BadValueError, whole
from routes.section_registry import Section, check_reserved

if TYPE_CHECKING:
    from routes.keys.settings import Setting, Settings

__all__ = [
    "CHOICES",
    "COMMON",
    "CONSUMER",
    "NOT_LESS",
    "PRODUCER",
    "RESERVED",
    "SECTION",
    "TWO_SPELLINGS",
    "WHOLE",
    "check_other_cluster",
]

COMMON: Mapping[str, str | None] = {
    "auto.include.jmx.reporter": None,
    "client.dns.lookup": "client.dns.lookup",
    "client.id": "client.id",
    "client.rack": "client.rack",
    "connections.max.idle.ms": "connections.max.idle.ms",
    "default.api.timeout.ms": None,
    "enable.metrics.push": "enable.metrics.push",
    "metadata.max.age.ms": "topic.metadata.refresh.interval.ms",
    "metadata.recovery.strategy": "metadata.recovery.strategy",
    "metric.reporters": None,
    "metrics.num.samples": None,
    "metrics.recording.level": None,
    "metrics.sample.window.ms": None,
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "reconnect.backoff.max.ms": "reconnect.backoff.max.ms",
    "reconnect.backoff.ms": "reconnect.backoff.ms",
    "request.timeout.ms": "socket.timeout.ms",
    "retries": None,
    "retry.backoff.max.ms": "retry.backoff.max.ms",
    "retry.backoff.ms": "retry.backoff.ms",
    "sasl.client.callback.handler.class": None,
    "sasl.jaas.config": None,
    "sasl.kerberos.min.time.before.relogin": None,
    "sasl.kerberos.service.name": "sasl.kerberos.service.name",
    "sasl.kerberos.ticket.renew.jitter": None,
    "sasl.kerberos.ticket.renew.window.factor": None,
    "sasl.login.callback.handler.class": None,
    "sasl.login.class": None,
    "sasl.login.connect.timeout.ms": None,
    "sasl.login.read.timeout.ms": None,
    "sasl.login.retry.backoff.max.ms": None,
    "sasl.login.refresh.buffer.seconds": None,
    "sasl.login.refresh.min.period.seconds": None,
    "sasl.login.refresh.window.factor": None,
    "sasl.login.refresh.window.jitter": None,
    "sasl.login.retry.backoff.ms": None,
    "sasl.oauthbearer.method": None,
    "sasl.oauthbearer.scope.claim.name": None,
    "sasl.oauthbearer.sub.claim.name": None,
    "sasl.oauthbearer.token.endpoint.url": None,
    "sasl.mechanism": "sasl.mechanism",
    "security.protocol": "security.protocol",
    "security.providers": None,
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms": None,
    "socket.connection.setup.timeout.ms": "socket.connection.setup.timeout.ms",
    "ssl.cipher.suites": None,
    "ssl.enabled.protocols": None,
    "ssl.endpoint.identification.algorithm": None,
    "ssl.engine.factory.class": None,
    "ssl.key.password": "ssl.key.password",
    "ssl.keymanager.algorithm": None,
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.location": None,
    "ssl.keystore.password": None,
    "ssl.keystore.type": None,
    "ssl.protocol": None,
    "ssl.provider": None,
    "ssl.secure.random.implementation": None,
    "ssl.trustmanager.algorithm": None,
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.truststore.location": None,
    "ssl.truststore.password": None,
    "ssl.truststore.type": None,
}
"""Settings of every client, mapped to librdkafka's names; None if it has none, or if `engine.kafka` does more than
rename."""

PRODUCER: Mapping[str, str | None] = {
    "batch.size": "batch.size",
    "buffer.memory": None,
    "compression.gzip.level": None,
    "compression.lz4.level": None,
    "compression.type": "compression.type",
    "compression.zstd.level": None,
    "delivery.timeout.ms": "delivery.timeout.ms",
    "linger.ms": "linger.ms",
    "max.block.ms": None,
    "max.in.flight.requests.per.connection": None,
    "metadata.max.idle.ms": None,
    "partitioner.adaptive.partitioning.enable": None,
    "partitioner.availability.timeout.ms": None,
    "partitioner.ignore.keys": None,
    "transaction.timeout.ms": "transaction.timeout.ms",
}
"""Settings of producers only."""

CONSUMER: Mapping[str, str | None] = {
    "check.crcs": "check.crcs",
    "exclude.internal.topics": None,
    "fetch.max.bytes": "fetch.max.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "fetch.min.bytes": "fetch.min.bytes",
    "group.protocol": None,
    "group.remote.assignor": None,
    "heartbeat.interval.ms": "heartbeat.interval.ms",
    "max.partition.fetch.bytes": "max.partition.fetch.bytes",
    "max.poll.interval.ms": "max.poll.interval.ms",
    "max.poll.records": None,
    "partition.assignment.strategy": None,
    "session.timeout.ms": "session.timeout.ms",
}
"""Settings of consumers only."""

TWO_SPELLINGS = frozenset(
    {
        *("sasl.username", "sasl.password", "ssl.ca.location", "ssl.certificate.location", "ssl.key.location"),
        *("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.extensions"),
        *("sasl.oauthbearer.issuer", "sasl.oauthbearer.method", "sasl.oauthbearer.scope", "https.ca.location"),
        *("sasl.kerberos.principal", "sasl.kerberos.keytab"),
    }
)
"""Names of librdkafka that are accepted as well, and translated for Java; and the issuer of tokens, which neither of
the two knows: the bridge asks it for its token endpoint."""

RESERVED: Mapping[str, tuple[str | None, str]] = {
    "acks": ("all", "a message counts as kept only when all replicas have it"),
    "allow.auto.create.topics": ("false", "a topic is created on purpose, see routing.create-topics"),
    "auto.commit.interval.ms": (None, "the router keeps its own position"),
    "auto.offset.reset": (None, "the router keeps its own position"),
    "enable.auto.commit": ("false", "the router keeps its own position"),
    "enable.idempotence": ("true", "a retry must not write a message twice"),
    "group.id": (None, "the router reads the whole journal, without a group"),
    "group.instance.id": (None, "the router reads the whole journal, without a group"),
    "interceptor.classes": (None, "Spark's Kafka source does not allow it"),
    "isolation.level": ("read_committed", "records of aborted transactions must not be routed"),
    "key.deserializer": (None, "records are bytes"),
    "key.serializer": (None, "records are bytes"),
    "max.request.size": (None, "it follows journal.max-message-bytes"),
    "partitioner.class": (None, "a key has to lead to the same partition from every client"),
    "transactional.id": (None, "the bridge names its own transactions"),
    "value.deserializer": (None, "records are bytes"),
    "value.serializer": (None, "records are bytes"),
}
"""Settings that the bridge makes itself: the one value that is allowed (None: no value), and the reason."""

_INT = 2**31 - 1
_LONG = 10**18 - 1
"""The largest number that `whole` reads; Java's limit is a little higher."""

WHOLE: Mapping[str, tuple[int, int]] = {
    "batch.size": (1, _INT),
    "buffer.memory": (1, _LONG),
    "compression.gzip.level": (-1, 9),
    "compression.lz4.level": (1, 17),
    "compression.zstd.level": (-131072, 22),
    "connections.max.idle.ms": (0, _INT),
    "default.api.timeout.ms": (0, _INT),
    "delivery.timeout.ms": (0, _INT),
    "fetch.max.bytes": (1_000_000, 2_147_483_135),
    "fetch.max.wait.ms": (0, 300_000),
    "fetch.min.bytes": (1, 100_000_000),
    "heartbeat.interval.ms": (1, 3_600_000),
    # librdkafka: less than the time that it gives a message to be delivered.
    "linger.ms": (0, 299_999),
    "max.block.ms": (0, _LONG),
    # More would let a retry change the order, which an idempotent producer never does.
    "max.in.flight.requests.per.connection": (1, 5),
    "max.partition.fetch.bytes": (1, 1_000_000_000),
    "max.poll.interval.ms": (1, 86_400_000),
    "max.poll.records": (1, _INT),
    "metadata.max.age.ms": (0, 3_600_000),
    "metadata.max.idle.ms": (5000, _LONG),
    "metrics.num.samples": (1, _INT),
    "metrics.sample.window.ms": (0, _LONG),
    "partitioner.availability.timeout.ms": (0, _LONG),
    "receive.buffer.bytes": (-1, 100_000_000),
    "reconnect.backoff.max.ms": (0, 3_600_000),
    "reconnect.backoff.ms": (0, 3_600_000),
    "request.timeout.ms": (10, 300_000),
    "retries": (1, _INT),
    "retry.backoff.max.ms": (1, 300_000),
    "retry.backoff.ms": (1, 300_000),
    "sasl.login.connect.timeout.ms": (0, _INT),
    "sasl.login.read.timeout.ms": (0, _INT),
    "sasl.login.retry.backoff.max.ms": (0, _LONG),
    "sasl.login.retry.backoff.ms": (0, _LONG),
    "send.buffer.bytes": (-1, 100_000_000),
    "sasl.login.refresh.buffer.seconds": (0, 3600),
    "sasl.login.refresh.min.period.seconds": (0, 900),
    "session.timeout.ms": (1, 3_600_000),
    "socket.connection.setup.timeout.max.ms": (0, _LONG),
    "socket.connection.setup.timeout.ms": (1000, _INT),
    "transaction.timeout.ms": (1000, _INT),
}
"""Settings that are whole numbers: the lowest and the highest value that both the Java client and librdkafka accept; a
test asks librdkafka itself. A setting that is neither here nor in `CHOICES` is text of any kind."""

CHOICES: Mapping[str, tuple[str, ...]] = {
    "client.dns.lookup": ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    "compression.type": ("none", "gzip", "snappy", "lz4", "zstd"),
    "metadata.recovery.strategy": ("none", "rebootstrap"),
    "metrics.recording.level": ("INFO", "DEBUG", "TRACE"),
    "sasl.oauthbearer.method": ("oidc",),
    **dict.fromkeys(
        (
            "auto.include.jmx.reporter",
            "check.crcs",
            "enable.metrics.push",
            "exclude.internal.topics",
            "partitioner.adaptive.partitioning.enable",
            "partitioner.ignore.keys",
        ),
        ("true", "false"),
    ),
}
"""Settings that take one of a few words."""

NOT_LESS: tuple[tuple[str, int | None, Mapping[str, int]], ...] = (
    ("reconnect.backoff.max.ms", 10_000, {"reconnect.backoff.ms": 100}),
    ("max.poll.interval.ms", 300_000, {"session.timeout.ms": 45_000}),
    ("delivery.timeout.ms", None, {"linger.ms": 0, "request.timeout.ms": 30_000}),
)
"""Settings that may not be less than the sum of others, each with its value when not set; None: it follows the
others."""

_LOGIN = """\
### Login and TLS

Written once, for all clients:

```
kafka.security.protocol=SASL_SSL
kafka.sasl.mechanism=SCRAM-SHA-512
kafka.sasl.username=bridge
kafka.sasl.password=${env:KAFKA_PASSWORD}
kafka.ssl.ca.location=tls/ca.pem
```

Java's spelling does as well: `kafka.sasl.jaas.config`, `kafka.ssl.truststore.location` (PEM),
`kafka.ssl.keystore.location` (PEM or PKCS12). A client certificate in two files is `kafka.ssl.certificate.location` and
`kafka.ssl.key.location` (PEM, the key in PKCS#8). Mechanisms are PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER,
GSSAPI and AWS_MSK_IAM.

With OAUTHBEARER the clients log in by tokens, which an OpenID Connect server gives to a client with a secret, and get
new ones before these expire:

```
kafka.security.protocol=SASL_SSL
kafka.sasl.mechanism=OAUTHBEARER
kafka.sasl.oauthbearer.issuer=https://login.example.com/realms/kafka
kafka.sasl.oauthbearer.client.id=bridge
kafka.sasl.oauthbearer.client.secret=${env:KAFKA_SECRET}
kafka.sasl.oauthbearer.scope=kafka
```

In place of `issuer`, which is asked for its token endpoint at the start, `kafka.sasl.oauthbearer.token.endpoint.url`
names that. `kafka.https.ca.location` (PEM) has the certificates to trust there, if the system does not know them;
`kafka.sasl.oauthbearer.extensions=logicalCluster=lkc-1,identityPoolId=pool-1` is what Confluent Cloud wants besides.

A login by Kerberos (GSSAPI) has a principal, and a keytab with its key. `kafka.sasl.kerberos.service.name` is the first
part of the brokers' principals, `kafka` by default. It needs a [librdkafka with
Kerberos](security.md#logins-by-kerberos):

```
kafka.security.protocol=SASL_SSL
kafka.sasl.mechanism=GSSAPI
kafka.sasl.kerberos.principal=bridge@EXAMPLE.COM
kafka.sasl.kerberos.keytab=bridge.keytab
```

Recipes for Confluent Cloud, Azure Event Hubs and Amazon MSK are in [security.md](security.md#logins-to-kafka-services).
"""
"""Part of the page of all keys."""
_KAFKA_ROWS = ("kafka.*", "kafka.producer.*", "kafka.consumer.*")
_KNOWN = sorted({"bootstrap.servers", *COMMON, *PRODUCER, *CONSUMER, *TWO_SPELLINGS})


def reserved_settings(settings: Settings) -> None:
    """Checks that settings which the bridge makes itself have only the value that it would give them."""
    for setting in _kafka(settings):
        if setting.name == "bootstrap.servers":
            fault = setting.entry.key_fault(f"'{setting.entry.key}' is not supported", "set kafka.bootstrap.servers")
            settings.faults.append(fault)
        elif setting.name in RESERVED and (setting.name, setting.value) != ("acks", "-1"):
            check_reserved(settings, setting, RESERVED[setting.name])


def unknown_kafka_settings(settings: Settings) -> None:
    """Finds misspelt names: close to one of Kafka's.

    Any other unknown name is passed to the Java clients, which may have plug-ins, with a warning.
    """
    for setting in _kafka(settings):
        name = setting.name
        if name not in _KNOWN and name not in RESERVED and not _is_misspelt(settings, setting, name):
            message = f"'{setting.entry.key}' is not a setting of Kafka's clients"
            hint = "it is passed to Spark's Kafka clients as it is, and to no other"
            settings.faults.append(setting.entry.key_fault(message, hint, Level.WARNING))


def _is_misspelt(settings: Settings, setting: Setting, name: str) -> bool:
    """Adds the fault of an unknown name that is close to one of Kafka's, or not supported; False if it is neither."""
    key = setting.entry.key
    prefix = key.removesuffix(name)
    if name == "enable.ssl.certificate.verification":
        hint = f"the Java clients cannot do without; name the certificates to trust in {prefix}ssl.ca.location"
        settings.faults.append(setting.entry.key_fault(f"'{key}' is not supported", hint))
    elif near := get_close_matches(name, _KNOWN, n=1, cutoff=0.8):
        settings.faults.append(setting.entry.key_fault(f"unknown key '{key}'", f"did you mean '{prefix}{near[0]}'?"))
    else:
        return False
    return True


def kafka_values(settings: Settings) -> None:
    """Finds values that a client refuses.

    The client would refuse them only when it is made, under its own name of the setting.
    """
    _check_values(settings, ((setting.name, setting) for setting in _kafka(settings)))


def _check_values(settings: Settings, given: Iterable[tuple[str, Setting]]) -> None:
    for name, setting in given:
        try:
            if setting.value is not None and name in WHOLE:
                whole(*WHOLE[name]).parse(setting.value)
        except BadValueError as error:
            settings.faults.append(setting.entry.fault(str(error), error.hint))
        allowed = CHOICES.get(name)
        if allowed and setting.value is not None and setting.value not in allowed:
            not_one_of(settings, setting, allowed)


def kafka_login(settings: Settings) -> None:
    """Checks login, certificates and whether the protocol uses them."""
    _check_login(settings, ClientKeys("kafka.", {setting.name: setting for setting in settings.open("kafka.*")}))


def check_other_cluster(settings: Settings, keys: ClientKeys) -> None:
    """Checks the login to another Kafka cluster than the bridge's own; only the clients of Python connect to that."""
    for name, setting in keys.settings.items():
        if name not in _KNOWN and not _is_misspelt(settings, setting, name):
            hint = "its names are those of Kafka's clients, as in `kafka.*`"
            settings.faults.append(setting.entry.key_fault(f"unknown key '{setting.entry.key}'", hint))
    _check_values(settings, keys.settings.items())
    _check_login(settings, keys)


def _check_login(settings: Settings, keys: ClientKeys) -> None:
    check_login(settings, keys)
    check_certificates(settings, keys)
    check_in_the_clear(settings, keys)


def kafka_values_that_fit(settings: Settings) -> None:
    """Checks settings that limit each other.

    A setting may not be less than the sum of the others that it leaves time for; each client refuses its own pairs.
    """
    for role, foreign in (("producer", CONSUMER), ("consumer", PRODUCER)):
        rows = ("kafka.*", f"kafka.{role}.*")
        given = {s.name: s for row in rows for s in settings.open(row) if s.name not in foreign}
        for name, default, others in NOT_LESS:
            value = _number(given, name, default)
            least = sum(_number(given, other, without) or 0 for other, without in others.items())
            if value is None or value >= least:
                continue
            entry = next(given[each].entry for each in (name, *others) if each in given)
            message = f"{name} ({value}) is less than {' and '.join(others)} ({least})"
            if (fault := entry.fault(message, f"raise kafka.{name}")) not in settings.faults:
                settings.faults.append(fault)


def _number(given: Mapping[str, Setting], name: str, without: int | None) -> int | None:
    """Returns the value of a setting, `without` if it is not set or has a fault of its own."""
    try:
        return whole(*WHOLE[name]).parse(given[name].value or "") if name in given else without
    except BadValueError:
        return without


def _kafka(settings: Settings) -> list[Setting]:
    return [setting for row in _KAFKA_ROWS for setting in settings.open(row)]


SECTION = Section(
    about="Settings of the Kafka clients, by the names of Kafka's own (Java) clients. Settings that librdkafka, "
    "the bridge's other client, names differently are translated for it; settings that it does not have are "
    "left out there. A value that one of the two refuses is a fault.",
    checks=(
        reserved_settings,
        unknown_kafka_settings,
        kafka_values,
        kafka_values_that_fit,
        kafka_login,
    ),
    notes=(_LOGIN,),
    reserved={f"kafka.{name}": rule for name, rule in RESERVED.items()},
)
