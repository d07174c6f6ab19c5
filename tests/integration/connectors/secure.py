"""An Artemis that wants a login and speaks STOMP and AMQP, mostly over TLS, with certificates made for the test."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from engine.embedded import EmbeddedArtemis, free_ports
from engine.embedded.ports import accepts
from engine.embedded.server import ETC
from tests.certificates import STORE_PASSWORD, certify, keep

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

USER = "bridge"
NO_MANAGER = "modest"
"""User without the right to manage the broker."""
PASSWORD = "s3cret:with\\odd chars"

_LOGIN = """\
activemq {
   org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule required
       org.apache.activemq.jaas.properties.user="users.properties"
       org.apache.activemq.jaas.properties.role="roles.properties";
};
"""
_RIGHTS = ("createNonDurableQueue", "createDurableQueue", "createAddress", "consume", "browse", "send", "manage")


class SecureArtemis(EmbeddedArtemis):
    """Both protocols on every port: over TLS, with a certificate of another host, with one that has expired, for
    clients that show one, and without TLS."""

    def __init__(self, folder: Path, jars: Path) -> None:
        ports = free_ports(5)
        super().__init__(folder, ports[0], ports[1], ports[2], jars)
        self._etc = folder / "etc"
        self.certificates = folder / "tls"
        self.mutual_port, self.port, self.other_port, self.expired_port, self.plain_port = ports

    def _prepare(self, java: Path) -> None:
        super()._prepare(java)
        certify(self.certificates)
        for name in ("broker", "other", "expired"):
            keep(self.certificates, name)
        keytool = "keytool -importcert -noprompt -alias ca -file ca.pem -keystore trusted.p12 -storetype PKCS12"
        command = [*keytool.split(), "-storepass", STORE_PASSWORD]
        subprocess.run(command, cwd=self.certificates, capture_output=True, check=True)
        shutil.copytree(ETC, self._etc)
        (self._etc / "login.config").write_text(_LOGIN)
        escaped = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
        (self._etc / "users.properties").write_text(f"{USER} = {escaped}\n{NO_MANAGER} = {escaped}\n")
        (self._etc / "roles.properties").write_text(f"all = {USER}\nclients = {NO_MANAGER}\n")
        rights = "".join(
            f'<permission type="{right}" roles="all{"" if right == "manage" else ",clients"}"/>' for right in _RIGHTS
        )
        broker = (self._etc / "broker.xml").read_text()
        before, _, rest = broker.partition("<acceptors>")
        _, _, after = rest.partition("</acceptors>")
        acceptors = "".join(
            (
                self._acceptor("stomp", self.port, "broker"),
                self._acceptor("other", self.other_port, "other"),
                self._acceptor("expired", self.expired_port, "expired"),
                self._acceptor("mutual", self.mutual_port, "broker", mutual=True),
                f'<acceptor name="plain">tcp://127.0.0.1:{self.plain_port}?protocols=STOMP,AMQP</acceptor>',
            )
        )
        settings = f'<security-settings><security-setting match="#">{rights}</security-setting></security-settings>'
        text = f"{before}{settings}<acceptors>{acceptors}</acceptors>{after}"
        text = text.replace("<security-enabled>false", "<security-enabled>true")
        (self._etc / "broker.xml").write_text(text)

    def _acceptor(self, name: str, port: int, certificate: str, *, mutual: bool = False) -> str:
        settings = {
            "protocols": "STOMP,AMQP,CORE",
            "sslEnabled": "true",
            "keyStoreType": "PKCS12",
            "keyStorePath": self.certificates / f"{certificate}.p12",
            "keyStorePassword": STORE_PASSWORD,
        }
        if mutual:
            trust = {"trustStoreType": "PKCS12", "trustStorePath": self.certificates / "trusted.p12"}
            settings |= {"needClientAuth": "true", "trustStorePassword": STORE_PASSWORD} | trust
        query = ";".join(f"{key}={value}" for key, value in settings.items())
        return f'<acceptor name="{name}">tcp://127.0.0.1:{port}?{query}</acceptor>'

    def _program(self) -> Sequence[str | Path]:
        own = [
            str(part)
            .replace(ETC.as_uri(), self._etc.as_uri())
            .replace(f"instance.etc={ETC}", f"instance.etc={self._etc}")
            for part in super()._program()
        ]
        assert f"-Dartemis.instance.etc={self._etc}" in own
        return [f"-Djava.security.auth.login.config={self._etc / 'login.config'}", *own]

    def _answers(self) -> bool:
        return all(accepts(port) for port in (self.port, self.other_port, self.mutual_port, self.expired_port))
