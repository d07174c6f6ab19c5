"""Logins by Kerberos, by both kinds of clients, at a real Kerberos server and a real Kafka."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from engine.embedded import EmbeddedKafka, free_ports
from tests.conftest import JARS
from tests.integration.router.bench import Bench, RouterProcess
from tests.kdc import MISSING, REALM, KerberosServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

pytestmark = [pytest.mark.further_cases, pytest.mark.skipif(bool(MISSING), reason=MISSING)]

_HOST = "localhost"
"""Name that Java finds for the address, and asks the Kerberos server for; librdkafka takes the name as it is."""
ROOT = Path(__file__).parents[3]
PYTHONS_CLIENTS = """\
import sys
from confluent_kafka import TopicPartition
from engine.kafka.clients import KafkaClients
from engine.kafka.cluster import Cluster
from routes.config import load
from routes.errors import BridgeError

clients = KafkaClients(load(sys.argv[1]).kafka_access)
try:
    Cluster(clients, 20)
except BridgeError as error:
    sys.exit(f"{type(error).__name__}: {error}")
producer = clients.producer()
producer.produce(sys.argv[2], b"by Kerberos")
assert producer.flush(30) == 0
consumer = clients.consumer("g")
consumer.assign([TopicPartition(sys.argv[2], 0, 0)])
print(consumer.consume(1, 30)[0].value().decode())
consumer.close()
"""


class KerberosKafka(EmbeddedKafka):
    """`bootstrap` lets anybody do anything, and so does `kerberos` after a login."""

    def __init__(self, data: Path, server: KerberosServer) -> None:
        port, kerberos_port = free_ports(2)
        super().__init__(data, port, JARS)
        self.server = server
        self.kerberos = f"{_HOST}:{kerberos_port}"
        self._keytab = server.keytab(f"kafka/{_HOST}")

    def _properties(self, controller_port: int) -> dict[str, str]:
        plain = super()._properties(controller_port)
        more = f"KERBEROS://{self.kerberos}"
        return plain | {
            "listeners": f"{plain['listeners']},{more}",
            "advertised.listeners": f"{plain['advertised.listeners']},{more}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,KERBEROS:SASL_PLAINTEXT",
            "listener.name.kerberos.sasl.enabled.mechanisms": "GSSAPI",
            "listener.name.kerberos.sasl.kerberos.service.name": "kafka",
            "listener.name.kerberos.gssapi.sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required "
            f'useKeyTab=true storeKey=true keyTab="{self._keytab}" principal="kafka/{_HOST}@{REALM}";',
        }

    def _program(self) -> Sequence[str]:
        return [f"-Djava.security.krb5.conf={self.server.configuration}", *super()._program()]

    def fresh(self, name: str = "topic", partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """A new topic, see `tests.conftest.TopicFactory`."""
        assert not config
        topic = f"{name}-{uuid.uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(timeout=30)
        return topic

    def login(self, keytab: Path) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self.kerberos,
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "GSSAPI",
            "kafka.sasl.kerberos.principal": f"bridge@{REALM}",
            "kafka.sasl.kerberos.keytab": str(keytab),
        }


@pytest.fixture(scope="module")
def kerberos_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KerberosKafka]:
    with KerberosServer(tmp_path_factory.mktemp("kdc")) as server:
        kafka = KerberosKafka(tmp_path_factory.mktemp("data"), server)
        kafka.start()
        yield kafka
        kafka.stop()


@pytest.fixture
def realm(kerberos_kafka: KerberosKafka, monkeypatch: pytest.MonkeyPatch) -> KerberosKafka:
    """The Kafka, whose realm the processes know that this one starts."""
    file = kerberos_kafka.server.configuration
    monkeypatch.setenv("KRB5_CONFIG", str(file))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={file}")
    return kerberos_kafka


def python_clients(folder: Path, login: Mapping[str, str], topic: str) -> str:
    """What a process prints whose clients write a record and read it, or the error that ends it."""
    file = folder / "python.properties"
    lines = {"bridge.id": "b", "embedded": "off", "routes.r.in.include": "TRUE", "routes.r.out.topic": "t", **login}
    file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    done = subprocess.run(
        [sys.executable, "-c", PYTHONS_CLIENTS, file, topic],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return (done.stdout or done.stderr).strip()


def test_messages_pass_a_router_whose_clients_all_log_in(realm: KerberosKafka, tmp_path: Path) -> None:
    bench = Bench(tmp_path, realm.bootstrap, realm.fresh, RouterProcess)
    try:
        bench.send(4)
        router = bench.start(**realm.login(realm.server.keytab("bridge"))).wait_ready(240)
        assert bench.wait_numbers(4) == dict.fromkeys(range(4), 1)
        assert router.stop() == 0
    finally:
        bench.close()


def test_clients_of_python_say_why_they_cannot_log_in(realm: KerberosKafka, tmp_path: Path) -> None:
    topic = realm.fresh()
    old = realm.server.keytab("bridge")
    new = realm.server.keytab("bridge")
    assert python_clients(tmp_path, realm.login(new), topic) == "by Kerberos"
    refused = python_clients(tmp_path, realm.login(old), topic)
    assert refused.startswith("HardFailureError: Kafka at ")
    assert "check kafka.sasl.*" in refused
    realm.server.stop()
    try:
        away = python_clients(tmp_path, realm.login(new), topic)
    finally:
        realm.server.start()
    assert away.startswith("KafkaUnavailableError: ")
    assert "Cannot contact any KDC" in away
