"""Who may see the pages of the HTTP server, over TLS, and how long a client may take."""

from __future__ import annotations

import logging
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from prometheus_client import CollectorRegistry
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from engine.errors import SetupError
from engine.telemetry import http
from engine.telemetry.http import HttpServer, application, metrics_only
from engine.telemetry.http_section import HttpConfig
from engine.telemetry.status import StatusBoard
from routes.config import lint_text
from tests.certificates import certify
from tests.waiting import until

Serve = Callable[[HttpConfig], str]

LOOPBACK = HttpConfig("127.0.0.1", 0)
LOGIN = replace(LOOPBACK, token="t0ken", username="prometheus", password="pass:w\u00f6rd")
PAGES = ("/", "/metrics", "/ready", "/health", "/nothing")
START = "bridge.id=b\nsource.s.type=stomp\nsource.s.destinations=queue:q\nroutes.r.in.include=TRUE\n"


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers; gives their URLs."""
    with ExitStack() as running:

        def start(config: HttpConfig) -> str:
            pages = [Route("/", lambda _: PlainTextResponse("for people"))]
            app = application(StatusBoard([]), CollectorRegistry(), pages=pages)
            return running.enter_context(HttpServer(config, app)).url

        yield start


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certify(tmp_path_factory.mktemp("http") / "tls")


def answer(connection: HTTPConnection, path: str, authorization: str | None = None) -> tuple[int, dict[str, str]]:
    connection.request("GET", path, headers={} if authorization is None else {"Authorization": authorization})
    got = connection.getresponse()
    got.read()
    return got.status, {name.lower(): value for name, value in got.getheaders()}


def codes(url: str, authorization: str | None = None) -> list[int]:
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=10)) as connection:
        return [answer(connection, path, authorization)[0] for path in PAGES]


def basic(text: str) -> str:
    return f"Basic {b64encode(text.encode()).decode()}"


# Logins


def test_without_a_login_configured_everybody_sees_everything(serve: Serve) -> None:
    assert codes(serve(LOOPBACK)) == [200, 200, 200, 200, 404]


@pytest.mark.parametrize("shown", ["Bearer t0ken", "bearer t0ken", basic("prometheus:pass:w\u00f6rd")])
def test_a_login_opens_all_pages(serve: Serve, shown: str) -> None:
    assert codes(serve(LOGIN), shown) == [200, 200, 200, 200, 404]


@pytest.mark.parametrize(
    "shown",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer t0ke",
        "Bearer t0kenn",
        "Bearer T0KEN",
        "Basic t0ken",
        "Basic !!!",
        basic("prometheus:"),
        basic("prometheus:pass"),
        basic(":pass:w\u00f6rd"),
        f"Bearer {b64encode(b'prometheus:pass').decode()}",
        "Digest username=prometheus",
        "t0ken",
        "\xff\xfe",
        "Bearer " + "x" * 30_000,
    ],
)
def test_without_the_right_one_only_health_is_open(serve: Serve, shown: str | None) -> None:
    assert codes(serve(LOGIN), shown) == [401, 401, 401, 200, 401]


def test_it_says_how_to_log_in(serve: Serve) -> None:
    with closing(HTTPConnection(urlsplit(serve(LOGIN)).netloc, timeout=10)) as connection:
        connection.request("GET", "/metrics")
        got = connection.getresponse()
    assert got.headers.get_all("www-authenticate") == [
        'Bearer realm="jms-bridge", charset="UTF-8"',
        'Basic realm="jms-bridge", charset="UTF-8"',
    ]


def test_a_path_that_only_looks_like_the_open_one_is_closed(serve: Serve) -> None:
    url = serve(LOGIN)
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=10)) as connection:
        found = [
            answer(connection, path)[0] for path in ("//health", "/health/", "/health/../metrics", "/metrics?/health")
        ]
    assert found == [401] * 4


def test_no_repr_shows_a_login() -> None:
    assert "t0ken" not in repr(LOGIN)
    assert "pass:w" not in repr(LOGIN)


def test_a_name_of_another_machine_leads_nowhere_without_a_login(serve: Serve) -> None:
    with closing(HTTPConnection(urlsplit(serve(LOOPBACK)).netloc, timeout=10)) as connection:
        for path, code in (("/", 421), ("/metrics", 421), ("/ready", 421), ("/nothing", 421), ("/health", 200)):
            connection.request("GET", path, headers={"Host": "evil.example"})
            got = connection.getresponse()
            got.read()
            assert got.status == code, path


@pytest.mark.parametrize("config", [LOOPBACK, LOGIN], ids=["open", "login"])
def test_no_answer_is_taken_for_something_else(serve: Serve, config: HttpConfig) -> None:
    with closing(HTTPConnection(urlsplit(serve(config)).netloc, timeout=10)) as connection:
        for path in PAGES:
            for shown in (None, "Bearer t0ken"):
                assert answer(connection, path, shown)[1]["x-content-type-options"] == "nosniff"


# TLS


def test_a_client_that_trusts_the_authority_reads_over_tls(serve: Serve, certificates: Path) -> None:
    url = serve(replace(LOGIN, certificate=certificates / "broker.pem", key=certificates / "broker.key"))
    assert url.startswith("https://127.0.0.1:")
    trusting = ssl.create_default_context(cafile=certificates / "ca.pem")
    with closing(HTTPSConnection(urlsplit(url).netloc, timeout=10, context=trusting)) as connection:
        assert answer(connection, "/metrics", "Bearer t0ken")[0] == 200
        assert answer(connection, "/metrics")[0] == 401
    stranger = ssl.create_default_context(cafile=certificates / "stranger.pem")
    with (
        closing(HTTPSConnection(urlsplit(url).netloc, timeout=10, context=stranger)) as connection,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        connection.connect()


def test_a_plain_request_to_it_gets_nothing(serve: Serve, certificates: Path) -> None:
    url = serve(replace(LOGIN, certificate=certificates / "broker.pem", key=certificates / "broker.key"))
    where = urlsplit(url)
    with socket.create_connection((where.hostname or "", where.port or 0), 10) as plain:
        plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t0ken\r\n\r\n")
        assert b"HTTP" not in plain.recv(1000)


def test_a_file_that_is_no_certificate_is_named(tmp_path: Path) -> None:
    bad = tmp_path / "bad.pem"
    bad.write_text("nothing")
    with pytest.raises(SetupError, match=r"^http\.tls: TLS cannot use .*bad\.pem, .*bad\.pem: "):
        HttpServer(replace(LOOPBACK, certificate=bad, key=bad), application(StatusBoard([]), CollectorRegistry()))


# Metrics and health beside


def test_metrics_have_an_address_of_their_own_without_a_login_and_pages(serve: Serve) -> None:
    beside = metrics_only(replace(LOGIN, metrics_host="127.0.0.1", metrics_port=0))
    assert beside == LOOPBACK
    with HttpServer(
        beside, application(StatusBoard([]), CollectorRegistry()), setting="http.metrics-address"
    ) as server:
        assert codes(server.url) == [404, 200, 200, 200, 404]
        with pytest.raises(SetupError, match=r"^http\.metrics-address=127\.0\.0\.1:\d+ is in use; set http\.metrics-a"):
            HttpServer(
                HttpConfig("127.0.0.1", urlsplit(server.url).port or 0),
                application(StatusBoard([]), CollectorRegistry()),
                setting="http.metrics-address",
            )
    assert metrics_only(LOGIN) is None


# What the configuration has to say


@pytest.mark.parametrize(
    ("lines", "messages"),
    [
        ("http.address=127.0.0.1:0", []),
        ("http.address=[::1]:0", []),
        ("http.address=localhost:0", []),
        ("http.address=127.1.2.3:0", []),
        ("http.address=0.0.0.0:8480", ["nobody has to log in", "there is no TLS"]),
        ("http.address=[::]:8480", ["nobody has to log in", "there is no TLS"]),
        ("http.address=bridge.example:8480", ["nobody has to log in", "there is no TLS"]),
        ("http.address=0.0.0.0:8480\nhttp.token=a", ["there is no TLS"]),
        ("http.address=0.0.0.0:8480\nhttp.username=a\nhttp.password=b", ["there is no TLS"]),
        ("http.address=0.0.0.0:8480\nhttp.tls.certificate=ca.pem\nhttp.tls.key=ca.key", ["nobody has to log in"]),
        ("http.address=0.0.0.0:8480\nhttp.token=a\nhttp.tls.certificate=ca.pem\nhttp.tls.key=ca.key", []),
        ("http.address=0.0.0.0:8480\nhttp.insecure=true", ["nobody has to log in"]),
        ("http.address=0.0.0.0:8480\nhttp.insecure=true\nhttp.token=a", []),
        ("http.address=0.0.0.0:8480\nhttp.insecure=true\nhttp.username=a\nhttp.password=b", []),
        ("http.metrics-address=127.0.0.1:8481", []),
        ("http.metrics-address=0.0.0.0:8481", ["which has no login and no TLS"]),
        ("http.metrics-address=0.0.0.0:8481\nhttp.token=a", ["which has no login and no TLS"]),
        ("http.metrics-address=0.0.0.0:8481\nhttp.insecure=true", []),
        ("http.metrics-address=127.0.0.1:8480", ["port 8480 is also the one of 'http.address'"]),
        ("http.address=0.0.0.0:8480\nhttp.insecure=false", ["nobody has to log in", "there is no TLS"]),
        ("http.username=a", ["a user name without a password"]),
        ("http.password=s3cret", ["a password without a user name"]),
        ("http.username=a:b\nhttp.password=c", ["a user name with a colon"]),
        ("http.tls.certificate=ca.pem", ["a certificate without its private key"]),
        ("http.tls.key=ca.key", ["a private key without its certificate"]),
        ("http.tls.certificate=no.pem\nhttp.tls.key=ca.key", ["there is no file 'no.pem'"]),
        ("http.token=two words", ["the value is not a token"]),
    ],
)
def test_what_other_machines_can_reach_has_a_login_and_tls(certificates: Path, lines: str, messages: list[str]) -> None:
    faults = lint_text(f"{START}routes.r.out.topic=t\n{lines}\n", certificates).faults
    assert [message for message in messages if message not in "".join(str(fault) for fault in faults)] == []
    assert len(faults) == len(messages)


def test_a_fault_of_a_token_does_not_show_it() -> None:
    (fault,) = lint_text(f"{START}routes.r.out.topic=t\nhttp.token=two s3cret words\n").faults
    assert "s3cret" not in f"{fault}{fault!r}"


# Clients that take their time


def connect(url: str) -> socket.socket:
    where = urlsplit(url)
    return socket.create_connection((where.hostname or "", where.port or 0), 10)


def is_left(connection: socket.socket, seconds: float) -> bool:
    connection.settimeout(seconds)
    try:
        return connection.recv(1000) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def test_who_sends_a_request_byte_by_byte_is_left(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_REQUEST_SECONDS", 0.5)
    with connect(serve(LOOPBACK)) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\n")
        deadline = time.monotonic() + 5
        left = False
        while not left and time.monotonic() < deadline:
            try:
                slow.sendall(b"x: y\r\n")
            except ConnectionError:
                left = True
            else:
                left = is_left(slow, 0.1)
        assert left


def test_who_says_nothing_is_left(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_REQUEST_SECONDS", 0.5)
    with connect(serve(LOOPBACK)) as silent:
        assert is_left(silent, 5)


def test_who_holds_many_connections_pushes_out_its_own(serve: Serve) -> None:
    url = serve(LOOPBACK)
    with ExitStack() as opened:
        many = [opened.enter_context(connect(url)) for _ in range(http._MOST_CONNECTIONS + 20)]
        assert codes(url) == [200, 200, 200, 200, 404]
        assert is_left(many[0], 5)
        assert not is_left(many[-1], 0.1)


def test_of_many_that_come_at_once_no_more_stay_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_MOST_CONNECTIONS", 20)
    server = HttpServer(LOOPBACK, application(StatusBoard([]), CollectorRegistry()))
    with ExitStack() as opened:
        # The server's socket listens already: what connects now is accepted in one turn of its loop.
        many = [opened.enter_context(connect(server.url)) for _ in range(100)]
        opened.enter_context(server)
        assert codes(server.url) == [404, 200, 200, 200, 404]
        until(lambda: sum(is_left(each, 0.001) for each in many) >= 80, seconds=5)
        assert not is_left(many[-1], 0.1)


def test_who_does_not_begin_with_tls_is_left(serve: Serve, certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_HANDSHAKE_SECONDS", 0.5)
    url = serve(replace(LOOPBACK, certificate=certificates / "broker.pem", key=certificates / "broker.key"))
    with connect(url) as silent:
        assert is_left(silent, 5)


def requested(url: str, line: bytes) -> bytes:
    """The beginning of the answer to a request with one more line in its head."""
    with connect(url) as connection:
        head = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n" + line + b"\r\n\r\n"
        assert len(head) < 200_000
        try:
            connection.sendall(head)
            return connection.recv(100)
        except ConnectionError:
            return b""


@pytest.mark.parametrize(("size", "taken"), [(60_000, True), (65_000, True), (66_000, False), (100_000, False)])
def test_a_head_has_64_kib(serve: Serve, size: int, taken: bool) -> None:
    found = requested(serve(LOOPBACK), b"x: " + b"y" * size)
    assert found.startswith(b"HTTP/1.1 200") is taken
    assert taken or found == b"" or found.startswith(b"HTTP/1.1 4")


@pytest.mark.parametrize(
    "flood",
    [
        b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 100_000,
        b"GET / HTTP/1.1\r\nx: " + b"y" * 10_000_000,
        b"GET /" + b"a" * 10_000_000,
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n" + b"z" * 1_000_000,
        b"\x16\x03\x01" + b"\0" * 1000,
        b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    ],
    ids=["headers", "a header", "a path", "a body", "TLS", "a chunk"],
)
def test_what_is_no_request_is_refused_in_bounded_memory(
    serve: Serve, flood: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    url = serve(LOOPBACK)
    caplog.set_level(logging.WARNING)
    with connect(url) as hostile:
        try:
            hostile.sendall(flood)
            assert hostile.recv(100).startswith(b"HTTP/1.1 ")
        except ConnectionError:
            pass  # left in the middle of it
    assert codes(url) == [200, 200, 200, 200, 404]
    assert caplog.messages == []
