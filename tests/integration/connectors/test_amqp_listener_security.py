"""The AMQP listener over TLS: with a certificate of its own, and with certificates of its clients for a login."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from engine.connectors.amqp.frames import SASL_HEADER
from engine.embedded import free_ports
from engine.embedded.ports import accepts
from tests.certificates import certify
from tests.integration.connectors.amqp_jms import QpidClient
from tests.integration.connectors.amqp_listeners import listening
from tests.integration.connectors.running import bodies
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from engine.embedded import EmbeddedKafka
    from tests.integration.connectors.conftest import Configure, Start


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certify(tmp_path_factory.mktemp("listener") / "tls")


def over_tls(port: int, queue: str, certificates: Path, **more: str) -> dict[str, str]:
    own = {
        ".listen": f"amqps://127.0.0.1:{port}",
        ".tls.certificate": str(certificates / "broker.pem"),
        ".tls.key": str(certificates / "broker.key"),
    }
    return {**listening(port, f"queue:{queue}", **more), **own}


def test_a_client_sends_over_tls_and_one_without_it_is_left(
    kafka: EmbeddedKafka, configured: Configure, start: Start, queue: str, certificates: Path
) -> None:
    (port,) = free_ports(1)
    config = configured(over_tls(port, queue, certificates, username="app", password="s3cret"))
    source = start(config)
    until(lambda: accepts(port))
    with socket.create_connection(("127.0.0.1", port), 10) as plain:
        plain.sendall(SASL_HEADER)
        answer = b""
        # How it is left depends on what it had still to read.
        with suppress(ConnectionResetError):
            answer = plain.recv(1000)
    assert SASL_HEADER not in answer
    options = "transport.trustAll=true&transport.verifyHost=false&jms.username=app&jms.password=s3cret"
    client = QpidClient(f"amqps://127.0.0.1:{port}?{options}")
    client.post(f"queue:{queue}", [{"body": "x" * 200_000}, {"body": "y"}])
    client.close()
    assert sorted(len(body) for body in bodies(kafka.bootstrap, config.journal.topic)) == [1, 200_000]
    assert source.error is None


def test_with_a_ca_nobody_comes_in_without_a_certificate_which_is_a_login(
    configured: Configure, start: Start, queue: str, certificates: Path
) -> None:
    (port,) = free_ports(1)
    start(configured(over_tls(port, queue, certificates, tls_ca=str(certificates / "ca.pem"))))
    until(lambda: accepts(port))

    def greet(context: ssl.SSLContext) -> bytes:
        with (
            socket.create_connection(("127.0.0.1", port), 10) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
        ):
            secure.sendall(SASL_HEADER)
            answer = b""
            while b"ANONYMOUS" not in answer and (data := secure.recv(1000)):
                answer += data
            return answer

    context = ssl.create_default_context(cafile=certificates / "ca.pem")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        greet(context)
    context.load_cert_chain(certificates / "bridge.pem", certificates / "bridge.key")
    assert b"EXTERNAL" in greet(context)
