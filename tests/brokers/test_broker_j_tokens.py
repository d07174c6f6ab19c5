"""Logins to Qpid Broker-J by access tokens over XOAUTH2; it asks their issuer for the user that each belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.connectors.base import NotConnectedError, Outgoing
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.system import connector
from engine.embedded.ports import LOOPBACK
from engine.message import Message
from engine.openid.access_tokens import access_tokens
from tests.brokers.broker import PASSWORD, USER, Protocol
from tests.brokers.broker_j import BrokerJ
from tests.brokers.connections import received
from tests.brokers.rest import call
from tests.brokers.token_logins import NAMES, SECONDS, check_refused_client, check_renewals, configured, ends_of, login
from tests.certificates import certify
from tests.token_issuer import CLIENT, TokenIssuer
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from engine.connectors.base import Sink, Source

    Make = Callable[[Mapping[str, str]], tuple[Source, Sink]]

pytestmark = pytest.mark.brokers

OF_A_LARGE_ISSUER = {"groups": [f"/departments/readers/{number}" for number in range(500)]}
"""Claims of some 20 KB, as of an issuer that names all groups of a client."""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certify(tmp_path_factory.mktemp("tls") / "made")


@pytest.fixture(scope="module")
def the_issuer(certificates: Path) -> Iterator[TokenIssuer]:
    with TokenIssuer(certificates / "broker.pem", certificates / "broker.key") as issuer:
        yield issuer


@pytest.fixture(scope="module")
def broker(the_issuer: TokenIssuer, certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerJ]:
    made = BrokerJ(tmp_path_factory.mktemp("b"))
    made.take_tokens(the_issuer.url, certificates)
    with made as started:
        started.create("orders")
        yield started


@pytest.fixture
def issuer(the_issuer: TokenIssuer) -> TokenIssuer:
    """The issuer, whose tokens hold for long, without those that another test was given."""
    access_tokens.cache_clear()
    the_issuer.claims, the_issuer.seconds = {}, 1000
    the_issuer.asked.clear()
    the_issuer.revoked.clear()
    return the_issuer


@pytest.fixture
def keys(broker: BrokerJ, certificates: Path) -> Mapping[str, str]:
    """Keys of both ends for the port that takes tokens."""
    authority = str(certificates / "ca.pem")
    url = f"amqps://{LOOPBACK}:{broker.ports['tokens']}"
    return {".type": "amqp", ".url": url, ".tls.ca": authority}


@pytest.fixture
def client(certificates: Path, issuer: TokenIssuer) -> Mapping[str, str]:
    """Keys of the client of the issuer, which names the users of tokens with the scope `openid`."""
    return {**login(issuer), ".oauthbearer.ca": str(certificates / "ca.pem"), ".oauthbearer.scope": "openid"}


@pytest.fixture
def made() -> Iterator[Make]:
    """Makes a source and a sink of one queue, which are not connected."""
    ends: list[Source | Sink] = []

    def make(keys: Mapping[str, str]) -> tuple[Source, Sink]:
        source, sink = ends_of(configured(keys))
        ends.extend((source, sink))
        return source, sink

    yield make
    for each in ends:
        each.close()


@pytest.fixture
def ends(made: Make, keys: Mapping[str, str], client: Mapping[str, str]) -> tuple[Source, Sink]:
    return made({**keys, **client})


def exchange(source: Source, sink: Sink, text: bytes) -> None:
    """Connects both, and has one message go through the broker."""
    source.connect()
    sink.connect()
    sink.send([Outgoing(1, Message(text), "queue/orders", "1")])
    until(lambda: [each.refusal for each in sink.outcomes(0.1)] == [None], 20, "the broker has the message")
    assert [each.message.body for each in received(source, 1, alone=True)] == [text]


def refusal(end: Source | Sink) -> NotConnectedError:
    with pytest.raises(NotConnectedError) as raised:
        end.connect()
    assert "\n" not in str(raised.value)
    return raised.value


def test_a_message_goes_through_and_the_broker_knows_whose_it_is(
    broker: BrokerJ, ends: tuple[Source, Sink], issuer: TokenIssuer
) -> None:
    exchange(*ends, b"1")
    found = call(broker.ports["management"], "/api/latest/connection")
    assert {(each["principal"], each["port"], each["transport"]) for each in found} == {(CLIENT, "tokens", "SSL")}
    assert issuer.asked.count("/userinfo") == 2


def test_a_token_may_be_much_larger_than_a_frame_of_sasl(ends: tuple[Source, Sink], issuer: TokenIssuer) -> None:
    issuer.claims = OF_A_LARGE_ISSUER
    exchange(*ends, b"2")
    assert len(issuer.tokens[-1]) > 15_000


def test_connections_outlive_their_tokens_and_nothing_is_lost_or_comes_twice(
    ends: tuple[Source, Sink], issuer: TokenIssuer
) -> None:
    issuer.seconds = SECONDS
    check_renewals(*ends)


def test_the_doctor_logs_in(keys: Mapping[str, str], client: Mapping[str, str]) -> None:
    config = configured({**keys, **client})
    endpoint, system = SystemEndpoint.of(config, config.sources[0]), connector(config.sources[0].type)
    assert "takes the login" in system.check_connection(endpoint, "doctor")


def test_a_wrong_secret_is_told(keys: Mapping[str, str], client: Mapping[str, str], issuer: TokenIssuer) -> None:
    check_refused_client({**client, **keys}, issuer)


def test_a_token_that_the_broker_does_not_take_is_told(
    made: Make, keys: Mapping[str, str], client: Mapping[str, str], issuer: TokenIssuer
) -> None:
    ends = made({**keys, **client, ".oauthbearer.scope": "profile"})
    for end, name in zip(ends, NAMES, strict=True):
        told = refusal(end)
        assert str(told) == (
            f"the broker refuses the access token of the client '{CLIENT}'; correct {name}.oauthbearer.scope, or allow "
            "the client at the broker, whose log may say more"
        )
        assert told.back_off_seconds == 30
        assert issuer.tokens[-1] not in str(told)


def test_a_token_that_is_revoked_is_replaced_at_once(ends: tuple[Source, Sink], issuer: TokenIssuer) -> None:
    for end in ends:
        end.connect()
        end.close()
    issuer.revoked.update(issuer.tokens)
    issuer.claims = {"jti": "another"}
    for end in ends:
        assert refusal(end).back_off_seconds is None
    exchange(*ends, b"3")


def test_the_mechanism_can_be_named(made: Make, keys: Mapping[str, str], client: Mapping[str, str]) -> None:
    exchange(*made({**keys, **client, ".mechanism": "XOAUTH2", ".username": "reader"}), b"4")


@pytest.mark.parametrize("mechanism", ["OAUTHBEARER", "PLAIN"])
def test_a_mechanism_that_it_does_not_offer_is_told(
    made: Make, keys: Mapping[str, str], client: Mapping[str, str], mechanism: str
) -> None:
    ends = made({**keys, **client, ".mechanism": mechanism})
    for end, name in zip(ends, NAMES, strict=True):
        why = f"the broker offers XOAUTH2, and {name}.mechanism is {mechanism}; correct one of them"
        assert str(refusal(end)) == why


def test_a_port_for_passwords_takes_no_token(broker: BrokerJ, made: Make, client: Mapping[str, str]) -> None:
    settings = broker.settings(Protocol.AMQP)
    for end in made({**client, **{key: settings[key] for key in (".type", ".url")}}):
        assert str(refusal(end)) == (
            "the broker offers CRAM-MD5, SCRAM-SHA-1, SCRAM-SHA-256; the bridge logs in by OAUTHBEARER, XOAUTH2, "
            "PLAIN, so allow one of these at the broker"
        )


@pytest.mark.parametrize("login_keys", [{}, {".username": USER, ".password": PASSWORD}], ids=["none", "password"])
def test_a_port_for_tokens_asks_for_them(made: Make, keys: Mapping[str, str], login_keys: Mapping[str, str]) -> None:
    for end, name in zip(made({**keys, **login_keys}), NAMES, strict=True):
        why = f"the broker offers XOAUTH2, so it wants access tokens; set {name}.oauthbearer.client.id"
        assert str(refusal(end)) == why
