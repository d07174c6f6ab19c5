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
    TOPOLOGY_LAG,
    TOPOLOGY_RECORDS,
    TOPOLOGY_STATE,
    TOPOLOGY_UNPROCESSED,
    UNROUTED,
)
from engine.telemetry.report import ComponentReport, MetricSample, PeerReport, Traffic
from engine.telemetry.status import DeadLetterCounts, Latest, State, Status
from engine.topologies.graph import write_graph
from engine.topologies.question import StateAnswer, StateQuestion
from tests.unit.page.bridge import CONFIGURATION, LOGIN, Page

EVERY = ("/", "/routes", "/topologies", "/try", "/dead-letters", "/dead-letters/audit", "/settings")
UNKNOWN = "\u2013"
SAME = {"Origin": "http://127.0.0.1"}
HOSTILE = "<script>alert(1)</script>\"'&\x1b[31m\u202e"


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return Page(tmp_path)


def flow(page: Page) -> None:
    for number in range(4):
        page.figures.set(JOURNALED, number * 600, "jms")
        page.figures.set(ROUTED, number * 500, "orders", "orders")
        page.figures.set(ROUTED, number * 100, "events", "jms-bridge.sink.nats")
        page.figures.set(DELIVERED, number * 100, "nats")
        page.figures.set(FAILED, number * 2, "orders", "key-not-found", "dead-letter")
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


def test_what_fails_is_told_with_a_sign_and_a_word(page: Page) -> None:
    flow(page)
    page.board.put(Status("source:jms", State.DEGRADED, "stomp://127.0.0.1:1 refuses"))
    page.board.put(Status("sink:nats", State.DOWN, "gone"))
    shown = page.text("/")
    assert "source:jms, sink:nats are not ready" in shown
    assert re.search(r'class="node warn"><title>jms \(stomp\): degraded. stomp://127.0.0.1:1 refuses', shown)
    assert re.search(r'class="node bad"><title>nats \(nats\): down. gone', shown)
    assert re.search(r'class="node warn"><title>orders \(route\): 6 failed', shown)


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
    assert len(re.findall(r'class="[^"]*\bwarn\b', page.text("/"))) > legend
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
    assert "msg.address LIKE &#39;events.%&#39;" in shown
    assert "msg.header.Type==test" in shown


def part(name: str, state: str = "ready", detail: str = "well") -> ComponentReport:
    return ComponentReport(name, state, detail, None, None, 2.0, None, None)


def rows(shown: str) -> list[list[str]]:
    """The cells of the table of parts."""
    table = shown[shown.index('<table class="cards">') :]
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
    assert rows(shown)[2:] == [
        ["source:jms", "edge-1:8480", "✗unreachable", silence, UNKNOWN],
        ["parts not known", "edge-2:8480", "✗unreachable", "no answer for 9 s: no route", UNKNOWN],
        ["sink:nats", "edge-3:8480", "!degraded", "gone", "2"],
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


def test_a_message_is_tried_against_the_routes(page: Page) -> None:
    code, text = tried(page, address="queue:orders", properties="region=emea\nCorrelationId=42", body="x", kind="text")
    assert code == 200
    assert "published to kafka:orders by route &#39;orders&#39;, key 42" in text
    assert "orders takes it" in text


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
        ({"properties": "region"}, "line 1 of the headers: &#39;region&#39; is none"),
        ({"properties": "a=1\nb:integer=2"}, "line 2 of the headers: there is no type &#39;integer&#39;"),
        ({"kind": "nothing"}, "there is no kind of body &#39;nothing&#39;"),
        ({"body": "x" * 1024 * 1024}, "this form holds more than 1024 KiB"),
        ({"properties": "a=1\n" * 1001}, "these are 1,001 headers; at most 1,000 are taken here"),
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
        ("where=" + "a" * 4097, "where has 4,097 characters; at most 4,096 are taken here"),
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


TOPOLOGY = CONFIGURATION + "topologies.totals.build=examples.order_totals:build\n"


def test_topologies_are_shown_with_their_figures_and_their_pictures(tmp_path: Path) -> None:
    page = Page(tmp_path, TOPOLOGY + f"embedded.data={tmp_path}\n")
    assert 'href="/topologies"' in page.text("/")
    assert "The picture appears when the topology has started" in page.text("/topologies")
    node = {"operator": "filter", "topics": [], "stateful": False, "asked": False, "python": "", "expression": ""}
    nodes = [
        {**node, "name": "orders", "operator": "source", "topics": ["orders"], "after": []},
        {**node, "name": "gold-python", "operator": "python column", "python": "m.is_gold", "after": ["orders"]},
        {**node, "name": "gold", "after": ["gold-python"]},
        {**node, "name": "gold-fields", "operator": "drop field", "after": ["gold"]},
        {**node, "name": HOSTILE, "operator": "aggregate", "stateful": True, "asked": True, "after": ["gold-fields"]},
        {**node, "name": "to-1", "operator": "sink", "topics": ["totals"], "after": [HOSTILE]},
    ]
    write_graph(page.config, "totals", "order-totals", nodes)
    for number in range(4):
        page.figures.set(TOPOLOGY_RECORDS, number * 600, "totals")
        page.figures.set(TOPOLOGY_LAG, 17, "totals")
        page.figures.set(TOPOLOGY_STATE, 2048, "totals")
        page.figures.set(TOPOLOGY_UNPROCESSED, 3, "totals", "gold", "rejected_records")
        page.sample()
    shown = page.text("/topologies")
    for figure in ("120/s", ">17<", "2.0 KiB", "gold: 3 rejected records", "application id <code>order-totals</code>"):
        assert figure in shown
    assert re.findall(r'class="rate"[^>]*>([^<]*)<', shown) == ["", "", "3 rejected", "", ""]
    assert re.findall(r'class="node (\w+)">', shown) == ["idle", "idle", "warn", "good", "idle"]
    assert [text.strip() for text in re.findall(r"</tspan>([^<]*)<", shown)] == [
        "from orders", "Python field", "filter", "aggregate", "to totals",
    ]  # fmt: skip
    assert "<script>alert" not in shown
    assert len(re.findall(r'class="line', shown)) == 4
    assert 'href="/topologies/state?topology=totals' in shown


@pytest.mark.parametrize(
    ("settings", "topic", "told", "not_told"),
    [
        ("", "orders", ["is counted and dropped", "7 unmatched", "2 expired"], "read the journal"),
        ("", "jms-bridge.journal", [
            "is left to the topologies that read the journal", '<a href="/topologies">totals</a>',
            "7 messages that no route matches", "2 expired",
        ], "7 unmatched"),
        ("routing.on-unmatched=dead-letter\n", "jms-bridge.journal", [
            "becomes a dead letter", "set <code>routing.on-unmatched=skip</code>, or give it a route",
        ], "is left to"),
    ],
)  # fmt: skip
def test_what_a_topology_reads_from_the_journal_is_not_told_as_unmatched(
    tmp_path: Path, settings: str, topic: str, told: list[str], not_told: str
) -> None:
    page = Page(tmp_path, TOPOLOGY + f"embedded.data={tmp_path}\n{settings}")
    node = {"topics": [], "stateful": False, "asked": False, "python": ""}
    nodes = [
        {**node, "name": "in", "operator": "source", "topics": [topic], "after": []},
        {**node, "name": "out", "operator": "sink", "topics": ["totals"], "after": ["in"]},
    ]
    write_graph(page.config, "totals", "order-totals", nodes)
    page.figures.set(UNROUTED, 7, "unmatched")
    page.figures.set(UNROUTED, 2, "expired")
    page.sample()
    shown = page.text("/routes")
    for each in told:
        assert each in shown
    assert not_told not in shown


def test_automatic_names_of_nodes_stand_with_their_expressions_and_counts(tmp_path: Path) -> None:
    page = Page(tmp_path, TOPOLOGY + f"embedded.data={tmp_path}\n")
    node = {"operator": "filter", "topics": [], "stateful": False, "asked": False, "python": ""}
    condition = "amount > 100 AND currency = 'EUR' AND region = 'emea'"
    write_graph(page.config, "totals", "order-totals", [
        {**node, "name": "orders", "operator": "source", "topics": ["orders"], "after": [], "expression": ""},
        {**node, "name": "filter-1", "after": ["orders"], "expression": condition},
        {**node, "name": "late", "after": ["filter-1"], "expression": "late = TRUE"},
    ])  # fmt: skip
    page.figures.set(TOPOLOGY_UNPROCESSED, 3, "totals", "filter-1", "rejected_records")
    page.figures.set(TOPOLOGY_UNPROCESSED, 1, "totals", "filter-1", "late_records")
    page.sample()
    shown = html.unescape(page.text("/topologies"))
    said = [text.strip() for text in re.findall(r"</tspan>([^<]*)<", shown)]
    assert said == ["from orders", "amou…emea'", "filter late = TRUE"]
    assert f"<title>filter-1 (filter): {condition}. 3 rejected records, 1 late records</title>" in shown
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr><th scope=.row.*?</tr>", shown)]
    assert cells[1] == [
        "<code>filter-1</code>",
        f"<code>{condition}</code>",
        "3 rejected records, 1 late records",
    ]


def test_topologies_are_in_the_overview_between_their_topics(tmp_path: Path) -> None:
    more = "topologies.alerts.build=examples.payment_alerts:build\ntopologies.new.build=m:build\n"
    page = Page(tmp_path, TOPOLOGY + more + f"embedded.data={tmp_path}\n")
    node = {"topics": [], "stateful": False, "asked": False, "python": "", "after": []}

    def graph(reads: list[str], writes: str) -> list[dict[str, object]]:
        sources = [{**node, "name": topic, "operator": "source", "topics": [topic]} for topic in reads]
        return [*sources, {**node, "name": "to-1", "operator": "sink", "topics": [writes], "after": reads}]

    write_graph(page.config, "totals", "t", graph(["orders", "rates", page.config.journal.topic], "sums"))
    write_graph(page.config, "alerts", "a", graph(["sums"], "alerts"))
    for number in range(4):
        page.figures.set(TOPOLOGY_RECORDS, number * 600, "totals")
        page.figures.set(TOPOLOGY_LAG, 17, "totals")
        page.figures.set(TOPOLOGY_LAG, 1700, "alerts")
        page.figures.set(TOPOLOGY_UNPROCESSED, 3, "alerts", "sums", "rejected_records")
        page.sample()
    shown = page.text("/")
    heads = re.findall(r'<text class="head"[^>]*>([^<]*)<', shown)
    assert heads[3:] == ["Topics and sinks", "Topologies", "Their topics", "Topologies", "Their topics"]
    places = {name: int(x) for x, name in re.findall(r'<text class="name" x="(\d+)"[^>]*>([^<]*)</text>', shown)}
    assert places["orders"] == places["rates"] < places["totals"] == places["new"] < places["sums"] < places["alerts"]
    figures = dict(
        re.findall(r'<text class="name"[^>]*>([^<]*)</text>.*?<text class="rate"[^>]*>([^<]*)<', shown, re.S)
    )
    assert (figures["totals"], figures["new"]) == ("120/s", "")
    assert re.search(r'class="node \w+"><title>alerts \(topology\): 3 rejected', shown)
    assert 'href="/topologies#part-topology_3atotals"' in shown
    routes, topologies = 2, 4 + 2
    assert len(re.findall(r'class="line', shown)) == 1 + 2 * routes + topologies
    assert "Destinations" not in shown


def test_topologies_that_read_each_other_have_a_picture(tmp_path: Path) -> None:
    page = Page(tmp_path, TOPOLOGY + f"topologies.back.build=m:build\nembedded.data={tmp_path}\n")
    node = {"stateful": False, "asked": False, "python": ""}
    for name, read, written in (("totals", "a", "b"), ("back", "b", "a")):
        write_graph(page.config, name, name, [
            {**node, "name": "in", "operator": "source", "topics": [read], "after": []},
            {**node, "name": "out", "operator": "sink", "topics": [written], "after": ["in"]},
        ])  # fmt: skip
    assert {">totals<", ">back<", ">a<", ">b<"} <= set(re.findall(r">\w+<", page.text("/")))


@pytest.fixture
def asked(tmp_path: Path) -> Page:
    """The page of a bridge with a topology that has a node with state, and one with state that cannot be asked."""
    page = Page(tmp_path, TOPOLOGY + f"embedded.data={tmp_path}\ntopologies.totals.interval=2m\n")
    node = {"operator": "x", "topics": [], "stateful": True, "python": "", "after": []}
    write_graph(page.config, "totals", "order-totals", [
        {**node, "name": "sums", "asked": True}, {**node, "name": "once", "asked": False},
    ])  # fmt: skip
    return page


def test_the_state_of_a_topology_can_be_asked(asked: Page) -> None:
    form = asked.text("/topologies/state?topology=totals")
    assert re.findall(r"<option[^>]*>([^<]*)<", form) == ["sums"]
    assert "up to 2 min ago" in form
    assert asked.questions == []

    rows = ({"key": "ann", "window_start": "2026-01-01T12:00:00.000Z", "total": 5.5, "who": {"a": 1}}, {"key": HOSTILE})
    asked.answer = StateAnswer(rows, has_more=True)
    shown = asked.text("/topologies/state?topology=totals&node=sums&key=&prefix=a&since=2026-01-01T12:00&until=99")
    assert asked.questions == [("totals", StateQuestion("sums", None, "a", 1_767_268_800_000, 99))]
    assert re.findall(r"<th scope[^>]*>([^<]*)<", shown) == ["key", "window_start", "total", "who"]
    assert ">5.5<" in shown
    assert "There are more rows than these 2" in shown
    assert "<script>alert" not in shown
    asked.answer = StateAnswer()
    assert "No row." in asked.text("/topologies/state?topology=totals&node=sums&key=nobody")


@pytest.mark.parametrize(
    ("query", "status", "told"),
    [
        ("topology=other&node=sums", 404, "has run on this machine"),
        ("topology=totals&node=sums&since=yesterday", 400, "is no time"),
        (f"topology=totals&node=sums&until={2**63}", 400, "is no time"),
        ("topology=totals&node=sums&key=" + 2_000 * "k", 400, "longer than 1024 characters"),
        ("topology=totals&node=sums", 503, "gave no answer within"),
    ],
)
def test_a_question_that_has_no_answer_is_told_why(asked: Page, query: str, status: int, told: str) -> None:
    answer = asked.client.get(f"/topologies/state?{query}")
    assert answer.status_code == status
    assert told in answer.text


def test_a_fault_in_the_answer_is_shown(asked: Page) -> None:
    asked.answer = StateAnswer(fault="'sums' has no windows: ask without times")
    assert "has no windows: ask without times" in html.unescape(
        asked.text("/topologies/state?topology=totals&node=sums")
    )


def test_a_bridge_without_topologies_has_no_link_to_them(page: Page) -> None:
    assert 'href="/topologies"' not in page.text("/")
    assert "No topology is configured" in page.text("/topologies")
