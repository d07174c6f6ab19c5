"""Pages that show topologies of users: the picture, figures, nodes, and questions about their state."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from engine.telemetry.metrics import (
    TOPOLOGY_LAG,
    TOPOLOGY_RECORDS,
    TOPOLOGY_STATE,
    TOPOLOGY_UNPROCESSED,
    UNROUTED,
)
from engine.topologies.graph import write_graph
from engine.topologies.question import StateAnswer, StateFault, StateQuestion
from tests.unit.page.bridge import CONFIGURATION, HOSTILE, Page

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
    write_graph(page.config.embedded.data, "totals", "order-totals", nodes)
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
    write_graph(page.config.embedded.data, "totals", "order-totals", nodes)
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
    write_graph(page.config.embedded.data, "totals", "order-totals", [
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

    write_graph(page.config.embedded.data, "totals", "t", graph(["orders", "rates", page.config.journal.topic], "sums"))
    write_graph(page.config.embedded.data, "alerts", "a", graph(["sums"], "alerts"))
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
        write_graph(page.config.embedded.data, name, name, [
            {**node, "name": "in", "operator": "source", "topics": [read], "after": []},
            {**node, "name": "out", "operator": "sink", "topics": [written], "after": ["in"]},
        ])  # fmt: skip
    assert {">totals<", ">back<", ">a<", ">b<"} <= set(re.findall(r">\w+<", page.text("/")))


@pytest.fixture
def asked(tmp_path: Path) -> Page:
    """The page of a bridge with a topology that has a node with state, and one with state that cannot be asked."""
    page = Page(tmp_path, TOPOLOGY + f"embedded.data={tmp_path}\ntopologies.totals.interval=2m\n")
    node = {"operator": "x", "topics": [], "stateful": True, "python": "", "after": []}
    write_graph(page.config.embedded.data, "totals", "order-totals", [
        {**node, "name": "sums", "asked": True}, {**node, "name": "once", "asked": False},
    ])  # fmt: skip
    return page


def test_the_state_of_a_topology_can_be_asked(asked: Page) -> None:
    form = asked.text("/topologies/state?topology=totals")
    assert re.findall(r"<option[^>]*>([^<]*)<", form) == ["sums", "now", "the last commit"]
    assert "up to 2 min ago" in form
    assert asked.questions == []

    rows = ({"key": "ann", "window_start": "2026-01-01T12:00:00.000Z", "total": 5.5, "who": {"a": 1}}, {"key": HOSTILE})
    asked.answer = StateAnswer(rows, "0:1.ab")
    shown = asked.text("/topologies/state?topology=totals&node=sums&key=&prefix=a&since=2026-01-01T12:00&until=99")
    assert asked.questions == [("totals", StateQuestion("sums", None, "a", 1_767_268_800_000, 99))]
    assert re.findall(r"<th scope[^>]*>([^<]*)<", shown) == ["key", "window_start", "total", "who"]
    assert ">5.5<" in shown
    assert "2 rows as of the last commit" in shown
    assert "after=0%3A1.ab" in shown
    assert [(look.way, look.state) for look in asked.looks.looks] == [("state page", "totals/sums")]
    assert "<script>alert" not in shown
    asked.answer = StateAnswer()
    assert "No row." in asked.text("/topologies/state?topology=totals&node=sums&key=nobody")


@pytest.mark.parametrize(
    ("query", "status", "told"),
    [
        ("topology=other&node=sums", 404, "has run on this machine"),
        ("topology=totals&node=sums&since=yesterday", 400, "is not a time"),
        (f"topology=totals&node=sums&until={2**63}", 400, "is not a time"),
        ("topology=totals&node=sums&key=" + 2_000 * "k", 400, "longer than 1024 characters"),
        ("topology=totals&node=sums", 503, "gave no answer within"),
    ],
)
def test_a_question_that_has_no_answer_is_told_why(asked: Page, query: str, status: int, told: str) -> None:
    answer = asked.client.get(f"/topologies/state?{query}")
    assert answer.status_code == status
    assert told in answer.text


def test_a_fault_in_the_answer_is_shown(asked: Page) -> None:
    asked.answer = StateAnswer(fault="'sums' has no windows: ask without times", kind=StateFault.QUESTION)
    answer = asked.client.get("/topologies/state?topology=totals&node=sums")
    assert answer.status_code == 400
    assert "has no windows: ask without times" in html.unescape(answer.text)
