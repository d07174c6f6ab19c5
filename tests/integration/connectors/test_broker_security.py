"""STOMP, AMQP and JMS clients over TLS and with a login, at an Artemis that wants both: what works, and what not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from engine.connectors.base import NotConnectedError, Outcome, Outgoing
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.system import connector
from engine.embedded.artemis import artemis_home
from engine.message import Message
from engine.telemetry.status import State
from tests.certificates import STORE_PASSWORD, keep
from tests.conftest import JARS
from tests.integration.connectors.jms_harness import client
from tests.integration.connectors.secure import NO_MANAGER, PASSWORD, USER, SecureArtemis
from tests.waiting import patience, until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.integration.connectors.conftest import Configure, MakeEnds, Start

UNTRUSTED = "its certificate is not to be trusted: "
SCHEMES = {"stomp": ("stomp", "stomp+ssl"), "amqp": ("amqp", "amqps")}
QPID = "org.apache.qpid.jms.JmsConnectionFactory"
REFUSED = {
    "stomp": "the broker says: Security Error occurred: User name [bridge] or password is invalid",
    "amqp": "the broker refuses the login of user 'bridge'",
}


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureArtemis]:
    server = SecureArtemis(tmp_path_factory.mktemp("secure"), JARS)
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=["stomp", "amqp"])
def protocol(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def settings(protocol: str, secure: SecureArtemis, queue: str, port: str = "port", **more: str) -> dict[str, str]:
    return {
        ".type": protocol,
        ".url": f"{SCHEMES[protocol][1]}://127.0.0.1:{getattr(secure, port)}",
        ".destinations": f"queue:{queue}",
        ".username": USER,
        ".password": PASSWORD.replace("\\", "\\\\"),
        ".tls.ca": str(secure.certificates / "ca.pem"),
        ".heartbeat": "1s",
    } | {f".{key.replace('_', '.')}": value for key, value in more.items()}


def test_it_logs_in_over_tls_and_waits_there_with_heart_beats(
    protocol: str, secure: SecureArtemis, configured: Configure, start: Start, queue: str
) -> None:
    source = start(configured(settings(protocol, secure, queue)))
    until(lambda: source.connected)

    # Artemis hangs up on a client that it has not heard of for two seconds.
    with pytest.raises(AssertionError, match="not within"):
        until(lambda: not source.connected, 5)

    assert source.status.current.state is State.READY
    source.stop()
    assert source.error is None


def test_a_login_that_may_manage_nothing_reads_on_and_is_told_no_number_of_waiting_messages(
    protocol: str, secure: SecureArtemis, configured: Configure, start: Start, queue: str
) -> None:
    waiting = "jmsbridge_source_waiting_messages"
    allowed = start(configured(settings(protocol, secure, queue)))
    until(lambda: allowed.registry.get_sample_value(waiting, {"source": "src"}) == 0)
    allowed.stop()

    source = start(configured(settings(protocol, secure, queue, username=NO_MANAGER)))
    until(lambda: "waiting messages not known: the broker says" in source.status.current.detail)

    assert "the login needs the permission 'manage' for activemq.management" in source.status.current.detail
    assert source.registry.get_sample_value(waiting, {"source": "src"}) is None
    assert (source.status.current.state, source.count("reconnects")) == (State.READY, 0)
    source.stop()
    assert source.error is None


def test_a_sink_sends_over_tls_and_its_heart_beats_keep_the_connection(
    protocol: str, secure: SecureArtemis, configured: Configure, queue: str
) -> None:
    config = configured(settings(protocol, secure, queue))
    names = ("type", "url", "username", "password", "tls_ca", "heartbeat_seconds")
    shared = {name: getattr(config.sources[0], name) for name in names}
    system = connector(config.sources[0].type)
    sink = system.make_sink(SystemEndpoint.of(config, system.sink(name="out", topic="t", **shared)), 1)
    sink.connect()

    deadline = time.monotonic() + 4
    while time.monotonic() < deadline:
        assert list(sink.outcomes(0.5)) == []
    large = Message(b"x" * 1_000_000)
    sink.send([Outgoing(number, large, f"queue/{queue}", str(number)) for number in range(5)])
    found: list[Outcome] = []
    deadline = time.monotonic() + patience(20)
    while len(found) < 5 and time.monotonic() < deadline:
        found += sink.outcomes(0.5)
    sink.close()

    assert sorted(outcome.number for outcome in found if outcome.refusal is None) == list(range(5))


def test_it_shows_its_own_certificate_where_that_is_wanted(
    protocol: str, secure: SecureArtemis, configured: Configure, start: Start, queue: str
) -> None:
    own = {
        "tls_certificate": str(secure.certificates / "bridge.pem"),
        "tls_key": str(secure.certificates / "bridge.key"),
    }
    source = start(configured(settings(protocol, secure, queue, "mutual_port", **own)))

    until(lambda: source.connected)


@pytest.mark.parametrize(
    ("port", "trusted", "says"),
    [
        ("port", "stranger", f"{UNTRUSTED}unable to get local issuer certificate; tls.ca has to name the certificate"),
        (
            "other_port",
            "ca",
            f"{UNTRUSTED}IP address mismatch, certificate is not valid for '127.0.0.1'; connect by a name that is in",
        ),
        ("expired_port", "ca", f"{UNTRUSTED}certificate has expired; it has to be renewed"),
        (
            "mutual_port",
            "ca",
            "TLS failed: sslv3 alert bad certificate; it wants a certificate of the bridge (tls.certificate)",
        ),
        ("plain_port", "ca", "; is this a TLS port?"),
    ],
    ids=["authority", "host", "expired", "client certificate", "no TLS there"],
)
@pytest.mark.usefixtures("impatient")
def test_a_broker_that_cannot_be_trusted_gets_no_login(
    protocol: str,
    secure: SecureArtemis,
    configured: Configure,
    start: Start,
    queue: str,
    port: str,
    trusted: str,
    says: str,
) -> None:
    given = settings(protocol, secure, queue, port, tls_ca=str(secure.certificates / f"{trusted}.pem"))
    detail = refusal(start, configured, given)

    assert detail.startswith(given[".url"])
    assert says in detail


def test_a_wrong_password_is_told_and_not_tried_again_soon(
    protocol: str,
    secure: SecureArtemis,
    configured: Configure,
    start: Start,
    queue: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    given = settings(protocol, secure, queue, password="wrong-password")
    detail = refusal(start, configured, given)
    assert detail == f"{given['.url']} (queue:{queue}): {REFUSED[protocol]}"

    time.sleep(4)

    said = capfd.readouterr()
    assert (said.out + said.err).count("will try again") == 1
    assert "wrong-password" not in said.out + said.err


def test_a_login_without_a_user_name_is_refused(
    protocol: str, secure: SecureArtemis, configured: Configure, start: Start, queue: str
) -> None:
    given = settings(protocol, secure, queue)
    nobody = {key: value for key, value in given.items() if key not in (".username", ".password")}
    assert "the broker " in refusal(start, configured, nobody)


def test_a_broker_need_not_be_verified_if_so_configured(
    protocol: str, secure: SecureArtemis, configured: Configure, start: Start, queue: str
) -> None:
    source = start(configured(settings(protocol, secure, queue, "other_port", tls_verify="false")))

    until(lambda: source.connected)


@pytest.mark.usefixtures("impatient")
def test_a_tls_port_without_tls_is_told_with_what_to_write(
    protocol: str, secure: SecureArtemis, configured: Configure, start: Start, queue: str
) -> None:
    plain, over_tls = SCHEMES[protocol]
    url = f"{plain}://127.0.0.1:{secure.port}"
    detail = refusal(start, configured, {".type": protocol, ".url": url, ".destinations": f"queue:{queue}"})

    assert detail.startswith(f"{url} (queue:{queue}): the broker")
    assert detail.endswith(f"; if it wants TLS, write {over_tls}:// in place of {plain}:// in its url")


@pytest.fixture(params=["core", "qpid"])
def how(request: pytest.FixtureRequest) -> str:
    """The client of sources and sinks of type `jms`."""
    name: str = request.param
    if name == "core":
        request.getfixturevalue("fast_core")
    return name


def over_tls(secure: SecureArtemis, port: int, how: str) -> dict[str, str]:
    """Keys of Artemis' own client, or of Qpid JMS."""
    own = client("") if how == "core" else {".type": "jms", ".connection-factory": QPID}
    lib = artemis_home(JARS) / "lib"
    parts = ("qpid-jms-*", "proton-j-*", "netty-*", "slf4j-*", "log4j-*")
    own[".class-path"] = ", ".join(f"{lib}/{part}.jar" for part in parts) if how == "qpid" else own[".class-path"]
    own[".connection-factory.brokerURL"] = f"tcp://127.0.0.1:{port}?sslEnabled=true&verifyHost=true&callTimeout=3000"
    if how == "qpid":
        del own[".connection-factory.brokerURL"]
        own[".connection-factory.remoteURI"] = f"amqps://127.0.0.1:{port}"
    store = {".tls.trust-store": str(secure.certificates / "trusted.p12"), ".tls.trust-store-password": STORE_PASSWORD}
    return own | store | {".username": USER, ".password": PASSWORD.replace("\\", r"\\")}


def test_key_stores_and_trust_stores_are_for_tls(secure: SecureArtemis, ends: MakeEnds, queue: str, how: str) -> None:
    both = ends(over_tls(secure, secure.port, how))
    both.sink.connect()
    assert both.send(f"queue/{queue}", Message(b"1")) == {0: None}
    both.source.connect()
    assert [each.body for each in both.receive(1)] == [b"1"]

    keys = {".tls.key-store": str(keep(secure.certificates, "bridge")), ".tls.key-store-password": STORE_PASSWORD}
    shown = ends(over_tls(secure, secure.mutual_port, how) | keys)
    shown.source.connect()


@pytest.mark.parametrize("case", ["of another host", "of an unknown authority", "without one of its own"])
def test_a_certificate_that_is_wrong_is_refused(secure: SecureArtemis, ends: MakeEnds, how: str, case: str) -> None:
    ports = {"of another host": secure.other_port, "without one of its own": secure.mutual_port}
    keys = over_tls(secure, ports.get(case, secure.port), how)
    if case == "of an unknown authority":
        keys = {key: text for key, text in keys.items() if not key.startswith(".tls")}
    with pytest.raises(NotConnectedError) as refused:
        ends(keys).source.connect()
    assert PASSWORD not in str(refused.value)
    assert STORE_PASSWORD not in str(refused.value)


def refusal(start: Start, configured: Configure, given: Mapping[str, str]) -> str:
    """What a source says that cannot connect."""
    source = start(configured(given))
    until(lambda: source.status.current.state is State.DEGRADED)
    detail = source.status.current.detail
    assert "\n" not in detail
    assert PASSWORD not in detail
    return detail
