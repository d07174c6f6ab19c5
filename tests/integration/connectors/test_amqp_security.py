"""AMQP over TLS and with a login, against an Artemis that wants both."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from engine.connectors.amqp.sink import AmqpSink
from engine.connectors.base import Outcome, Outgoing
from engine.embedded import free_ports
from engine.message import Message
from engine.telemetry.status import State
from routes.model import SinkConfig
from tests.conftest import JARS
from tests.integration.connectors.running import until
from tests.integration.connectors.secure import PASSWORD, USER, SecureArtemis

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.integration.connectors.conftest import Configure, Start


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureArtemis]:
    first, second, third = free_ports(3)
    server = SecureArtemis(tmp_path_factory.mktemp("secure"), (first, second, third), JARS)
    server.start()
    yield server
    server.stop()


def settings(secure: SecureArtemis, queue: str, port: int | None = None, **more: str) -> Mapping[str, str]:
    return {
        ".type": "amqp",
        ".url": f"amqps://127.0.0.1:{port or secure.port}",
        ".destinations": f"queue:{queue}",
        ".username": USER,
        ".password": PASSWORD.replace("\\", "\\\\"),
        ".tls.ca": str(secure.certificates / "ca.pem"),
        ".heartbeat": "1s",
    } | {f".{key.replace('_', '.')}": value for key, value in more.items()}


def test_it_logs_in_over_tls_and_waits_there_with_heart_beats(
    secure: SecureArtemis, configured: Configure, start: Start, queue: str
) -> None:
    source = start(configured(settings(secure, queue)))
    until(lambda: source.connected)

    with pytest.raises(AssertionError, match="not within"):
        until(lambda: not source.connected, 5)

    assert source.status.current.state is State.READY
    source.stop()
    assert source.error is None


def test_a_sink_sends_over_tls(secure: SecureArtemis, configured: Configure, queue: str) -> None:
    config = configured(settings(secure, queue))
    names = ("type", "url", "username", "password", "tls_ca", "heartbeat_seconds")
    shared = {name: getattr(config.sources[0], name) for name in names}
    sink = AmqpSink(config, SinkConfig(name="out", topic="t", **shared), 1)
    sink.connect()

    large = Message(b"x" * 1_000_000)
    sink.send([Outgoing(number, large, f"queue/{queue}", str(number)) for number in range(5)])
    found: list[Outcome] = []
    deadline = time.monotonic() + 20
    while len(found) < 5 and time.monotonic() < deadline:
        found += sink.outcomes(0.5)
    sink.close()

    assert sorted(outcome.number for outcome in found if outcome.refusal is None) == list(range(5))


def test_it_shows_its_own_certificate_where_that_is_wanted(
    secure: SecureArtemis, configured: Configure, start: Start, queue: str
) -> None:
    own = {
        "tls_certificate": str(secure.certificates / "bridge.pem"),
        "tls_key": str(secure.certificates / "bridge.key"),
    }
    source = start(configured(settings(secure, queue, secure.mutual_port, **own)))

    until(lambda: source.connected)


@pytest.mark.parametrize(
    ("which", "more", "says"),
    [
        ("port", {"password": "wrong"}, "the broker refuses the login of user 'bridge'"),
        (
            "port",
            {"tls_ca": "bridge.pem"},
            "its certificate is not to be trusted: unable to get local issuer certificate",
        ),
        (
            "other_port",
            {},
            "its certificate is not to be trusted: IP address mismatch, certificate is not valid for '127.0.0.1'",
        ),
        (
            "mutual_port",
            {},
            "TLS failed: sslv3 alert bad certificate; it wants a certificate of the bridge (tls.certificate)",
        ),
    ],
    ids=["password", "authority", "host", "client certificate"],
)
def test_what_is_wrong_with_login_or_tls_is_told(
    secure: SecureArtemis,
    configured: Configure,
    start: Start,
    queue: str,
    which: str,
    more: Mapping[str, str],
    says: str,
) -> None:
    if "tls_ca" in more:
        more = {"tls_ca": str(secure.certificates / more["tls_ca"])}
    source = start(configured(settings(secure, queue, getattr(secure, which), **more)))

    until(lambda: source.status.current.state is State.DEGRADED)

    assert says in source.status.current.detail
    assert PASSWORD not in source.status.current.detail


def test_a_login_without_a_user_name_is_refused(
    secure: SecureArtemis, configured: Configure, start: Start, queue: str
) -> None:
    given = {key: value for key, value in settings(secure, queue).items() if key not in (".username", ".password")}
    source = start(configured(given))

    until(lambda: source.status.current.state is State.DEGRADED)

    assert "the broker " in source.status.current.detail


def test_plain_amqp_to_a_tls_port_is_no_endless_wait(
    secure: SecureArtemis, configured: Configure, start: Start, queue: str
) -> None:
    plain = {".type": "amqp", ".url": f"amqp://127.0.0.1:{secure.port}", ".destinations": f"queue:{queue}"}
    source = start(configured(plain))

    until(lambda: source.status.current.state is State.DEGRADED)

    assert "the broker" in source.status.current.detail
