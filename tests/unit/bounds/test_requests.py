"""Ten times what docs/security.md allows for requests over HTTP, logins and pages, and the next ordinary request."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

import pytest
from starlette.testclient import TestClient

from engine.errors import HardFailureError, UnreachableError
from engine.looks.log import LookLog
from engine.openid import discovery
from engine.page import messages, tryout
from engine.page.threads import _THREADS, READ_SECONDS, Threads
from engine.telemetry.http_login import HttpLogin, WrongLogins
from engine.telemetry.roles import UserRole
from engine.telemetry.sessions import Sessions
from tests.token_issuer import TokenIssuer
from tests.unit.bounds.test_received_bytes import MIB, within
from tests.unit.clock import Clock
from tests.unit.looks.test_looks import TOPIC, look
from tests.unit.page.bridge import NotedLooks, Page
from tests.unit.page.test_find_page import Finder
from tests.unit.page.test_find_page import finder as finder
from tests.unit.page.test_find_page import page as page
from tests.unit.page.test_find_page import served as served
from tests.unit.test_oidc_login import APP, LOGIN_COOKIE, URL, begin, browser, configure, log_in
from tests.unit.test_oidc_login import app as app
from tests.unit.test_oidc_login import clock as clock
from tests.waiting import patience, until

LETTER = "/dead-letters/letter/0/7/correct"


def post(page: Page, path: str, content: bytes) -> tuple[int, str]:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "http://127.0.0.1"}
    answer = page.client.post(path, content=content, headers=headers)
    return answer.status_code, answer.text


@pytest.mark.parametrize(
    ("path", "content", "told"),
    [
        ("/try", b"body=" + b"x" * 10 * MIB, "this form holds more than 1024 KiB"),
        ("/try", b"a=1&" * 10_000, "the request is not a form"),
        (LETTER, b"body=" + b"x" * 40 * MIB, "this form holds more than 4096 KiB"),
    ],
    ids=["bytes", "fields", "dead letter"],
)
def test_a_form_of_ten_times_the_limits_is_refused(page: Page, path: str, content: bytes, told: str) -> None:
    with within(5):
        status, text = post(page, path, content)
    assert status == 400
    assert told in text
    assert post(page, "/try", f"seal={page.seal('/try')}&address=queue:orders&kind=text".encode())[0] == 200


def test_a_predicate_of_ten_times_the_characters_is_refused(page: Page) -> None:
    for path in ("/dead-letters", "/find", "/api/letters", "/api/find"):
        with within(5):
            answer = page.client.get(path, params={"where": "a = 1 OR " * 4551 + "b"})
        assert answer.status_code == 400, path
        assert "has 40,960 characters; at most 4,096 are taken here" in answer.text
    assert page.client.get("/api/find", params={"where": "a = 1"}).status_code == 200


@pytest.mark.parametrize("seconds", [READ_SECONDS, messages._STORY_SECONDS])
def test_of_40_requests_at_once_four_are_answered_and_none_waits(seconds: float) -> None:
    threads, goes_on = Threads(), threading.Event()

    async def asked() -> list[object]:
        every = [threads.run(goes_on.wait, seconds, "busy", "late") for _ in range(10 * _THREADS)]
        waiting = asyncio.gather(*every, return_exceptions=True)
        await asyncio.sleep(0)
        goes_on.set()
        return [str(each) for each in await waiting]

    found = asyncio.run(asked())
    assert sorted(found) == ["True"] * _THREADS + ["busy"] * 9 * _THREADS
    assert asyncio.run(threads.run(lambda: 7, seconds, "busy", "late")) == 7


def test_work_of_ten_times_the_time_is_given_up() -> None:
    threads = Threads()
    with pytest.raises(UnreachableError, match="late"):
        asyncio.run(threads.run(lambda: time.sleep(0.5), 0.05, "busy", "late"))
    assert (READ_SECONDS, messages._STORY_SECONDS, tryout._SECONDS) == (2.5, 10.0, 5.0)


def test_of_20_searches_at_once_two_run(page: Page, finder: Finder, served: str) -> None:
    finder.waits = True
    running = [HTTPConnection(served, timeout=patience(10)) for _ in range(2)]
    for connection in running:
        connection.request("GET", "/api/find")
        assert connection.getresponse().readline()
    assert [page.client.get("/api/find").status_code for _ in range(18)] == [503] * 18
    assert len(finder.questions) == 2
    finder.goes_on.set()
    for connection in running:
        connection.close()
    until(lambda: page.client.get("/api/find").status_code == 200, seconds=10)


def test_looks_at_100_000_records_are_remembered_in_bounded_memory() -> None:
    log = NotedLooks()
    with within(10):
        for start in range(0, 100_000, 1000):
            log.write(TOPIC, look(*range(start, start + 1000)), once_seconds=600.0)
    assert len(log._seen) == 10_000
    before = len(log.looks)
    log.write(TOPIC, look(0, 99_999), once_seconds=600.0)
    assert [[each.offset for each in entry.records] for entry in log.looks[before:]] == [[0]]


class SilentProducer:
    """Producer to which no broker answers: its flush ends after the time that it is given."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    def produce(self, *_: object, **_options: object) -> None: ...

    def flush(self, seconds: float) -> None:
        self.waited.append(seconds)


def test_an_entry_that_kafka_never_takes_is_waited_for_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = SilentProducer()
    monkeypatch.setattr(LookLog, "_connected", lambda *_: silent)
    with pytest.raises(UnreachableError, match=r"no answer within 2 s"):
        LookLog().write(TOPIC, look(1))
    assert silent.waited == [2.0]


def test_of_100_000_sessions_those_used_last_stay() -> None:
    sessions = Sessions(600, 3600, Clock(1000.0))
    kept = sessions.begin("anna", UserRole.OPERATOR, "")
    first = last = sessions.begin("first", UserRole.VIEWER, "")
    with within(10):
        for number in range(100_000):
            last = sessions.begin("eve", UserRole.VIEWER, "")
            if number % 5_000 == 0:
                assert sessions.find(kept, opens_page=True)
    assert len(sessions._sessions) == 10_000
    assert sessions.find(first, opens_page=True) is None
    found = [sessions.find(each, opens_page=True) for each in (kept, last)]
    assert [each and each.user for each in found] == ["anna", "eve"]


def test_a_login_that_takes_100_minutes_is_refused(
    app: HttpLogin, issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = browser(app)
    back = issuer.approve(begin(client))
    assert client.cookies[LOGIN_COOKIE]
    now = time.time() + 6000
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: now)
        assert client.get(back).status_code == 400
    assert log_in(browser(app), issuer).status_code == 303


def test_of_80_logins_at_once_eight_ask_the_server_and_the_others_wait(
    app: HttpLogin, issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    oidc: Any = app._oidc
    lock, under_way, most = threading.Lock(), 0, 0

    def slow() -> str:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.01)
        with lock:
            under_way -= 1
        return "answer"

    async def ask() -> list[str]:
        return list(await asyncio.gather(*(oidc._in_thread(slow) for _ in range(80))))

    assert asyncio.run(ask()) == ["answer"] * 80
    assert most == 8
    assert log_in(browser(app), issuer).status_code == 303


@contextmanager
def answering(head: bytes, pieces: Iterator[bytes]) -> Iterator[str]:
    """The URL of a server that sends one answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                try:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + head + b"\r\n")
                    for piece in pieces:
                        connection.sendall(piece)
                except ConnectionError:
                    pass  # The client has gone, as it should.

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        thread.join(patience(10))
        assert not thread.is_alive()


def drops(count: int, seconds: float) -> Iterator[bytes]:
    for _ in range(count):
        yield b" "
        time.sleep(seconds)


@pytest.mark.parametrize("start", [b"", b'{"issuer": 1}'], ids=["text", "JSON"])
def test_an_answer_of_a_login_server_of_10_mib_is_refused(start: bytes) -> None:
    content = start.ljust(10 * MIB)
    with (
        answering(b"Content-Length: %d\r\n" % len(content), iter([content])) as url,
        within(5),
        pytest.raises(HardFailureError, match="the answer has more than 1,048,576 bytes"),
    ):
        discovery.fetched(url, None, "http.oidc.issuer")
    with answering(b"", iter([b"{}"])) as url:
        assert discovery.fetched(url, None, "http.oidc.issuer") == {}


def test_an_answer_of_a_login_server_that_comes_in_drops_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "_SECONDS", 0.2)
    begun = time.monotonic()
    with (
        answering(b"Content-Length: 1000\r\n", drops(100, 0.02)) as url,
        pytest.raises(UnreachableError, match=r"it is not complete after 0\.2 s"),
    ):
        discovery.fetched(url, None, "http.oidc.issuer")
    assert time.monotonic() - begun < patience(1.5)


def test_an_answer_of_a_login_server_that_breaks_off_is_no_answer() -> None:
    with (
        answering(b"Content-Length: 1000\r\n", iter([b"{}"])) as url,
        pytest.raises(UnreachableError, match="does not answer"),
    ):
        discovery.fetched(url, None, "http.oidc.issuer")


def test_a_token_of_320_kib_is_refused_with_401(app: HttpLogin, issuer: TokenIssuer) -> None:
    client = TestClient(app, URL)
    header, body, signature = issuer.token(**issuer.user, aud="api://bridge").split(".")
    long = {"Authorization": f"Bearer {header}.{body.ljust(320 * 1024, 'A')}.{signature}"}
    with within(2):
        answer = client.get("/api/status", headers=long)
    assert answer.status_code == 401
    assert "characters; at most 32,768 are taken" in answer.text
    right = {"Authorization": f"Bearer {issuer.token(**issuer.user, aud='api://bridge')}"}
    assert client.get("/api/status", headers=right).status_code == 200


def test_of_100_wrong_logins_of_an_address_ten_are_checked(issuer: TokenIssuer, clock: Clock) -> None:
    app = HttpLogin(APP, configure(issuer, token="t0ken"), frozenset(), clock=clock)
    client = TestClient(app, URL)

    def code(token: str) -> int:
        return client.get("/api/status", headers={"Authorization": f"Bearer {token}"}).status_code

    assert [code("wrong") for _ in range(100)] == [401] * 10 + [429] * 90
    assert code("t0ken") == 429
    clock.now += 61
    assert code("t0ken") == 200


def test_the_wait_after_1000_wrong_logins_is_a_minute() -> None:
    clock = Clock(1000.0)
    wrong = WrongLogins(clock)
    for _ in range(1000):
        wrong.add("192.0.2.1")
    assert wrong.wait_seconds("192.0.2.1") == 60
    assert wrong.wait_seconds("192.0.2.2") == 0
    wrong.forget("192.0.2.1")
    assert wrong.wait_seconds("192.0.2.1") == 0


@pytest.mark.parametrize("content", [b"[" * 100_000, b"[1]"], ids=["nested", "list"])
def test_an_answer_of_a_login_server_that_is_no_object_is_refused(content: bytes) -> None:
    with answering(b"", iter([content])) as url, pytest.raises(HardFailureError, match="the answer is not "):
        discovery.fetched(url, None, "http.oidc.issuer")
