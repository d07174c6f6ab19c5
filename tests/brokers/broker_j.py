"""Qpid Broker-J: AMQP 1.0, with its messages in Derby; its JMS client is Qpid JMS, over the same port."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from engine.embedded.ports import LOOPBACK
from engine.java import find_java
from engine.private import make_folder
from tests.brokers.broker import PASSWORD, USER, Broker, Protocol
from tests.brokers.packages import jar, jars
from tests.brokers.rest import call
from tests.certificates import STORE_PASSWORD, keep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["BrokerJ"]

_PARTS = (
    "core",
    "plugins-amqp-1-0-protocol",
    "plugins-amqp-1-0-protocol-jdbc-link-store",
    "plugins-derby-store",
    "plugins-logging-logback",
    "plugins-management-http",
)
_OPTIONS = "commons-cli:commons-cli:1.9.0"
_ALIASES = ("nameAlias", "defaultAlias", "hostnameAlias")
"""Hosts that clients may name, as in the configuration that the broker comes with."""
_HOST = "default"


class BrokerJ(Broker):
    """Qpid Broker-J, which makes no queue that a client names; logins without TLS only by SCRAM, as it comes."""

    title: ClassVar[str] = "Qpid Broker-J"
    version: ClassVar[str] = "9.2.1"
    speaks: ClassVar[Sequence[Protocol]] = (Protocol.AMQP, Protocol.JMS)
    client_port: ClassVar[Protocol] = Protocol.AMQP
    others: ClassVar[Sequence[str]] = ("management", "tokens")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._issuer = ""
        self._certificates = Path()

    def take_tokens(self, issuer: str, certificates: Path) -> None:
        """Has the broker, which has not started yet, take access tokens on a port of their own, `tokens`, by TLS.

        Args:
            issuer: URL of the server that it asks for the owner of a token.
            certificates: folder of `certify`, whose authority it trusts, and whose `broker` it is.
        """
        self._issuer, self._certificates = issuer, certificates

    def destination(self, protocol: Protocol, name: str, kind: str = "queue") -> str:
        """The exchange `amq.topic` has every topic."""
        return f"topic:amq.topic/{name}" if kind == "topic" else super().destination(protocol, name, kind)

    def create(self, queue: str) -> None:
        call(self.ports["management"], f"/api/latest/queue/{_HOST}/{_HOST}/{queue}", "PUT", {"durable": True})

    def waiting(self, queue: str) -> int:
        found = call(self.ports["management"], f"/api/latest/queue/{_HOST}/{_HOST}/{queue}")
        return int(found["statistics"]["queueDepthMessages"])

    def _client(self, port: int) -> Mapping[str, str]:
        return {
            ".packages": "org.apache.qpid:qpid-jms-client:2.7.0",
            ".connection-factory": "org.apache.qpid.jms.JmsConnectionFactory",
            ".connection-factory.remoteURI": f"amqp://{LOOPBACK}:{port}",
        }

    def _find_program(self) -> Path:
        return find_java()

    def _command(self, program: Path) -> Sequence[str | Path]:
        plugins = jars(*(f"org.apache.qpid:qpid-broker-{part}:{self.version}" for part in _PARTS), _OPTIONS)
        # Alone, since it depends on a store that the repositories do not have.
        class_path = os.pathsep.join(map(str, [jar(f"org.apache.qpid:qpid-broker:{self.version}"), *plugins]))
        work = self.folder / "work"
        initial = self.folder / "initial.json"
        make_folder(work)
        initial.write_text(json.dumps(self._configuration()))
        jvm = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:MaxDirectMemorySize=256m"]
        properties = [f"-DQPID_WORK={work}", f"-DQPID_HOME={self.folder}"]
        arguments = ["--store-type", "JSON", "--initial-config-path", str(initial)]
        return [program, *jvm, *properties, "-cp", class_path, "org.apache.qpid.server.Main", *arguments]

    def _configuration(self) -> object:
        """The configuration of a broker that starts for the first time; it keeps its own from then on."""
        listens = {"bindingAddress": LOOPBACK, "authenticationProvider": "logins"}
        host = {"name": _HOST, "type": "DERBY", "storePath": "${qpid.work_dir}/messages"}
        aliases = [{"name": name, "type": name} for name in _ALIASES]
        amqp = {"protocols": ["AMQP_1_0"], "virtualhostaliases": aliases}
        made: dict[str, Any] = {
            "name": "broker",
            "modelVersion": "9.0",
            "authenticationproviders": [
                {
                    "name": "logins",
                    "type": "Plain",
                    "users": [{"name": USER, "type": "managed", "password": PASSWORD}],
                },
            ],
            "ports": [
                {"name": "AMQP", "port": self.ports[Protocol.AMQP], **amqp, **listens},
                {"name": "HTTP", "port": self.ports["management"], "protocols": ["HTTP"], **listens},
            ],
            "virtualhostnodes": [
                {
                    "name": _HOST,
                    "type": "JSON",
                    "defaultVirtualHostNode": True,
                    "virtualHostInitialConfiguration": json.dumps(host),
                }
            ],
            "plugins": [{"name": "management", "type": "MANAGEMENT-HTTP", "httpBasicAuthenticationEnabled": True}],
        }
        if self._issuer:
            for kind, parts in self._for_tokens(amqp).items():
                made[kind] = [*made.get(kind, ()), *parts]
        return made

    def _for_tokens(self, amqp: Mapping[str, object]) -> Mapping[str, Sequence[object]]:
        """The parts of the configuration that access tokens need; `amqp` has the keys of every port for AMQP."""
        listens = {"bindingAddress": LOOPBACK, "authenticationProvider": "tokens", **amqp}
        return {
            "authenticationproviders": [
                {
                    "name": "tokens",
                    "type": "OAuth2",
                    "identityResolverType": "KeycloakOpenID",
                    "identityResolverEndpointURI": f"{self._issuer}/userinfo",
                    # For logins to its pages, which the tests do not use.
                    "authorizationEndpointURI": f"{self._issuer}/authorize",
                    "tokenEndpointURI": f"{self._issuer}/token",
                    "clientId": "broker",
                    "clientSecret": "unused",
                    "trustStore": "issuer",
                    # As it comes it takes a token for ten minutes without asking again, even if that has ended.
                    "context": {"qpid.auth.cache.size": "0"},
                },
            ],
            "truststores": [
                {
                    "name": "issuer",
                    "type": "NonJavaTrustStore",
                    "certificatesUrl": (self._certificates / "ca.pem").as_uri(),
                },
            ],
            "keystores": [
                {
                    "name": "own",
                    "type": "FileKeyStore",
                    "storeUrl": str(keep(self._certificates, "broker")),
                    "password": STORE_PASSWORD,
                    "keyStoreType": "pkcs12",
                },
            ],
            "ports": [
                # Its mechanism is one for connections by TLS alone.
                {"name": "tokens", "port": self.ports["tokens"], "transports": ["SSL"], "keyStore": "own", **listens},
            ],
        }

    def _answers(self) -> bool:
        try:
            found = call(self.ports["management"], f"/api/latest/virtualhost/{_HOST}/{_HOST}")
        except OSError:
            return False
        return bool(found["state"] == "ACTIVE")
