"""An Artemis that wants a login and speaks STOMP and AMQP over TLS only, with certificates made for the test."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from engine.embedded import EmbeddedArtemis
from engine.embedded.ports import accepts
from engine.embedded.server import ETC

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

USER = "bridge"
PASSWORD = "s3cret:with\\odd chars"
STORE_PASSWORD = "for-the-test"

_LOGIN = """\
activemq {
   org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule required
       org.apache.activemq.jaas.properties.user="users.properties"
       org.apache.activemq.jaas.properties.role="roles.properties";
};
"""
_RIGHTS = ("createNonDurableQueue", "createDurableQueue", "createAddress", "consume", "browse", "send", "manage")


class SecureArtemis(EmbeddedArtemis):
    """Its three ports are STOMP and AMQP over TLS; that of `amqp` has a certificate for another host."""

    def __init__(self, folder: Path, ports: tuple[int, int, int], jars: Path) -> None:
        super().__init__(folder, *ports, jars)
        self._etc = folder / "etc"
        self.certificates = folder / "tls"
        self.mutual_port, self.port, self.other_port = ports

    def _prepare(self, java: Path) -> None:
        super()._prepare(java)
        self.certificates.mkdir()
        self._certify()
        shutil.copytree(ETC, self._etc)
        (self._etc / "login.config").write_text(_LOGIN)
        escaped = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
        (self._etc / "users.properties").write_text(f"{USER} = {escaped}\n")
        (self._etc / "roles.properties").write_text(f"all = {USER}\n")
        rights = "".join(f'<permission type="{right}" roles="all"/>' for right in _RIGHTS)
        broker = (self._etc / "broker.xml").read_text()
        before, _, rest = broker.partition("<acceptors>")
        _, _, after = rest.partition("</acceptors>")
        acceptors = "".join(
            (
                self._acceptor("stomp", self.port, "broker"),
                self._acceptor("other", self.other_port, "other"),
                self._acceptor("mutual", self.mutual_port, "broker", mutual=True),
            )
        )
        settings = f'<security-settings><security-setting match="#">{rights}</security-setting></security-settings>'
        text = f"{before}{settings}<acceptors>{acceptors}</acceptors>{after}"
        text = text.replace("<security-enabled>false", "<security-enabled>true")
        (self._etc / "broker.xml").write_text(text)

    def _acceptor(self, name: str, port: int, certificate: str, *, mutual: bool = False) -> str:
        settings = {
            "protocols": "STOMP,AMQP",
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
        return all(accepts(port) for port in (self.port, self.other_port, self.mutual_port))

    def _certify(self) -> None:
        self._openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -subj /CN=test-ca"
        )
        for name, host in (("broker", "IP:127.0.0.1"), ("other", "DNS:elsewhere.example"), ("bridge", "DNS:bridge")):
            key = f"-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key"
            signed = f"-CA ca.pem -CAkey ca.key -subj /CN={name} -addext subjectAltName={host}"
            self._openssl(f"req -x509 {key} -out {name}.pem {signed}")
            export = f"pkcs12 -export -inkey {name}.key -in {name}.pem -name {name} -out {name}.p12"
            self._openssl(f"{export} -passout pass:{STORE_PASSWORD}")
        keytool = "keytool -importcert -noprompt -alias ca -file ca.pem -keystore trusted.p12 -storetype PKCS12"
        self._run(*keytool.split(), "-storepass", STORE_PASSWORD)

    def _openssl(self, arguments: str) -> None:
        self._run("openssl", *arguments.split())

    def _run(self, *command: str) -> None:
        done = subprocess.run(command, cwd=self.certificates, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
