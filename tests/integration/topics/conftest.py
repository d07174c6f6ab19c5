"""A Kafka that asks who is there: SASL/PLAIN and mutual TLS, with permissions for each topic."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from engine.embedded import EmbeddedKafka, free_ports
from engine.embedded.java import find_java
from engine.embedded.ports import LOOPBACK

JARS = Path(__file__).parents[3] / ".jars"
STORE_PASSWORD = "store-secret"

_EXPORT_KEY = """\
import java.io.FileInputStream;
import java.security.KeyStore;
import java.util.Base64;

class ExportKey {
    public static void main(String[] arguments) throws Exception {
        var store = KeyStore.getInstance("PKCS12");
        store.load(new FileInputStream(arguments[0]), arguments[1].toCharArray());
        var key = store.getKey("key", arguments[1].toCharArray()).getEncoded();
        System.out.println("-----BEGIN PRIVATE KEY-----");
        System.out.println(Base64.getMimeEncoder().encodeToString(key));
        System.out.println("-----END PRIVATE KEY-----");
    }
}
"""
"""The JDK's tools write a private key into a key store only, and librdkafka and people have theirs in PEM files."""


@dataclass(frozen=True)
class Certificates:
    """Key stores and PEM files of a server and a client that trust each other's own signature."""

    folder: Path

    def make(self, name: str, host: str) -> None:
        java = find_java()
        store = self.folder / f"{name}.p12"
        secret = ["-storetype", "PKCS12", "-keystore", store, "-storepass", STORE_PASSWORD, "-alias", "key"]
        generate = ["-genkeypair", "-keyalg", "RSA", "-dname", f"CN={name}", "-ext", f"SAN=IP:{host}"]
        export = ["-exportcert", "-rfc", "-file", self.folder / f"{name}.pem"]
        for action in (generate, export):
            subprocess.run([java.with_name("keytool"), *action, *secret], check=True, capture_output=True)
        program = self.folder / "ExportKey.java"
        program.write_text(_EXPORT_KEY)
        key = subprocess.run([java, program, store, STORE_PASSWORD], check=True, capture_output=True, text=True)
        (self.folder / f"{name}.key").write_text(key.stdout)


class SecuredKafka(EmbeddedKafka):
    """`bootstrap` lets anybody do anything; `sasl` knows `bridge`; `tls` asks for a certificate."""

    def __init__(self, data: Path, certificates: Certificates) -> None:
        self._plain_port, self._sasl_port, self._tls_port = free_ports(3)
        super().__init__(data, self._plain_port, JARS)
        self.sasl = f"{LOOPBACK}:{self._sasl_port}"
        self.tls = f"{LOOPBACK}:{self._tls_port}"
        self.certificates = certificates

    def _properties(self, controller_port: int) -> dict[str, str]:
        plain = super()._properties(controller_port)
        more = f"SASL_PLAINTEXT://{self.sasl},SSL://{self.tls}"
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        folder = self.certificates.folder
        return plain | {
            "listeners": f"{plain['listeners']},{more}",
            "advertised.listeners": f"{plain['advertised.listeners']},{more}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
            "SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:CN=client",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{module} required user_bridge="bridge-secret";',
            "ssl.client.auth": "required",
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(folder / "server.p12"),
            "ssl.keystore.password": STORE_PASSWORD,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(folder / "client.pem"),
        }

    def create(self, topic: str, *allowed: AclOperation) -> str:
        """A topic, with what `bridge` may do to it."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(timeout=30)
        self.allow(topic, *allowed)
        return topic

    def allow(self, topic: str, *allowed: AclOperation) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        rule = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:bridge", "*")
        bindings = [AclBinding(*rule, operation, AclPermissionType.ALLOW) for operation in allowed]
        if bindings:
            for future in admin.create_acls(bindings).values():
                future.result(timeout=30)


@pytest.fixture(scope="session")
def secured_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    for name in ("server", "client"):
        certificates.make(name, LOOPBACK)
    server = SecuredKafka(tmp_path_factory.mktemp("data"), certificates)
    server.start()
    yield server
    server.stop()
