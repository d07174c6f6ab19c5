"""NATS over TLS, with logins of every kind, and with rights: what works, and what is said where it does not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from engine.connectors.base import NotConnectedError
from engine.embedded import free_ports
from engine.errors import HardFailureError, SetupError
from tests.certificates import certify
from tests.integration.connectors.nats_harness import Connectors, NatsHarness, numbered, outcomes, receive
from tests.integration.connectors.nats_secure import PASSWORD, TOKEN, SecureNats, credentials, tls

if TYPE_CHECKING:
    from pathlib import Path

Serve = Callable[[str], SecureNats]

LOGIN = {"username": "bridge", "password": PASSWORD.replace("\\", "\\\\")}
USERS = f"""authorization {{ users: [
  {{ user: bridge, password: "{PASSWORD.replace(chr(92), chr(92) * 2)}",
     permissions: {{ publish: {{ deny: ["closed.>"] }}, subscribe: {{ deny: ["closed.>"] }} }} }}
] }}
"""


@pytest.fixture
def serve(tmp_path: Path, nats_server: Path) -> Iterator[Serve]:
    """Starts servers with a configuration, and stops them."""
    servers: list[SecureNats] = []

    def start(configuration: str) -> SecureNats:
        server = SecureNats(tmp_path / f"server-{len(servers)}", *free_ports(1), nats_server, configuration)
        servers.append(server)
        server.start()
        return server

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certify(tmp_path_factory.mktemp("nats") / "tls")


def works(connectors: Connectors, url: str, **settings: str) -> bool:
    """Whether a message finds its way."""
    source, sink = connectors.source(url, "a", **settings), connectors.sink(url, **settings)
    source.connect()
    sink.connect()
    sink.send(numbered(1, "a"))
    outcomes(sink, 1)
    return receive(source, 1)[0].message.body == b"1"


def refusal(connectors: Connectors, url: str, **settings: str) -> NotConnectedError:
    with pytest.raises(NotConnectedError) as error:
        connectors.source(url, "a", **settings).connect()
    assert "\n" not in str(error.value)
    assert PASSWORD not in str(error.value)
    return error.value


# Logins


def test_a_user_with_the_right_password_gets_in(serve: Serve, connectors: Connectors) -> None:
    assert works(connectors, serve(USERS).url, **LOGIN)


def test_a_token_gets_in(serve: Serve, connectors: Connectors) -> None:
    server = serve(f'authorization {{ token: "{TOKEN}" }}\n')
    assert works(connectors, server.url, token=TOKEN)
    assert "the server refuses the login: authorization violation" in str(refusal(connectors, server.url, token="x"))


def test_a_credentials_file_gets_in(serve: Serve, connectors: Connectors, tmp_path: Path) -> None:
    server = serve(credentials(tmp_path / "good.creds"))
    credentials(tmp_path / "strange.creds")
    assert works(connectors, server.url, credentials="good.creds")
    error = refusal(connectors, server.url, credentials="strange.creds")
    assert "the server refuses the login" in str(error)


@pytest.mark.parametrize(
    "settings", [{}, {**LOGIN, "password": "wrong"}, {"token": "x"}], ids=["none", "wrong", "other"]
)
def test_a_refused_login_is_told_and_not_tried_again_soon(
    serve: Serve, connectors: Connectors, settings: dict[str, str]
) -> None:
    error = refusal(connectors, serve(USERS).url, **settings)
    assert str(error) == "the server refuses the login: authorization violation"
    assert error.back_off_seconds == 30


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "have no user JWT in them"),
        ("-----BEGIN NATS USER JWT-----\nabc\n------END NATS USER JWT------\n", "have no user seed in them"),
        (
            "-----BEGIN NATS USER JWT-----\nabc\n------END NATS USER JWT------\n"
            "-----BEGIN USER NKEY SEED-----\nSUAX\n------END USER NKEY SEED------\n",
            "have no valid user seed in them",
        ),
    ],
)
def test_a_credentials_file_that_is_none_is_told_at_once(
    connectors: Connectors, tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "bad.creds").write_text(text)
    with pytest.raises(SetupError, match=says):
        connectors.source("nats://127.0.0.1:1", "a", credentials="bad.creds")


# Rights


def test_what_it_may_not_subscribe_to_is_reported(serve: Serve, connectors: Connectors) -> None:
    source = connectors.source(serve(USERS).url, "closed.a", **LOGIN)
    with pytest.raises(NotConnectedError) as error:
        source.connect()
    assert str(error.value) == "the server does not allow the bridge to subscribe to 'closed.a'; grant it"
    assert error.value.back_off_seconds == 30


@pytest.mark.parametrize("stream", ["true", "false"])
def test_what_it_may_not_publish_to_is_refused_and_the_rest_goes_on(
    serve: Serve, connectors: Connectors, stream: str
) -> None:
    server = serve(f"jetstream {{ store_dir: js }}\n{USERS}")
    sink = connectors.sink(server.url, stream=stream, **LOGIN)
    sink.connect()
    sink.send([*numbered(1, "open.a"), *numbered(2, "closed.A", 2), *numbered(1, "open.a", 4)])

    said = [outcome.refusal for outcome in outcomes(sink, 4)]

    open_ = "no stream takes subject 'open.a'" if stream == "true" else None
    closed = "the server does not allow the bridge to publish to 'closed.A'"
    assert said == [open_, closed, closed, open_]


def test_without_jetstream_source_and_sink_say_so(serve: Serve, connectors: Connectors) -> None:
    server = serve(USERS)
    with pytest.raises(HardFailureError, match="JetStream is not enabled there; start the server with -js, or remove"):
        connectors.source(server.url, "a", stream="S", **LOGIN).connect()
    sink = connectors.sink(server.url, stream="true", **LOGIN)
    sink.connect()
    sink.send(numbered(1, "a"))
    with pytest.raises(NotConnectedError, match=r"JetStream does not answer; is it enabled \(-js\)\?"):
        outcomes(sink, 1)


# TLS


def tls_url(server: SecureNats) -> str:
    return f"tls://127.0.0.1:{server.port}"


def test_it_talks_tls(serve: Serve, connectors: Connectors, certificates: Path) -> None:
    server = serve(tls(certificates, "broker") + USERS)
    assert works(connectors, tls_url(server), tls_ca=str(certificates / "ca.pem"), **LOGIN)


def test_it_shows_its_own_certificate_where_that_is_wanted(
    serve: Serve, connectors: Connectors, certificates: Path
) -> None:
    server = serve(tls(certificates, "broker", mutual=True))
    ca = str(certificates / "ca.pem")
    own = {"tls_certificate": str(certificates / "bridge.pem"), "tls_key": str(certificates / "bridge.key")}
    assert works(connectors, tls_url(server), tls_ca=ca, **own)
    said = str(refusal(connectors, tls_url(server), tls_ca=ca))
    assert "it wants a certificate of the bridge (tls.certificate)" in said


@pytest.mark.parametrize(
    ("server_has", "bridge_trusts", "says"),
    [
        ("broker", "bridge", "its certificate is not to be trusted: unable to get local issuer certificate"),
        ("other", "ca", "its certificate is not to be trusted: IP address mismatch"),
        ("expired", "ca", "its certificate is not to be trusted: certificate has expired; it has to be renewed"),
    ],
)
def test_a_certificate_that_is_not_to_be_trusted_is_reported(
    serve: Serve, connectors: Connectors, certificates: Path, server_has: str, bridge_trusts: str, says: str
) -> None:
    server = serve(tls(certificates, server_has))
    assert says in str(refusal(connectors, tls_url(server), tls_ca=str(certificates / f"{bridge_trusts}.pem")))
    assert works(connectors, tls_url(server), tls_verify="false")


def test_a_bad_certificate_file_is_told_at_once(connectors: Connectors, tmp_path: Path) -> None:
    (tmp_path / "bad.pem").write_text("nothing")
    with pytest.raises(SetupError, match=r"'src': TLS cannot use .*bad\.pem"):
        connectors.source("tls://127.0.0.1:1", "a", tls_ca="bad.pem")


def test_nothing_is_sent_in_the_clear_where_tls_is_wanted(serve: Serve, connectors: Connectors) -> None:
    assert str(refusal(connectors, tls_url(serve(USERS)), **LOGIN)) == (
        "the server offers no TLS; nothing is sent to it in the clear"
    )


def test_plain_nats_to_a_tls_server_says_what_to_write(
    serve: Serve, connectors: Connectors, certificates: Path
) -> None:
    server = serve(tls(certificates, "broker"))
    expected = "the server requires TLS; write tls:// in place of nats:// in its url"
    assert str(refusal(connectors, server.url)) == expected


# What is not a server


@pytest.mark.parametrize(
    ("greeting", "says"),
    [
        (b"220 mail.example ESMTP\r\n", "it does not greet like a NATS server; is this its client port?"),
        (b"INFO {no json}\r\n", "it does not greet like a NATS server; is this its client port?"),
        (b"", "it does not greet like a NATS server; is this its client port?"),
    ],
)
def test_what_is_no_nats_server_is_reported(connectors: Connectors, greeting: bytes, says: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(greeting)

        thread = threading.Thread(target=greet)
        thread.start()
        assert str(refusal(connectors, f"nats://127.0.0.1:{listener.getsockname()[1]}")) == says
        thread.join()


def test_bytes_that_are_no_protocol_end_the_connection_in_one_line(
    connectors: Connectors, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b'INFO {"max_payload":1048576,"headers":true}\r\n')
                connection.recv(1000)
                connection.sendall(b"PONG\r\n")
                connection.recv(1000)
                connection.sendall(b"PONG\r\n" * 2 + b"INFO {nonsense}\r\n")
                connection.recv(1000)

        thread = threading.Thread(target=answer)
        thread.start()
        sink = connectors.sink(f"nats://127.0.0.1:{listener.getsockname()[1]}")
        sink.connect()
        with pytest.raises(NotConnectedError):
            outcomes(sink, 1, 5)
        sink.close()
        thread.join()
    assert "Traceback" not in "".join(capsys.readouterr())


def test_the_connection_has_a_name(jetstream: NatsHarness, connectors: Connectors) -> None:
    assert connectors.source(jetstream.url, "a")._connection._name == "b1.src"
    assert connectors.source(jetstream.url, "a", **{"client-id": "me"})._connection._name == "me.src"
