"""Logins of browsers at an OpenID Connect server, of programs by its tokens, and of users behind a proxy: what works,
and what an attacker tries."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from ipaddress import ip_network
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from engine.errors import HardFailureError, UnreachableError
from engine.telemetry.client import ask, order
from engine.telemetry.http import HttpServer
from engine.telemetry.http_login import LOGIN, SESSION, HttpLogin
from engine.telemetry.http_section import HttpConfig, ViewerConfig
from engine.telemetry.login_section import OidcConfig, ProxyConfig, SessionConfig
from engine.telemetry.oidc_login import _local
from engine.telemetry.roles import ROLE
from tests.token_issuer import CLIENT, SECRET, TokenIssuer
from tests.unit.clock import Clock

URL = "https://bridge.example"
HTML = {"Accept": "text/html", "Sec-Fetch-Mode": "navigate"}
COOKIE, LOGIN_COOKIE = "__Host-jms-bridge", "__Host-jms-bridge-login"


def told(request: Request) -> JSONResponse:
    return JSONResponse([request.scope[LOGIN], str(request.scope[ROLE]), bool(request.scope[SESSION])])


def address(request: Request) -> JSONResponse:
    return JSONResponse(request.client.host if request.client else "")


APP = Starlette(routes=[Route("/address", address), Route("/{rest:path}", told, methods=["GET", "POST"])])


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


def configure(issuer: TokenIssuer, **changed: Any) -> HttpConfig:
    given: dict[str, Any] = {
        "operator_groups": ("ops",),
        "viewer": ViewerConfig(groups=("staff",)),
        "public_url": URL,
        "oidc": OidcConfig(issuer.url, CLIENT, SECRET, audiences=("api://bridge",)),
        "session": SessionConfig(600, 3600),
    }
    return HttpConfig("127.0.0.1", 0, **{**given, **changed})


@pytest.fixture
def app(issuer: TokenIssuer, clock: Clock) -> HttpLogin:
    return HttpLogin(APP, configure(issuer), frozenset({"/health"}), clock=clock)


def browser(app: HttpLogin) -> TestClient:
    return TestClient(app, URL, follow_redirects=False, headers=HTML)


def begin(client: TestClient, to: str = "/") -> str:
    """Where the server is asked for a login."""
    answer = client.get("/login", params={"to": to})
    assert answer.status_code == 303
    return answer.headers["location"]


def log_in(client: TestClient, issuer: TokenIssuer, to: str = "/") -> Any:
    """The answer to the code."""
    return client.get(issuer.approve(begin(client, to)))


def cookies(answer: Any) -> dict[str, str]:
    return {text.partition("=")[0]: text for text in answer.headers.get_list("set-cookie")}


def test_a_browser_is_led_to_the_login_and_back_to_its_page(app: HttpLogin, issuer: TokenIssuer) -> None:
    client = browser(app)
    first = client.get("/messages/orders?since=2h&where=a%3D1")
    assert (first.status_code, first.headers["cache-control"]) == (303, "no-store")
    to = dict(parse_qsl(urlsplit(first.headers["location"]).query))["to"]
    begun = client.get(first.headers["location"])
    asked = {name: values[0] for name, values in parse_qs(urlsplit(begun.headers["location"]).query).items()}
    assert begun.headers["location"].startswith(f"{issuer.url}/authorize?")
    assert asked["redirect_uri"] == f"{URL}/login/callback"
    assert (asked["client_id"], asked["scope"], asked["code_challenge_method"]) == (CLIENT, "openid profile", "S256")
    assert len({asked["state"], asked["nonce"], asked["code_challenge"]}) == 3
    assert set(cookies(begun)) == {LOGIN_COOKIE}
    assert asked["state"] not in cookies(begun)[LOGIN_COOKIE]
    done = client.get(issuer.approve(begun.headers["location"]))
    assert (done.status_code, done.headers["location"]) == (303, to)
    assert to == "/messages/orders?since=2h&where=a%3D1"
    found = cookies(done)
    assert "Max-Age=0" in found[LOGIN_COOKIE]
    for text in (found[COOKIE], cookies(begun)[LOGIN_COOKIE]):
        assert all(flag in text for flag in ("HttpOnly", "Path=/", "SameSite=lax", "Secure"))
        assert "Domain" not in text
    assert client.get("/").json() == ["olga", "operator", True]
    # A login that is not needed is left out.
    assert client.get("/login?to=/find").headers["location"] == "/find"


def test_escapes_in_the_address_of_a_page_are_kept(app: HttpLogin, issuer: TokenIssuer) -> None:
    client = browser(app)
    where = client.get("/messages/a%20b%2F%C3%A9?where=x%20%3D%20%27%C3%A9%27").headers["location"]
    back = issuer.approve(client.get(where).headers["location"])
    assert client.get(back).headers["location"] == "/messages/a%20b%2F%C3%A9?where=x%20%3D%20%27%C3%A9%27"


def test_without_tls_on_loopback_cookies_are_of_the_port(issuer: TokenIssuer) -> None:
    url = "http://127.0.0.1:8480"
    client = TestClient(
        HttpLogin(APP, configure(issuer, public_url=url), frozenset()), url, follow_redirects=False, headers=HTML
    )
    found = cookies(log_in(client, issuer))["jms-bridge-8480"]
    assert "HttpOnly" in found
    assert "Secure" not in found
    assert client.get("/").json()[0] == "olga"


@pytest.mark.parametrize(
    ("groups", "role"),
    [(["ops"], "operator"), (["staff"], "viewer"), (["staff", "ops"], "operator"), ("ops", "operator")],
)
def test_groups_have_roles(groups: object, role: str, app: HttpLogin, issuer: TokenIssuer) -> None:
    issuer.user["groups"] = groups
    client = browser(app)
    log_in(client, issuer)
    assert client.get("/").json() == ["olga", role, True]
    assert client.post("/parts").status_code == (200 if role == "operator" else 403)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (["Ops", "guests"], "the login has Ops, guests"),
        ([], "the login has no group"),
        (None, "has no claim 'groups' (http.oidc.groups.claim)"),
        ([["ops"], {"ops": 1}, 1], "the login has no group"),
        ({"ops": True}, "the login has no group"),
    ],
)
def test_a_user_without_such_a_group_is_told_which_is_missing(
    groups: object, words: str, app: HttpLogin, issuer: TokenIssuer
) -> None:
    issuer.user["groups"] = groups
    client = browser(app)
    answer = log_in(client, issuer)
    assert answer.status_code == 403
    assert "olga needs one of the groups staff (http.viewer.groups) or ops (http.operator.groups)" in answer.text
    assert words in answer.text
    assert COOKIE not in cookies(answer)
    assert client.get("/").status_code == 303


def test_names_and_groups_are_in_the_claims_that_are_configured(issuer: TokenIssuer) -> None:
    oidc = OidcConfig(issuer.url, CLIENT, SECRET, user_claim="email", groups_claim="realm_access.roles")
    issuer.user = {"sub": "u-1", "realm_access": {"roles": ["ops"]}}
    for mail, name in (({}, "u-1"), ({"email": "o@x.example"}, "o@x.example"), ({"email": ["x"]}, "u-1")):
        issuer.user = {"sub": "u-1", "realm_access": {"roles": ["ops"]}, **mail}
        client = browser(HttpLogin(APP, configure(issuer, oidc=oidc), frozenset()))
        log_in(client, issuer)
        assert client.get("/").json() == [name, "operator", True]


def test_groups_that_are_too_many_for_a_token_are_told(app: HttpLogin, issuer: TokenIssuer) -> None:
    issuer.user = {"sub": "u-1", "_claim_names": {"groups": "src1"}}
    answer = log_in(browser(app), issuer)
    assert (answer.status_code, "left them out of the token, since they are too many" in answer.text) == (403, True)


# Attacks on the login


def test_a_code_for_another_browser_is_refused(app: HttpLogin, issuer: TokenIssuer) -> None:
    """Login CSRF: an attacker has the victim finish the attacker's login."""
    attacker, victim = browser(app), browser(app)
    back = issuer.approve(begin(attacker))
    assert victim.get(back).status_code == 400
    begin(victim)
    answer = victim.get(back)
    assert (answer.status_code, COOKIE in cookies(answer)) == (400, False)
    assert f"open {URL}" in answer.text
    assert attacker.get(back).status_code == 303


def test_a_code_or_state_that_was_used_is_refused(app: HttpLogin, issuer: TokenIssuer) -> None:
    client = browser(app)
    back = issuer.approve(begin(client))
    begun = client.cookies[LOGIN_COOKIE]
    assert client.get(back).status_code == 303
    other = browser(app)
    other.cookies.set(LOGIN_COOKIE, begun)
    assert "finished already" in other.get(back).text
    fresh = begin(other)
    code = dict(parse_qsl(urlsplit(back).query))["code"]
    state = dict(parse_qsl(urlsplit(fresh).query))["state"]
    answer = other.get("/login/callback", params={"code": code, "state": state, "iss": issuer.url})
    assert (answer.status_code, "invalid_grant" in answer.text) == (403, True)


@pytest.mark.parametrize("query", ["", "code=x", "state=", "state=%00&code=x", "code=x&state=forged", "error=denied"])
def test_an_answer_without_the_state_is_refused(query: str, app: HttpLogin, issuer: TokenIssuer) -> None:
    client = browser(app)
    begin(client)
    asked = issuer.asked.count("/token")
    assert client.get(f"/login/callback?{query}").status_code == 400
    assert issuer.asked.count("/token") == asked


@pytest.mark.parametrize("named", ["https://evil.example", None])
def test_the_answer_of_another_issuer_is_refused(named: str | None, app: HttpLogin, issuer: TokenIssuer) -> None:
    client = browser(app)
    back = dict(parse_qsl(urlsplit(issuer.approve(begin(client))).query))
    query = {"code": back["code"], "state": back["state"], **({"iss": named} if named else {})}
    answer = client.get("/login/callback", params=query)
    assert (answer.status_code, "another issuer" in answer.text) == (403, True)
    assert "/token" not in issuer.asked


def test_a_refusal_of_the_server_is_shown(app: HttpLogin, issuer: TokenIssuer) -> None:
    client = browser(app)
    state = dict(parse_qsl(urlsplit(begin(client)).query))["state"]
    query = {"state": state, "error": "access_denied", "error_description": "no\x1b[31m <b>"}
    answer = client.get("/login/callback", params=query)
    assert (answer.status_code, "\\x1b" in answer.text) == (403, True)


@pytest.mark.parametrize(
    "claims", [{"nonce": "x"}, {"aud": "other"}, {"exp": 1}, {"iss": "https://x"}, {"azp": "x"}, {"at_hash": "x"}]
)
def test_a_wrong_id_token_begins_no_session(claims: dict[str, Any], app: HttpLogin, issuer: TokenIssuer) -> None:
    client = browser(app)
    issuer.claims = claims
    answer = log_in(client, issuer)
    assert (answer.status_code, COOKIE in cookies(answer)) == (403, False)


def test_a_session_cannot_be_fixed_and_is_a_new_one_at_each_login(app: HttpLogin, issuer: TokenIssuer) -> None:
    client = browser(app)
    client.cookies.set(COOKIE, "chosen-by-an-attacker", domain="bridge.example")
    log_in(client, issuer)
    first = client.cookies[COOKIE]
    assert first != "chosen-by-an-attacker"
    begun = client.get("/login?other=1")
    assert "prompt=login" in begun.headers["location"]
    client.get(issuer.approve(begun.headers["location"]))
    assert client.cookies[COOKIE] != first
    thief = browser(app)
    for stolen in (first, "chosen-by-an-attacker", "", "x" * 60_000, '"', "\x7f"):
        thief.cookies.clear()
        assert thief.get("/", headers={"Cookie": f"{COOKIE}={stolen}"}).status_code == 303


@pytest.mark.parametrize(
    "to",
    [
        *("https://evil.example/", "//evil.example/", "/\\evil.example", "\\\\evil.example", "/\t/evil.example"),
        *(
            "javascript:alert(1)",
            "/x\r\nSet-Cookie: a=b",
            "evil.example",
            "",
            "/login?to=/",
            "/logout",
            "/" + "a" * 2000,
        ),
    ],
)
def test_no_login_leads_to_another_site(to: str, app: HttpLogin, issuer: TokenIssuer) -> None:
    client = browser(app)
    assert log_in(client, issuer, to).headers["location"] == "/"
    assert client.get("/login", params={"to": to}).headers["location"] == "/"


@given(st.text() | st.text("/\\.:@a\t ").map("/{}".format))
def test_what_is_opened_after_a_login_is_a_path_of_this_server(to: str) -> None:
    found = _local(to)
    assert re.fullmatch(r"/(|[^/\\].*)", found)
    assert not re.search(r"[\\\x00-\x20]", found)


def test_a_login_takes_ten_minutes_at_most_and_its_cookie_is_sealed(
    app: HttpLogin, issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = browser(app)
    back = issuer.approve(begin(client))
    forged = client.cookies[LOGIN_COOKIE][:-6] + "AAAA=="
    client.cookies.clear()
    assert client.get(back, headers={"Cookie": f"{LOGIN_COOKIE}={forged}"}).status_code == 400
    client = browser(app)
    back = issuer.approve(begin(client))
    now = time.time() + 601
    monkeypatch.setattr(time, "time", lambda: now)
    assert client.get(back).status_code == 400


def test_codes_that_are_guessed_have_to_wait(app: HttpLogin, issuer: TokenIssuer) -> None:
    client = browser(app)
    codes = [client.get("/login/callback?code=x&state=y").status_code for _ in range(12)]
    assert codes == [400] * 10 + [429] * 2


# Sessions


def test_a_session_ends_when_it_is_not_used_and_in_any_case(app: HttpLogin, issuer: TokenIssuer, clock: Clock) -> None:
    client = browser(app)
    log_in(client, issuer)
    for _ in range(5):
        clock.now += 590
        assert client.get("/").status_code == 200
    # A page that refreshes itself is not a user.
    clock.now += 300
    assert client.get("/", headers={"Sec-Fetch-Mode": "cors"}).status_code == 200
    clock.now += 301
    assert client.get("/", headers={"Sec-Fetch-Mode": "cors"}).status_code == 401
    assert client.get("/").status_code == 303
    log_in(client, issuer)
    for _ in range(9):
        clock.now += 399
        assert client.get("/").status_code == 200
    clock.now += 10
    assert client.get("/").status_code == 303


def test_a_logout_ends_the_session_here_and_at_the_server(app: HttpLogin, issuer: TokenIssuer) -> None:
    client = browser(app)
    log_in(client, issuer)
    secret = client.cookies[COOKIE]
    assert client.get("/logout").status_code == 405
    assert client.post("/logout", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.get("/").status_code == 200
    answer = client.post("/logout", headers={"Sec-Fetch-Site": "same-origin"})
    assert (answer.status_code, "Max-Age=0" in cookies(answer)[COOKIE]) == (200, True)
    client.cookies.set(COOKIE, secret, domain="bridge.example")
    assert client.get("/").status_code == 303


def test_sessions_go_on_while_the_server_is_away_and_the_login_says_so(issuer: TokenIssuer, clock: Clock) -> None:
    issuer.is_away = True
    app = HttpLogin(APP, configure(issuer), frozenset(), clock=clock)
    client = browser(app)
    answer = client.get("/login")
    assert (answer.status_code, "nobody can log in at present" in answer.text) == (503, True)
    issuer.is_away = False
    clock.now += 11
    log_in(client, issuer)
    issuer.is_away = True
    clock.now += 500
    assert client.get("/").status_code == 200
    program = TestClient(app, URL)
    token = issuer.token(**issuer.user, aud="api://bridge")
    assert program.get("/", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_scripts_and_programs_are_not_led_to_the_login(app: HttpLogin) -> None:
    client = TestClient(app, URL, follow_redirects=False)
    for headers in ({"Sec-Fetch-Mode": "cors", "Accept": "text/html"}, {"Accept": "application/json"}):
        answer = client.get("/", headers=headers)
        assert (answer.status_code, "Bearer" in answer.headers["www-authenticate"]) == (401, True)
    answer = client.post("/parts", headers=HTML)
    assert (answer.status_code, answer.text.startswith("your session has ended")) == (401, True)
    assert client.get("/health").status_code == 200
    assert client.get("/static/page.css").status_code == 200
    assert client.get("/static").status_code == 401


# Programs


def test_programs_log_in_by_tokens(app: HttpLogin, issuer: TokenIssuer) -> None:
    client = TestClient(app, URL)

    def code(token: str) -> int:
        return client.get("/api/status", headers={"Authorization": f"Bearer {token}"}).status_code

    assert code(issuer.token(**issuer.user, aud="api://bridge", azp="robot")) == 200
    assert code(issuer.token(**issuer.user, aud=CLIENT)) == 200
    assert code(issuer.token(**{**issuer.user, "groups": ["guests"]}, aud=CLIENT)) == 403
    assert code(issuer.token(**issuer.user, aud="kafka")) == 401
    assert code("a.b.c") == 401
    assert code("x" * 50_000) == 401
    viewer = issuer.token(**{**issuer.user, "groups": ["staff"]}, aud=CLIENT)
    answer = client.post("/api/reload", headers={"Authorization": f"Bearer {viewer}", "X-Jms-Bridge": "1"})
    assert "olga is a viewer" in answer.json()["error"]


def commands(issuer: TokenIssuer, secret: str = SECRET) -> HttpConfig:
    """A configuration whose commands log in by tokens of a client."""
    oidc = OidcConfig(
        issuer.url, "page", audiences=("api://bridge",), command_id=CLIENT, command_secret=secret, command_scope="x"
    )
    return replace(configure(issuer, oidc=oidc), token="not-needed")


def test_commands_log_in_by_tokens_of_a_client_and_are_known_by_its_subject(issuer: TokenIssuer) -> None:
    issuer.claims = {"aud": "api://bridge", "groups": ["ops"], "sub": "service-7"}
    with HttpServer(commands(issuer), APP) as server:
        config = replace(commands(issuer), port=urlsplit(server.url).port or 0)
        assert json.loads(ask(config, "/parts", 5)[1]) == ["service-7", "operator", False]
        assert ask(config, "/parts", 5)[0] == 200
        assert issuer.given == ["x"], "the token is kept for the next request"
        issuer.claims |= {"groups": ["staff"]}
        code, told = order(replace(config, oidc=replace(config.oidc, command_scope="y")), "/api/pause", 5)
        assert (code, "service-7 is a viewer" in told["error"]) == (403, True)
        for claims in ({"aud": "kafka"}, {"iss": "https://other.example"}, {"exp": 1}, {"iat": time.time() + 120}):
            issuer.claims = {"aud": "api://bridge", "groups": ["ops"], **claims}
            other = replace(config.oidc, command_scope=str(claims))
            assert ask(replace(config, oidc=other), "/parts", 5)[0] == 401


def test_a_wrong_secret_of_commands_is_told_with_its_key(issuer: TokenIssuer) -> None:
    with pytest.raises(HardFailureError) as raised:
        ask(commands(issuer, "guessed-wrong"), "/parts", 5)
    assert "correct http.oidc.command.client.id or http.oidc.command.client.secret" in str(raised.value)
    assert "guessed-wrong" not in str(raised.value)
    issuer.is_away = True
    with pytest.raises(UnreachableError, match="the issuer of tokens does not answer"):
        ask(commands(issuer), "/parts", 5)


def test_wrong_tokens_have_to_wait(app: HttpLogin, issuer: TokenIssuer) -> None:
    client = TestClient(app, URL)
    issuer.claims = {"exp": 1}
    shown = {"Authorization": f"Bearer {issuer.token(**issuer.user, aud=CLIENT)}"}
    answers = [client.get("/", headers=shown) for _ in range(12)]
    assert [each.status_code for each in answers] == [401] * 10 + [429] * 2
    assert answers[0].text.startswith("log in: the token expired")


def test_the_logins_of_the_file_work_beside_those_of_the_server(issuer: TokenIssuer) -> None:
    client = TestClient(HttpLogin(APP, configure(issuer, token="a.b.c"), frozenset()), URL)
    assert client.get("/", headers={"Authorization": "Bearer a.b.c"}).json() == ["http.token", "operator", False]


# A proxy in front


def proxied(address: str = "10.1.2.3", **changed: Any) -> TestClient:
    proxy = ProxyConfig("x-user", "x-groups", "x-forwarded-for", (ip_network("10.1.0.0/16"), ip_network("fd00::/8")))
    config = HttpConfig(
        "127.0.0.1", 0, operator_groups=("ops",), viewer=ViewerConfig(groups=("staff",)), proxy=proxy, **changed
    )
    return TestClient(HttpLogin(APP, config, frozenset({"/health"})), "http://bridge", client=(address, 1))


@pytest.mark.parametrize("address", ["10.1.2.3", "::ffff:10.1.2.3", "fd00::1"])
def test_a_trusted_proxy_names_users(address: str) -> None:
    client = proxied(address)
    named = {"X-User": "olga", "X-Groups": "staff, ops"}
    assert client.get("/", headers=named).json() == ["olga", "operator", False]
    assert client.get("/", headers=named | {"X-Groups": "staff"}).json() == ["olga", "viewer", False]
    assert client.post("/parts", headers=named | {"X-Groups": "staff"}).status_code == 403
    answer = client.get("/", headers=named | {"X-Groups": "guests"})
    assert (answer.status_code, "olga needs one of the groups staff" in answer.text) == (403, True)
    assert client.get("/", headers={"X-User": "olga"}).status_code == 403
    assert client.get("/").status_code == 401
    assert client.get("/", headers={"X-User": " "}).status_code == 401
    assert client.get("/health").status_code == 200


@pytest.mark.parametrize("address", ["10.2.0.1", "127.0.0.1", "::1", "::ffff:10.2.0.1", "testclient", "fc00::1"])
def test_the_headers_of_others_are_refused(address: str) -> None:
    client = proxied(address, token="t")
    right = {"Authorization": "Bearer t"}
    for headers in ({"X-User": "olga", "X-Groups": "ops"}, {"X-User": "olga"}, {"X-Groups": "ops"}):
        for shown in ({}, right, {"X-Forwarded-For": "10.1.2.3", "Forwarded": "for=10.1.2.3"}):
            answer = client.get("/", headers=headers | shown)
            assert answer.status_code == 403
            assert f"not from {address}" in answer.text
    assert client.get("/", headers=right).status_code == 200
    # Another spelling is another header.
    assert client.get("/", headers={"X_User": "olga", "X_Groups": "ops"}).status_code == 401


def test_a_header_that_the_proxy_passed_on_beside_its_own_is_refused() -> None:
    for name in ("X-User", "X-Groups"):
        headers = [("X-User", "olga"), ("X-Groups", "staff"), (name, "ops")]
        answer = proxied().get("/", headers=headers)
        assert (answer.status_code, "is there twice" in answer.text) == (403, True)


@pytest.mark.parametrize(
    ("peer", "shown", "found"),
    [
        ("10.1.2.3", ["198.51.100.7"], "198.51.100.7"),
        ("10.1.2.3", ["192.0.2.1, 198.51.100.7"], "198.51.100.7"),
        ("10.1.2.3", ["192.0.2.1", "198.51.100.7:4711"], "198.51.100.7"),
        ("10.1.2.3", ["[2001:db8::1]:80"], "2001:db8::1"),
        ("10.1.2.3", ["2001:db8::1"], "2001:db8::1"),
        ("10.1.2.3", ["unknown"], "10.1.2.3"),
        ("10.1.2.3", [""], "10.1.2.3"),
        ("10.1.2.3", [], "10.1.2.3"),
        ("10.2.0.1", ["198.51.100.7"], "10.2.0.1"),
    ],
)
def test_a_trusted_proxy_names_the_address_of_its_client(peer: str, shown: list[str], found: str) -> None:
    client = proxied(peer, token="t")
    headers = [("Authorization", "Bearer t"), *(("X-Forwarded-For", text) for text in shown)]
    assert client.get("/address", headers=headers).json() == found


def test_clients_of_a_proxy_wait_for_their_own_wrong_logins() -> None:
    client = proxied(token="t")

    def code(host: str, token: str) -> int:
        headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": host}
        return client.get("/", headers=headers).status_code

    assert [code("198.51.100.7", "wrong") for _ in range(11)] == [401] * 10 + [429]
    assert code("198.51.100.8", "t") == 200
