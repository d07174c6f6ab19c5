"""The pages of a bridge that only has figures: what they show, and that nothing in them is run."""

from __future__ import annotations

import html
import re
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from engine.telemetry.metrics import (
    DELIVERED,
    FAILED,
    JOURNALED,
    LAG_RECORDS,
    LAG_SECONDS,
    ROUTED,
    SOURCE_WAITING,
    UNMATCHED_BY_ADDRESS,
)
from engine.telemetry.report import ComponentReport, MetricSample, PeerReport, Traffic
from engine.telemetry.status import DeadLetterCounts, Latest, State, Status
from tests.unit.page.bridge import CONFIGURATION, HOSTILE, LOGIN, Page

EVERY = ("/", "/routes", "/topologies", "/try", "/dead-letters", "/dead-letters/audit", "/settings")
UNKNOWN = "\u2013"
SAME = {"Origin": "http://127.0.0.1"}


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return Page(tmp_path)


def flow(page: Page) -> None:
    for number in range(4):
        page.figures.set(JOURNALED, number * 600, "jms")
        page.figures.set(ROUTED, number * 500, "orders", "orders")
        page.figures.set(ROUTED, number * 100, "events", "jms-bridge.sink.nats")
        page.figures.set(DELIVERED, number * 100, "nats")
        page.figures.set(FAILED, number * 2, "orders", "kafka:orders", "key-not-found", "dead-letter")
        page.figures.set(LAG_RECORDS, 17, "0")
        page.figures.set(LAG_SECONDS, 0.5)
        page.sample()


def test_the_overview_shows_every_part_of_the_topology_with_its_rate(page: Page) -> None:
    flow(page)
    shown = page.text("/")
    assert "All parts are ready" in shown
    found = dict(re.findall(r'<text class="name"[^>]*>([^<]*)</text>.*?<text class="rate"[^>]*>([^<]*)<', shown, re.S))
    assert found == {"jms": "120/s", "Journal": "17 wait", "orders": "100/s", "events": "20/s", "nats": "20/s",
                     "Dead letters": ""}  # fmt: skip


def test_a_source_shows_how_many_messages_wait_at_its_system(page: Page) -> None:
    flow(page)
    page.figures.set(SOURCE_WAITING, 1234, "jms")
    page.sample()
    shown = page.text("/")
    assert re.search(r'<text class="name"[^>]*>jms</text>.*?<text class="rate"[^>]*>1,234 wait<', shown, re.S)


def test_what_fails_is_told_with_a_sign_and_a_word(page: Page) -> None:
    flow(page)
    page.board.put(Status("source:jms", State.DEGRADED, "stomp://127.0.0.1:1 refuses"))
    page.board.put(Status("sink:nats", State.DOWN, "gone"))
    shown = page.text("/")
    assert "source:jms, sink:nats are not ready" in shown
    assert re.search(r'class="node bad"><title>jms \(stomp\): degraded. stomp://127.0.0.1:1 refuses', shown)
    assert re.search(r'class="node bad"><title>nats \(nats\): down. gone', shown)
    assert re.search(r'class="node warn"><title>orders \(route\): 6 failed', shown)


def test_addresses_that_no_route_takes_are_on_the_overview(page: Page) -> None:
    assert "that no route took" not in page.text("/")
    for number in range(25):
        page.figures.set(UNMATCHED_BY_ADDRESS, 100 + number, f"address-{number}")
    page.figures.set(UNMATCHED_BY_ADDRESS, 1000, HOSTILE)
    page.sample()
    shown = page.text("/")
    assert HOSTILE not in shown
    assert "address-24" in shown
    assert "address-1<" not in shown
    assert "and 6 more addresses" in shown


@dataclass
class Follower:
    """The standing of a bridge that does not lead."""

    has_leader: bool
    why_not: str
    leads: bool = False
    stands_by: bool = True


def test_a_bridge_that_stands_by_is_told_from_one_that_no_bridge_leads(tmp_path: Path) -> None:
    waits = Page(tmp_path, standing=Follower(True, "another bridge leads (h)")).text("/")
    assert "This bridge stands by: another bridge leads (h)" in waits
    alone = Page(tmp_path, standing=Follower(False, "waiting for Kafka")).text("/")
    assert "No bridge is known to lead: waiting for Kafka" in alone
    assert "This bridge stands by" not in alone
    starts = Page(tmp_path, standing=Follower(False, "")).text("/")
    assert "All parts are ready" in starts
    assert "No bridge is known" not in starts


def test_a_healthy_standby_has_no_amber_part_and_a_faulty_one_has(tmp_path: Path) -> None:
    election = Follower(True, "bridge b2 leads")
    page = Page(tmp_path, standing=election)
    for name in ("router", "source:jms", "sink:nats"):
        page.board.put(Status(name, State.STARTING, "waiting"))
    text = page.text("/")
    legend = text.count("needs attention")
    assert len(re.findall(r'class="[^"]*\bwarn\b', text)) == legend
    assert text.count("standing by") >= 3
    page.board.put(Status("sink:nats", State.DEGRADED, "gone"))
    assert re.search(r'class="node bad"><title>nats', page.text("/"))
    page.board.put(Status("sink:nats", State.STARTING, "waiting"))
    election.stands_by = False
    assert len(re.findall(r'class="[^"]*\bwarn\b', page.text("/"))) > legend


def test_a_journal_that_falls_behind_is_seen(page: Page) -> None:
    for seconds, told in ((0.0, "routing"), (30.0, "behind"), (90.0, "stuck")):
        page.figures.set(LAG_SECONDS, seconds)
        page.figures.set(LAG_RECORDS, 5, "0")
        page.sample()
        assert f"Journal (router): {told}" in page.text("/")


def test_open_dead_letters_are_on_the_overview(page: Page) -> None:
    page.census = DeadLetterCounts(
        "dead", reachable=True, open={"unmatched": 3}, oldest=time.time() - 7300, quarantined=2
    )
    shown = page.text("/")
    assert "3 open" in shown
    assert "oldest 2 h 1 min, 2 in quarantine" in shown
    page.census = DeadLetterCounts("dead", trouble="Kafka at 127.0.0.1:1 does not answer")
    assert "The dead-letter topic cannot be reached" in page.text("/")


def test_routes_have_their_counts_and_the_last_error(page: Page) -> None:
    flow(page)
    latest = Latest(int(time.time() * 1000) - 65_000, "key-not-found", "there is no value", "0:41")
    page.census = DeadLetterCounts("dead", reachable=True, latest={"orders": latest})
    shown = page.text("/routes")
    assert "1,500" in shown
    assert "6 key-not-found" in shown
    assert re.search("1 min [5-9] s ago", shown)
    assert 'href="/dead-letters/letter/0/41"' in shown
    assert "msg.<wbr>address LIKE &#39;events.%&#39;" in shown
    assert "msg.<wbr>header.<wbr>Type==test" in shown


def part(name: str, state: str = "ready", detail: str = "well") -> ComponentReport:
    return ComponentReport(name, state, detail, None, None, 2.0, None, None)


def rows(shown: str) -> list[list[str]]:
    """The cells of the table of parts."""
    table = shown[shown.index('<table class="cards parts">') :]
    found = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in re.findall(r"<tr id.*?</tr>", table, re.S)]
    return [[re.sub(r"<[^>]*>", "", cell) for cell in row] for row in found]


def test_parts_of_all_hosts_are_shown_and_marked_by_host(tmp_path: Path) -> None:
    page = Page(tmp_path, peers=True)
    for name in ("source:jms", "sink:nats"):
        page.board.forget(name)
    page.peers = [PeerReport("edge-1:8480", True, 0.5, "", True, (part("source:jms"), part("source:jms/2")))]
    page.peers += [PeerReport("edge-2:8480", True, 0.5, "", True, (part("source:jms"), part("sink:nats")))]
    shown = page.text("/")
    assert "All parts are ready" in shown
    assert rows(shown) == [
        ["router", "this host", "✓ready", "well", "0"],
        ["source:jms", "edge-1:8480", "✓ready", "well", "2"],
        ["source:jms/2", "edge-1:8480", "✓ready", "well", "2"],
        ["source:jms", "edge-2:8480", "✓ready", "well", "2"],
        ["sink:nats", "edge-2:8480", "✓ready", "well", "2"],
    ]
    anchors = re.findall(r'<tr id="([^"]*)"', shown)
    assert len(set(anchors)) == 5
    assert 'href="#part-source_3ajms"' in shown
    assert re.search(r'class="node good"><title>jms \(stomp\): ready', shown)


def test_figures_of_all_hosts_are_added_up(tmp_path: Path) -> None:
    page = Page(tmp_path, peers=True)
    flow(page)
    before, now = (
        MetricSample(seconds, {JOURNALED.name: (({"source": "jms"}, count),)})
        for seconds, count in ((100.0, 1000.0), (103.0, 1090.0))
    )
    page.elsewhere = [Traffic(before, now)]
    shown = page.text("/")
    assert "<dd>150/s</dd>" in shown
    assert re.search(r'<text class="name"[^>]*>jms</text>.*?<text class="rate"[^>]*>150/s<', shown, re.S)


def test_parts_of_a_host_that_does_not_answer_are_unreachable(tmp_path: Path) -> None:
    page = Page(tmp_path, peers=True)
    page.board.forget("source:jms")
    page.peers = [PeerReport("edge-1:8480", False, 75, "<b>refused", False, (part("source:jms", "unreachable", ""),))]
    page.peers += [PeerReport("edge-2:8480", False, 9, "no route", False, ())]
    page.peers += [PeerReport("edge-3:8480", True, 0.5, "", False, (part("sink:nats", "degraded", "gone"),))]
    shown = page.text("/")
    assert "edge-1:8480, edge-2:8480 are unreachable; sink:nats at edge-3:8480 is not ready" in shown
    silence = "no answer for 1 min 15 s: &lt;b&gt;refused"
    assert rows(shown)[:3] == [
        ["source:jms", "edge-1:8480", "✗unreachable", silence, UNKNOWN],
        ["parts not known", "edge-2:8480", "✗unreachable", "no answer for 9 s: no route", UNKNOWN],
        ["sink:nats", "edge-3:8480", "✗degraded", "gone", "2"],
    ]
    assert re.search(r'class="node bad"><title>jms \(stomp\): unreachable', shown)


def test_a_router_that_stands_by_on_another_host_does_not_hide_the_one_that_leads(tmp_path: Path) -> None:
    page = Page(tmp_path, peers=True)
    page.peers = [PeerReport("spare:8480", True, 0.5, "", True, (part("router", "standing by"),))]
    shown = page.text("/")
    assert "All parts are ready" in shown
    assert re.search(r'class="node good"><title>Journal \(router\): up to date', shown)


def test_hundreds_of_routes_leave_a_picture_that_can_be_read(tmp_path: Path) -> None:
    more = "".join(f"routes.r{n}.in.include=msg.address==a{n}\nroutes.r{n}.out.topic=t{n}\n" for n in range(300))
    page = Page(tmp_path, f"bridge.id=b\nsource.s.type=stomp\nsource.s.destinations=queue:q\n{more}")
    page.figures.set(ROUTED, 0, "r299", "t299")
    page.sample()
    page.figures.set(ROUTED, 100, "r299", "t299")
    page.sample()
    shown = page.text("/")
    assert "and 284 more" in shown
    assert ">r299</text>" in shown
    assert page.text("/routes").count("<tr id=") == 300


def test_routes_are_filtered_and_sorted_by_the_url(tmp_path: Path) -> None:
    more = "".join(f"routes.r{n}.in.include=msg.address==a{n}\nroutes.r{n}.out.topic=t{n}\n" for n in range(12))
    page = Page(tmp_path, f"bridge.id=b\nsource.s.type=stomp\nsource.s.destinations=queue:q\n{more}")
    page.figures.set(ROUTED, 7, "r4", "t4")
    page.figures.set(ROUTED, 90, "r10", "t10")
    page.sample()

    def names(query: str) -> list[str]:
        return re.findall(r"<strong>(r[0-9]+)</strong>", page.text(f"/routes?{query}"))

    assert names("") == [f"r{n}" for n in range(12)]
    assert names("filter=r1+ADDRESS%3D%3Da1") == ["r1", "r10", "r11"]
    assert names("sort=-routed")[:3] == ["r10", "r4", "r0"]
    assert names("sort=-name&filter=r1") == ["r11", "r10", "r1"]
    assert "3 of 12 routes" in page.text("/routes?filter=r1")
    sorted_by = page.text("/routes?filter=r1&sort=-routed")
    assert re.search(
        r'aria-sort="descending"[^>]*><a href="/routes\?filter=r1&amp;sort=routed" class="sorted">', sorted_by
    )
    assert sorted_by.count("aria-sort") == 1
    assert "No route has this." in page.text("/routes?filter=%3Cscript%3E")
    refused = page.client.get("/routes?sort=colour")
    assert refused.status_code == 400
    assert "expected one of order, name, rate" in refused.text


def test_settings_show_what_the_file_sets_and_no_secret(page: Page) -> None:
    shown = page.text("/settings")
    assert "source.jms.password" in shown
    assert "geheim" not in shown + page.text("/settings?all=1")
    assert "line 6" in shown
    assert "journal.partitions" not in shown
    assert "journal.partitions" in page.text("/settings?all=1")
    page.reload = {"reload": {"success": False, "time": "2026-11-22T05:00:00+00:00", "why": "line 3: unknown key"}}
    assert "line 3: unknown key" in page.text("/settings")


def tried(page: Page, **fields: str) -> tuple[int, str]:
    answer = page.client.post("/try", data={"seal": page.seal("/try"), **fields}, headers=SAME)
    return answer.status_code, re.sub(r"<[^>]+>", "", answer.text)


def test_of_many_routes_that_were_tried_the_one_that_takes_the_message_stands_first(tmp_path: Path) -> None:
    more = "".join(f"routes.r{n}.in.include=msg.address==a{n}\nroutes.r{n}.out.topic=t{n}\n" for n in range(40))
    page = Page(tmp_path, f"bridge.id=b\nsource.s.type=stomp\nsource.s.destinations=queue:q\n{more}")
    _, shown = tried(page, address="queue:a30")
    assert shown.index("r30 takes it") < shown.index("30 routes do not take it") < shown.index("r0 does not take it")


def test_a_message_is_tried_against_the_routes(page: Page) -> None:
    code, text = tried(page, address="queue:orders", properties="region=emea\nCorrelationId=42", body="x", kind="text")
    assert code == 200
    assert "published to kafka:orders by route &#39;orders&#39;, key 42" in text
    assert "orders takes it" in text


def test_the_body_of_a_tried_message_is_shown_as_its_route_masks_it(tmp_path: Path) -> None:
    page = Page(tmp_path, CONFIGURATION + "routes.events.out.mask=msg.body.card\n")
    _, text = tried(page, address="topic:events.a", body='{"card":4711,"n":"<b>"}', kind="text")
    result = html.unescape(text.partition("The message")[0])
    assert 'Body as published\n{"card":"***","n":"<b>"}' in result
    assert "4711" not in result
    _, text = tried(page, address="topic:events.a", body="no JSON", kind="text")
    assert "the mask could not be applied: the body is not JSON" in text
    assert "Body as published" not in text


def test_the_body_of_a_tried_message_is_shown_as_its_route_converts_it(tmp_path: Path) -> None:
    page = Page(tmp_path, CONFIGURATION + "routes.events.out.convert=to IBM1047\n")
    _, text = tried(page, address="topic:events.a", body="Ä[", kind="text")
    assert "Body as published\nhex 63 ad" in text
    _, text = tried(page, address="topic:events.a", body="€", kind="text")
    assert "&#39;to IBM1047&#39; could not be applied: U+20AC at 0 is not in IBM1047" in text
    assert "Body as published" not in text


def test_a_tried_message_shows_that_its_body_leaves_as_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "bodies"
    page = Page(tmp_path, CONFIGURATION + f"claim-check.folder={folder}\nroutes.events.out.claim-check-above=1KiB\n")
    _, text = tried(page, address="topic:events.a", body="x" * 2000, kind="text")
    assert "its body of 2,000 bytes as a file in claim-check.folder" in text
    assert "jmsbridge.claim" in text
    assert not folder.exists()
    assert "jmsbridge.claim" not in tried(page, address="topic:events.a", body="x", kind="text")[1]


def test_a_message_that_fails_says_why(page: Page) -> None:
    _, text = tried(page, address="queue:orders", properties="region=emea", kind="text")
    assert "dead letter in kafka:dead: key-not-found" in text
    assert "there is no value under &#39;JMSCorrelationID&#39;" in text
    _, text = tried(page, address="queue:elsewhere", kind="text")
    assert "no route takes it" in text
    assert text.count("does not take it") == 2


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"properties": "region"}, "line 1 of the headers: &#39;region&#39; is not a header"),
        ({"properties": "a=1\nb:integer=2"}, "line 2 of the headers: there is no type &#39;integer&#39;"),
        ({"kind": "nothing"}, "there is no kind of body &#39;nothing&#39;"),
        ({"body": "x" * 1024 * 1024}, "this form holds more than 1024 KiB"),
        ({"properties": "a=1\n" * 1001}, "there are 1,001 headers; at most 1,000 are taken here"),
    ],
)
def test_a_form_that_makes_no_message_is_refused_in_words(page: Page, fields: dict[str, str], told: str) -> None:
    code, text = tried(page, **fields)
    assert code == 400
    assert told in text


@pytest.mark.parametrize(
    ("headers", "seal"),
    [({}, ""), ({"Origin": "http://evil.example"}, ""), ({"Sec-Fetch-Site": "same-origin"}, "0" * 64)],
)
def test_no_other_site_has_a_message_tried(page: Page, headers: dict[str, str], seal: str) -> None:
    fields = {"seal": seal or page.seal("/try"), "address": "queue:orders", "kind": "text"}
    answer = page.client.post("/try", data=fields, headers=headers)
    assert answer.status_code == 403
    assert "takes it" not in answer.text


def test_what_no_form_holds_is_refused(page: Page) -> None:
    assert page.client.post("/try", content=b"\xff\xfe\x00").status_code == 400
    assert page.client.post("/try", content="&".join(["a=1"] * 5000)).status_code == 400


def test_nothing_that_was_typed_or_said_is_run(page: Page) -> None:
    page.board.put(Status("source:jms", State.DEGRADED, HOSTILE))
    latest = Latest(1, HOSTILE, HOSTILE, "0:1")
    page.census = DeadLetterCounts("dead", trouble=HOSTILE, latest={"orders": latest})
    page.reload = {"reload": {"success": False, "time": "now", "why": HOSTILE}}
    answers = [page.client.get(path) for path in ("/", "/routes", "/settings")]
    fields = {"seal": page.seal("/try"), "address": HOSTILE, "properties": f"region={HOSTILE}", "body": HOSTILE}
    answers += [
        page.client.post("/try", data=fields, headers=SAME),
        page.client.get("/dead-letters", params={"since": HOSTILE}),
    ]
    for answer in answers:
        assert "alert(1)" in answer.text
        assert "<script>alert" not in answer.text
        assert "\x1b" not in re.sub(r'value="[^"]*"|<textarea.*?</textarea>', "", answer.text, flags=re.S)


def test_with_nothing_configured_every_page_says_what_to_do(tmp_path: Path) -> None:
    page = Page(tmp_path, "bridge.id=b1\nroutes.r.in.include=TRUE\nroutes.r.out.topic=t\n")
    page.config = replace(page.config, routes=(), sources=())
    assert "Nothing is configured yet." in page.text("/")
    assert "There are no routes." in page.text("/routes")
    assert "No route was tried." in tried(page, address="queue:q", kind="text")[1]


def test_with_kafka_down_dead_letters_say_so_within_three_seconds(page: Page) -> None:
    for path in ("/dead-letters", "/dead-letters/letter/0/1", "/dead-letters/audit"):
        began = time.monotonic()
        answer = page.client.get(path)
        assert time.monotonic() - began < 3.0
        assert answer.status_code == 503
        assert "Kafka at 127.0.0.1:1 d" in answer.text
    assert page.client.get("/").status_code == 200


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("since=yesterday", "expected a time"),
        ("where=a+%3D%3D+%26", "where:6: error:"),
        ("until=-1h", "expected a time"),
        ("where=" + "a" * 4097, "the field &#39;where&#39; has 4,097 characters; at most 4,096 are taken here"),
    ],
)
def test_a_filter_that_makes_no_sense_is_named(page: Page, query: str, told: str) -> None:
    answer = page.client.get(f"/dead-letters?{query}")
    assert answer.status_code == 400
    assert told in answer.text


@pytest.mark.parametrize("path", [*EVERY, "/static/page.css", "/static/page.js"])
def test_every_page_forbids_what_it_does_not_need(page: Page, path: str) -> None:
    headers = page.client.get(path).headers
    policy = dict(each.strip().split(" ", 1) for each in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert (headers["x-frame-options"], headers["cache-control"]) == ("DENY", "no-store")
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", EVERY)
def test_no_page_needs_what_the_policy_forbids(page: Page, path: str) -> None:
    text = page.client.get(path).text
    assert not re.search(r"<style|<script(?! src=\"/static/)| style=| on[a-z]+=|javascript:", text)
    assert not re.search(r'(?:src|href)="(?:https?:)?//', text)
    assert re.search(r'<html lang="en">', text)
    assert len(re.findall(r"<h1[ >]", text)) == len(re.findall(r"<main[ >]", text)) == 1
    assert all(f'id="{name}"' in text for name in re.findall(r'<label for="([^"]+)"', text))


@pytest.mark.parametrize("path", [*EVERY, "/static/page.css"])
def test_everything_is_behind_the_login(tmp_path: Path, path: str) -> None:
    page = Page(tmp_path, login=True)
    assert page.client.get(path).status_code == 401
    assert page.client.get(path, headers=LOGIN).status_code != 401


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("127.0.0.1:8480", 200),
        ("127.0.0.1", 200),
        ("localhost", 200),
        ("LocalHost:8480", 200),
        ("localhost:", 200),
        ("[::1]:1", 200),
        ("[::1]", 200),
        ("[0:0:0:0:0:0:0:1]:8480", 200),
        ("evil.example", 421),
        ("", 421),
        ("[", 421),
        ("::1", 421),
        ("[127.0.0.1]", 421),
        ("[::1]x", 421),
        ("[[::1]]", 421),
        ("[::1%25lo]", 421),
        ("evil.example@127.0.0.1", 421),
        ("evil.example:80@127.0.0.1:8480", 421),
        ("127.0.0.1#evil.example", 421),
        ("127.0.0.1:8480#evil.example", 421),
        ("127.0.0.1?evil.example", 421),
        ("127.0.0.1/evil.example", 421),
        ("127.0.0.1\\evil.example", 421),
        ("127.0.0.1 evil.example", 421),
        ("127.0.0.1,evil.example", 421),
        ("127.0.0.1:x", 421),
        ("127.0.0.1:1:2", 421),
        ("127.0.0.1:-1", 421),
        ("localhost.evil.example", 421),
    ],
)
def test_without_a_login_no_other_name_leads_to_the_page(page: Page, host: str, code: int) -> None:
    assert page.client.get("/", headers={"Host": host}).status_code == code


def test_with_a_login_any_name_does(tmp_path: Path) -> None:
    page = Page(tmp_path, login=True)
    assert page.client.get("/", headers={**LOGIN, "Host": "bridge.example"}).status_code == 200


def test_a_bridge_without_topologies_has_no_link_to_them(page: Page) -> None:
    assert 'href="/topologies"' not in page.text("/")
    assert "No topology is configured" in page.text("/topologies")
