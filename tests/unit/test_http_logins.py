"""Clients that try logins: each address is held up by its own wrong ones, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from prometheus_client import CollectorRegistry

from engine.telemetry.http import HttpServer, application
from engine.telemetry.http_login import WrongLogins, _address
from engine.telemetry.status import StatusBoard
from tests.unit.test_http_access import LOGIN, answer
from tests.waiting import until


@pytest.fixture
def url() -> Iterator[str]:
    """A server that wants a login."""
    with HttpServer(LOGIN, application(StatusBoard([]), CollectorRegistry())) as server:
        yield server.url


def test_an_address_with_many_wrong_logins_has_to_wait_and_learns_nothing_meanwhile(url: str) -> None:
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=10)) as connection:
        assert [answer(connection, "/metrics", "Bearer x")[0] for _ in range(12)] == [401] * 10 + [429] * 2
        code, headers = answer(connection, "/metrics", "Bearer t0ken")
        assert (code, headers["retry-after"]) == (429, "1")
        # A probe is not locked out, and a browser is still asked for a login.
        assert answer(connection, "/health", "Bearer x")[0] == 200
        assert answer(connection, "/metrics")[0] == 401
        until(lambda: answer(connection, "/metrics", "Bearer t0ken")[0] == 200, seconds=5)
        assert answer(connection, "/metrics", "Bearer x")[0] == 401


def test_the_right_login_from_elsewhere_is_not_locked_out(url: str) -> None:
    where = urlsplit(url)

    def ask(source: str, shown: str) -> int:
        connection = HTTPConnection(where.hostname or "", where.port, timeout=10, source_address=(source, 0))
        # Another address may not be claimed either.
        connection.request("GET", "/metrics", headers={"Authorization": shown, "X-Forwarded-For": "10.0.0.1"})
        with closing(connection):
            return connection.getresponse().status

    assert [ask("127.0.0.2", "Bearer x") for _ in range(11)] == [401] * 10 + [429]
    assert ask("127.0.0.3", "Bearer t0ken") == 200
    assert ask("127.0.0.2", "Bearer t0ken") == 429


def test_the_pause_doubles_up_to_a_minute_and_what_is_long_ago_is_forgotten() -> None:
    now = [0.0]
    wrong = WrongLogins(lambda: now[0])
    pauses = []
    for _ in range(30):
        wrong.add("a")
        pauses.append(wrong.wait_seconds("a"))
        now[0] += wrong.wait_seconds("a")
    assert pauses == [0] * 9 + [1, 2, 4, 8, 16, 32] + [60] * 15
    assert wrong.wait_seconds("b") == 0
    now[0] += 601
    wrong.add("a")
    assert wrong.wait_seconds("a") == 0


def test_addresses_are_remembered_in_bounded_memory() -> None:
    wrong = WrongLogins(lambda: 0.0)
    for number in range(5000):
        wrong.add(f"10.0.{number // 256}.{number % 256}")
    assert len(wrong._counts) == 1000


@pytest.mark.parametrize(
    ("client", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2::9", "2001:db8:1:2::"),
        ("::ffff:192.0.2.7", "::ffff:c000:207"),
        ("", ""),
    ],
)
def test_a_network_of_ipv6_counts_as_one_address(client: str, counted: str) -> None:
    assert _address({"client": (client, 1)}) == counted
