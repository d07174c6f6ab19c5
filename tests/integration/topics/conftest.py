"""A Kafka that asks who is there: SASL/PLAIN and mutual TLS, with permissions for each topic; and Java's client."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import javaproperties
import pyspark
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
from engine.embedded.ports import LOOPBACK
from engine.kafka.settings import java_settings
from routes.model import Config
from tests.aws import MetadataService
from tests.certificates import LOOPBACK as THIS_HOST
from tests.certificates import STORE_PASSWORD, keep, sign
from tests.conftest import JARS
from tests.java import java_program
from tests.token_issuer import TokenIssuer

_LIST_TOPICS = Path(__file__).with_name("ListTopics.java")
_IAM_VALIDATOR = Path(__file__).with_name("IamValidator.java")


class JavaClient:
    """Java's client of Kafka, of Spark's version and with its settings, in one process for all tests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = (folder / "client.log").open("wb")
        command = java_program(_LIST_TOPICS, f"{JARS}/spark/*:{Path(pyspark.__file__).with_name('jars')}/*")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, encoding="utf-8"
        )

    def topics(self, config: Config, milliseconds: int = 30_000) -> str:
        """The topics that it lists within a time, or its error with all causes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        options = java_settings(config.kafka_access, "admin")
        options |= dict.fromkeys(("default.api.timeout.ms", "request.timeout.ms"), str(milliseconds))
        options["bootstrap.servers"] = config.bootstrap_servers
        file = self._folder / "java.properties"
        file.write_text(javaproperties.dumps(options))
        self._process.stdin.write(f"{file}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def close(self) -> None:
        self._process.communicate(timeout=30)
        self._log.close()


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaClient]:
    client = JavaClient(tmp_path_factory.mktemp("java"))
    yield client
    client.close()


class SecuredKafka(EmbeddedKafka):
    """`bootstrap` lets anybody do anything; `sasl` and `tokens` know `bridge`; `tls` asks for a certificate.

    `iam` lets whoever has the key of `aws` do anything.
    """

    def __init__(self, data: Path, certificates: Path, issuer: TokenIssuer, aws: MetadataService) -> None:
        self._plain_port, self._sasl_port, self._tls_port, tokens_port, iam_port = free_ports(5)
        super().__init__(data, self._plain_port, JARS)
        self.issuer, self.aws = issuer, aws
        self.iam = f"{LOOPBACK}:{iam_port}"
        self.sasl = f"{LOOPBACK}:{self._sasl_port}"
        self.tokens = f"{LOOPBACK}:{tokens_port}"
        self.tls = f"{LOOPBACK}:{self._tls_port}"
        self.certificates = certificates

    def _properties(self, controller_port: int) -> dict[str, str]:
        plain = super()._properties(controller_port)
        more = f"SASL_PLAINTEXT://{self.sasl},SSL://{self.tls},TOKENS://{self.tokens},IAM://{self.iam}"
        modules = "org.apache.kafka.common.security"
        token, iam = "listener.name.tokens.oauthbearer.", "listener.name.iam.oauthbearer."
        folder = self.certificates
        return plain | {
            "listeners": f"{plain['listeners']},{more}",
            "advertised.listeners": f"{plain['advertised.listeners']},{more}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
            "SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,TOKENS:SASL_PLAINTEXT,IAM:SASL_PLAINTEXT",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:CN=client;User:A",
            "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{modules}.plain.PlainLoginModule required "
            'user_bridge="bridge-secret";',
            "listener.name.tokens.sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{token}sasl.jaas.config": f"{modules}.oauthbearer.OAuthBearerLoginModule required;",
            f"{token}sasl.server.callback.handler.class": f"{modules}.oauthbearer.OAuthBearerValidatorCallbackHandler",
            f"{token}sasl.oauthbearer.jwks.endpoint.url": f"{self.issuer.url}/keys",
            f"{token}sasl.oauthbearer.expected.audience": "kafka",
            f"{token}sasl.oauthbearer.expected.issuer": self.issuer.url,
            # Has the broker end connections whose token has expired, unless the client logs in again.
            f"{token}connections.max.reauth.ms": "3600000",
            "listener.name.iam.sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{iam}sasl.jaas.config": f"{modules}.oauthbearer.OAuthBearerLoginModule required;",
            f"{iam}sasl.server.callback.handler.class": "IamValidator",
            # Has clients log in again with their newest token.
            f"{iam}connections.max.reauth.ms": "5000",
            "ssl.client.auth": "required",
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(folder / "server.p12"),
            "ssl.keystore.password": STORE_PASSWORD,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(folder / "client.pem"),
        }

    def _program(self) -> Sequence[str]:
        # Kafka 4 asks nobody for keys who is not named here (CVE-2025-27817).
        return [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.issuer.url}/keys", *self._with_validator()]

    def _with_validator(self) -> Sequence[str]:
        """The program, with the class that checks tokens of IAM on its class path."""
        _, option, path, _ = java_program(_IAM_VALIDATOR, f"{self._jars}/*")
        return [f"-Diam.url={self.aws.url}/token/", option, path, *super()._program()[2:]]

    def fresh(self, name: str = "topic", partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """A new topic, see `tests.conftest.TopicFactory`."""
        assert not config
        return self.create(f"{name}-{uuid.uuid4().hex[:8]}", partitions=partitions)

    def create(self, topic: str, *allowed: AclOperation, partitions: int = 1) -> str:
        """A topic, with what `bridge` may do to it."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(timeout=30)
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
    certificates = tmp_path_factory.mktemp("certificates")
    for name in ("server", "client"):
        sign(certificates, name, name, THIS_HOST)
        keep(certificates, name)
    with TokenIssuer() as issuer, closing(MetadataService()) as aws:
        server = SecuredKafka(tmp_path_factory.mktemp("data"), certificates, issuer, aws)
        server.start()
        yield server
        server.stop()
