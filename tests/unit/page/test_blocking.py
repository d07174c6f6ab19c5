"""Requests that take long: health answers meanwhile, whatever is asked of the pages."""

from __future__ import annotations

import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlencode, urlsplit

import pytest

from engine.page import tryout
from engine.telemetry.http import HttpServer
from engine.telemetry.http_section import HttpConfig
from tests.unit.page.bridge import Page

_HEALTH_SECONDS = 2.0
"""Much more than it takes, on a machine that does much else."""
_PUBLISHED = "region=emea\nCorrelationId=1\n"
_LONG = " OR ".join(f"a{n % 1000} LIKE '%{n}%'" for n in range(5000))


def ask(url: str, method: str, path: str, fields: dict[str, str] | None = None) -> tuple[int, float]:
    """Status of the answer, and the seconds that it took."""
    began = time.monotonic()
    where = urlsplit(url)
    with closing(HTTPConnection(where.netloc, timeout=60)) as connection:
        headers = {"Origin": url, "Content-Type": "application/x-www-form-urlencoded"} if fields else {}
        connection.request(method, path, urlencode(fields) if fields else None, headers)
        return connection.getresponse().status, time.monotonic() - began


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        ("/dead-letters?" + urlencode({"where": _LONG[:60_000]}), None, 400),
        ("/dead-letters?" + urlencode({"where": _LONG[:4096]}), None, 400),
        ("/try", {"properties": _PUBLISHED + "".join(f"p{n}=\n" for n in range(60_000))}, 400),
        ("/try", {"properties": _PUBLISHED + "".join(f"p{n}=\n" for n in range(998)), "body": "x" * 900_000}, 200),
        ("/try", {"body": "\x1b" * 300_000}, 200),
    ],
    ids=["a long predicate", "the longest predicate", "many properties", "most properties", "control characters"],
)
def test_health_answers_while_a_page_is_made(
    tmp_path: Path, path: str, fields: dict[str, str] | None, status: int
) -> None:
    page = Page(tmp_path)
    ended = Event()
    answers: list[tuple[int, float]] = []

    with HttpServer(HttpConfig("127.0.0.1", 0), page.served) as server:
        if fields is not None:
            fields = {"seal": page.seal("/try"), "address": "queue:orders", "kind": "text", **fields}

        def attack() -> None:
            answers.append(ask(server.url, "POST" if fields else "GET", path, fields))
            ended.set()

        attackers = [Thread(target=attack) for _ in range(4)]
        for each in attackers:
            each.start()
        slowest = 0.0
        while not ended.wait(0.01):
            slowest = max(slowest, ask(server.url, "GET", "/health")[1])
        for each in attackers:
            each.join()
    assert slowest < _HEALTH_SECONDS
    assert {code for code, _ in answers} <= {status, 503}


def test_what_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page(tmp_path)
    monkeypatch.setattr(tryout, "_SECONDS", 0.1)
    monkeypatch.setattr(tryout, "_tried", lambda *_: time.sleep(1))
    fields = {"seal": page.seal("/try"), "kind": "text"}
    answer = page.client.post("/try", data=fields, headers={"Origin": "http://127.0.0.1"})
    assert answer.status_code == 503
    assert "this message took longer than" in answer.text
