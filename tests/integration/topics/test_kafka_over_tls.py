"""Kafka over TLS with every login, by all of the bridge's clients: what works, and what is refused in one line."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from engine.embedded import EmbeddedKafka, free_ports
from engine.embedded.ports import LOOPBACK
from engine.errors import HardFailureError, UnreachableError
from engine.kafka.settings import librdkafka
from engine.kafka.topics import BridgeTopics
from routes.config import loads
from routes.model import Config
from tests.certificates import STORE_PASSWORD, certify, keep
from tests.conftest import JARS
from tests.integration.topics.conftest import JavaClient

USER = "bridge"
PASSWORD = 's3cret "with" odd\\chars'
LISTENERS = {"login": "SASL_SSL", "mutual": "SSL", "other": "SSL", "expired": "SSL"}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


class TlsKafka(EmbeddedKafka):
    """`bootstrap` is open; each of `LISTENERS` has a port of its own, over TLS."""

    def __init__(self, data: Path, certificates: Path) -> None:
        plain, *ports = free_ports(1 + len(LISTENERS))
        super().__init__(data, plain, JARS)
        self.certificates = certificates
        self.at = {name: f"{LOOPBACK}:{port}" for name, port in zip(LISTENERS, ports, strict=True)}

    def _properties(self, controller_port: int) -> dict[str, str]:
        plain = super()._properties(controller_port)
        names = {name: name.upper() for name in LISTENERS}
        more = ",".join(f"{names[name]}://{where}" for name, where in self.at.items())
        kinds = ",".join(f"{names[name]}:{kind}" for name, kind in LISTENERS.items())
        quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"').replace("\\", "\\\\")
        settings = {
            "listeners": f"{plain['listeners']},{more}",
            "advertised.listeners": f"{plain['advertised.listeners']},{more}",
            "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,{kinds}",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.login.plain.sasl.jaas.config": f'{PLAIN} required user_{USER}="{quoted}";',
            "listener.name.login.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
            "listener.name.login.scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
            "listener.name.mutual.ssl.client.auth": "required",
            "listener.name.mutual.ssl.truststore.type": "PEM",
            "listener.name.mutual.ssl.truststore.location": str(self.certificates / "ca.pem"),
        }
        for name in LISTENERS:
            own = f"listener.name.{name}.ssl.keystore"
            certificate = name if name in ("other", "expired") else "broker"
            settings |= {f"{own}.type": "PKCS12", f"{own}.password": STORE_PASSWORD}
            settings[f"{own}.location"] = str(self.certificates / f"{certificate}.p12")
        return plain | settings


@pytest.fixture(scope="module")
def tls_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsKafka]:
    certificates = certify(tmp_path_factory.mktemp("kafka") / "tls")
    for name in ("broker", "other", "expired"):
        keep(certificates, name)
    server = TlsKafka(tmp_path_factory.mktemp("data"), certificates)
    server.start()
    try:
        admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(timeout=30)
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            wanted = UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
            admin.alter_user_scram_credentials([wanted])[USER].result(timeout=30)
        yield server
    finally:
        server.stop()


def configured(kafka: TlsKafka, listener: str, *lines: str, ca: str = "ca") -> Config:
    where = kafka.at.get(listener, kafka.bootstrap)
    start = f"bridge.id=b\nkafka.bootstrap.servers={where}\nroutes.r.in.include=TRUE\nroutes.r.out.topic=orders\n"
    trusted = f"kafka.ssl.ca.location={ca}.pem\n" if ca else ""
    return loads(start + trusted + "".join(f"kafka.{line}\n" for line in lines), kafka.certificates)


def login(mechanism: str, password: str = PASSWORD) -> tuple[str, ...]:
    escaped = password.replace("\\", "\\\\")
    return (
        *("security.protocol=SASL_SSL", f"sasl.mechanism={mechanism}"),
        *(f"sasl.username={USER}", f"sasl.password={escaped}"),
    )


OWN = ("security.protocol=SSL", "ssl.certificate.location=bridge.pem", "ssl.key.location=bridge.key")


def produced(config: Config, milliseconds: int = 4000) -> bool:
    """Whether librdkafka's producer gets a record to Kafka within a time, and its consumer sees that."""
    told: list[object] = []
    producer = Producer(
        {**librdkafka(config.kafka_access, "producer"), "message.timeout.ms": str(milliseconds), "log_level": 0}
    )
    producer.produce("orders", b"x", on_delivery=lambda error, _: told.append(error))
    producer.flush(10)
    # librdkafka's errors cannot be compared with None.
    if not told or told[0] is not None:
        return False
    settings = {
        **librdkafka(config.kafka_access, "consumer"),
        "group.id": uuid.uuid4().hex,
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(settings)
    try:
        consumer.subscribe(["orders"])
        record = consumer.poll(30)
        return record is not None and record.error() is None
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("listener", "lines"),
    [
        ("login", login("PLAIN")),
        ("login", login("SCRAM-SHA-256")),
        ("login", login("SCRAM-SHA-512")),
        ("mutual", OWN),
    ],
    ids=["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "certificate"],
)
def test_every_client_gets_in(tls_kafka: TlsKafka, java: JavaClient, listener: str, lines: tuple[str, ...]) -> None:
    config = configured(tls_kafka, listener, *lines)
    BridgeTopics(config).check()
    assert produced(config)
    assert "orders" in java.topics(config).split()


@pytest.mark.parametrize(
    ("listener", "lines", "ca", "says", "java_says"),
    [
        ("login", login("PLAIN", "wrong-one"), "ca", "refuses the login: ", "SaslAuthenticationException"),
        ("login", login("SCRAM-SHA-256", "wrong-one"), "ca", "refuses the login: ", "SaslAuthenticationException"),
        ("login", login("SCRAM-SHA-512", "wrong-one"), "ca", "refuses the login: ", "SaslAuthenticationException"),
        ("login", login("PLAIN"), "stranger", "no TLS: ", "PKIX path"),
        ("other", ("security.protocol=SSL",), "ca", "no TLS: ", "No subject alternative names matching IP address"),
        ("expired", ("security.protocol=SSL",), "ca", "no TLS: ", "CertPath"),
        ("mutual", ("security.protocol=SSL",), "ca", "no TLS: ", "SslAuthenticationException"),
        ("open", ("security.protocol=SSL",), "ca", "does kafka.security.protocol fit?", "TimeoutException"),
    ],
    ids=["PLAIN", "SCRAM-256", "SCRAM-512", "authority", "host", "expired", "client certificate", "no TLS there"],
)
def test_what_is_wrong_is_told_in_one_line_and_nothing_is_sent(
    tls_kafka: TlsKafka,
    java: JavaClient,
    capfd: pytest.CaptureFixture[str],
    listener: str,
    lines: tuple[str, ...],
    ca: str,
    says: str,
    java_says: str,
) -> None:
    config = configured(tls_kafka, listener, *lines, ca=ca)
    with pytest.raises((HardFailureError, UnreachableError)) as raised:
        BridgeTopics(config).check(timeout_seconds=6 if listener == "open" else 20)
    said = str(raised.value)
    assert f"Kafka at {config.bootstrap_servers}" in said
    assert says in said
    assert "\n" not in said
    assert not produced(config, milliseconds=1500)
    assert java_says in java.topics(config, milliseconds=3000 if listener == "open" else 30_000)
    assert "wrong-one" not in f"{said}{capfd.readouterr()}"


@pytest.mark.parametrize("listener", ["login", "mutual"])
def test_a_tls_port_without_tls_is_told_with_what_to_write(tls_kafka: TlsKafka, listener: str) -> None:
    config = configured(tls_kafka, listener, ca="")
    with pytest.raises(UnreachableError, match=r"does kafka\.security\.protocol fit\?") as raised:
        BridgeTopics(config).check(timeout_seconds=4)
    assert f"Kafka at {config.bootstrap_servers}" in str(raised.value)
    assert not produced(config, milliseconds=1500)
