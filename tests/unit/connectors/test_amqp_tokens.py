"""Logins to AMQP brokers by access tokens: the exchange with a broker of the test, and what a configuration may say."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from engine.connectors.amqp import performatives
from engine.connectors.amqp.frames import AMQP, PROTOCOL_HEADER, SASL, SASL_HEADER, AmqpFrameParser, frame
from engine.connectors.amqp.performatives import Code, field
from engine.connectors.amqp.server_performatives import begun, opened, sasl_mechanisms, sasl_outcome
from engine.connectors.amqp.session import AmqpSession
from engine.connectors.base import LoginEndsError, NotConnectedError
from routes.config import lint_text, loads
from tests.token_issuer import CLIENT, SECRET, TokenIssuer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.connectors.amqp.settings import AmqpConfig

BASE = (
    "bridge.id=b\nroutes.a.in.include=TRUE\nroutes.a.out.topic=t\nsource.s.type=amqp\nsource.s.destinations=queue:a\n"
)


class TokenBroker:
    """Broker that offers mechanisms, and takes the tokens that it is told."""

    def __init__(self, *offered: str) -> None:
        self.offered = offered
        self.taken: set[str] = set()
        self.shown: list[tuple[str, bytes]] = []
        """Mechanism and initial response of each login."""
        self.answers: list[bytes] = []
        """What clients answered to a reason."""
        self.repeats = False
        """True if a reason has what the client has shown."""
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"amqp://127.0.0.1:{self._server.getsockname()[1]}"
        Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                with connection:
                    self._welcome(connection, AmqpFrameParser())

    def _welcome(self, connection: socket.socket, parser: AmqpFrameParser) -> None:
        def expect(code: Code) -> list[Any]:
            data = b""
            while True:
                found = parser.one(data)
                data = b"" if found else connection.recv(4096)
                if found and found[2]:
                    read, fields = performatives.read(found[2])
                    if read == code:
                        return fields
                elif not found and not data:
                    raise ConnectionError

        def greet(header: bytes) -> None:
            data = b""
            while parser.header(data) is None:
                data = connection.recv(8)
            connection.sendall(header)

        greet(SASL_HEADER)
        connection.sendall(frame(0, sasl_mechanisms(self.offered), SASL))
        asked = expect(Code.SASL_INIT)
        mechanism, response = str(field(asked, 0)), bytes(field(asked, 1) or b"")
        self.shown.append((mechanism, response))
        is_taken = any(token.encode() in response for token in self.taken)
        if not is_taken and mechanism != "PLAIN":
            why = response if self.repeats else b'{"status":"invalid_token"}'
            reason = performatives.performative(Code.SASL_CHALLENGE, why)
            connection.sendall(frame(0, reason, SASL))
            self.answers.append(bytes(field(expect(Code.SASL_RESPONSE), 0) or b""))
        connection.sendall(frame(0, sasl_outcome(welcome=is_taken), SASL))
        if is_taken:
            greet(PROTOCOL_HEADER)
            expect(Code.OPEN)
            connection.sendall(frame(0, opened("x", 0, 4096, 1, (), "1"), AMQP) + frame(0, begun(0, 1), AMQP))
            with suppress(ConnectionError):
                expect(Code.CLOSE)


@pytest.fixture
def issuer() -> Iterator[TokenIssuer]:
    with TokenIssuer() as issuer:
        yield issuer


def lines(issuer: TokenIssuer, url: str = "amqp://127.0.0.1:1", secret: str = SECRET) -> str:
    keys = {
        "url": url,
        "heartbeat": "10s",
        "oauthbearer.issuer": issuer.url,
        "oauthbearer.client.id": CLIENT,
        "oauthbearer.client.secret": secret,
    }
    return BASE + "".join(f"source.s.{key}={text}\n" for key, text in keys.items())


def session(issuer: TokenIssuer, broker: TokenBroker, more: str = "", secret: str = SECRET) -> AmqpSession:
    settings: AmqpConfig = loads(lines(issuer, broker.url, secret) + more).sources[0]  # type: ignore[assignment]
    return AmqpSession(settings, "source 's'", broker.url, "b.s.1")


@pytest.mark.parametrize(
    ("offered", "mechanism", "form"),
    [
        pytest.param(
            ("PLAIN", "XOAUTH2", "OAUTHBEARER"), "OAUTHBEARER", "n,a=bridge,\1auth=Bearer {}\1\1", id="bearer"
        ),
        pytest.param(("PLAIN", "XOAUTH2"), "XOAUTH2", "user=bridge\1auth=Bearer {}\1\1", id="xoauth2"),
        pytest.param(("PLAIN", "AMQPLAIN"), "PLAIN", "\0bridge\0{}", id="plain"),
    ],
)
def test_the_token_goes_by_what_the_broker_offers(
    issuer: TokenIssuer, offered: tuple[str, ...], mechanism: str, form: str
) -> None:
    broker, issuer.claims = TokenBroker(*offered), {"jti": mechanism}
    broker.taken.add("eyJ")
    own = session(issuer, broker)
    own.open()
    own.close()
    broker.close()
    assert broker.shown == [(mechanism, form.format(issuer.tokens[0]).encode())]


def test_a_token_that_is_taken_no_more_is_replaced_at_once_and_a_new_one_not_soon(issuer: TokenIssuer) -> None:
    broker, own = TokenBroker("OAUTHBEARER"), None
    broker.taken.add("eyJ")
    own = session(issuer, broker)
    own.open()
    own.close()
    issuer.claims = {"jti": "2"}
    broker.taken.clear()
    with pytest.raises(NotConnectedError, match="refuses the access token of the client 'bridge'") as raised:
        own.open()
    assert raised.value.back_off_seconds is None
    assert '{"status":"invalid_token"}' in str(raised.value)
    assert issuer.tokens[0] not in str(raised.value)
    with pytest.raises(NotConnectedError) as again:
        own.open()
    assert again.value.back_off_seconds == 30
    assert len(issuer.tokens) == 2
    assert broker.answers == [b"\1", b"\1"]
    broker.close()


def test_a_refusal_says_what_to_correct_and_not_the_token_that_the_broker_repeats(issuer: TokenIssuer) -> None:
    broker = TokenBroker("XOAUTH2")
    broker.repeats = True
    with pytest.raises(NotConnectedError) as raised:
        session(issuer, broker).open()
    broker.close()
    assert str(raised.value) == (
        "the broker refuses the access token of the client 'bridge': user=bridge auth=Bearer …; correct "
        "source.s.oauthbearer.scope, or allow the client at the broker, whose log may say more"
    )


def test_a_connection_ends_before_its_token_when_nothing_is_under_way(issuer: TokenIssuer) -> None:
    broker, issuer.seconds = TokenBroker("OAUTHBEARER"), 3
    broker.taken.add("eyJ")
    own = session(issuer, broker)
    own.open()
    own.check_login(is_idle=True)
    time.sleep(2.5)
    own.check_login(is_idle=False)
    with pytest.raises(LoginEndsError, match="its access token expires soon"):
        own.check_login(is_idle=True)
    own.close()
    broker.close()


def test_an_issuer_that_gives_no_token_keeps_the_source_waiting(issuer: TokenIssuer) -> None:
    broker = TokenBroker("OAUTHBEARER")
    with pytest.raises(NotConnectedError, match=r"correct source\.s\.oauthbearer\.client\.id or") as refused:
        session(issuer, broker, secret="guessed-wrong").open()
    assert refused.value.back_off_seconds == 30
    issuer.is_away = True
    with pytest.raises(NotConnectedError, match="the issuer of tokens does not answer") as away:
        session(issuer, broker, secret="other-wrong").open()
    assert away.value.back_off_seconds is None
    broker.close()
    assert broker.shown == []


def test_a_mechanism_that_the_broker_does_not_offer_is_told_with_its_key(issuer: TokenIssuer) -> None:
    broker = TokenBroker("PLAIN", "OAUTHBEARER")
    with pytest.raises(NotConnectedError, match=r"offers PLAIN, OAUTHBEARER, and source\.s\.mechanism is XOAUTH2"):
        session(issuer, broker, "source.s.mechanism=xoauth2\n").open()
    broker.close()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        pytest.param("source.s.password=secret-2", "two ways to log in", id="a password as well"),
        pytest.param("source.s.mechanism=SCRAM-SHA-256", "SCRAM-SHA-256 does not take access tokens", id="scram"),
        pytest.param(
            "source.s.url=amqp://h.example", "the access token goes over the network in the clear", id="clear"
        ),
        pytest.param("source.s.oauthbearer.ca=none.pem", "there is no file 'none.pem'", id="no file"),
        pytest.param("source.s.oauthbearer.token.endpoint.url=https://i/t", "are both set", id="two addresses"),
    ],
)
def test_what_a_login_by_tokens_cannot_be(issuer: TokenIssuer, more: str, message: str) -> None:
    found = [each.message for each in lint_text(f"{lines(issuer)}{more}\n").faults]
    assert any(message in each for each in found), found


def test_a_mechanism_for_tokens_needs_them() -> None:
    found = lint_text(f"{BASE}source.s.mechanism=OAUTHBEARER\n").errors
    assert [each.message for each in found] == ["OAUTHBEARER needs access tokens"]


def test_the_secret_is_masked(issuer: TokenIssuer) -> None:
    (source,) = loads(lines(issuer)).sources
    assert SECRET in source.secrets
    assert SECRET not in repr(source)


def test_an_issuer_that_is_away_is_told_without_an_address(issuer: TokenIssuer) -> None:
    issuer.is_away = True
    more = "source.s.backup-urls=amqp://127.0.0.1:2\n"
    settings: AmqpConfig = loads(lines(issuer) + more).sources[0]  # type: ignore[assignment]
    with pytest.raises(NotConnectedError, match=r"^the issuer of tokens does not answer"):
        AmqpSession(settings, "source 's'", "amqp://127.0.0.1:1", "b.s.1").open()
