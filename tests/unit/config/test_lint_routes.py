"""Warnings about routes that get no message, and about what no message has; each at its place in the file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from routes.config import lint, lint_text
from routes.errors import Level
from routes.keys.secrets import variables

ROOT = Path(__file__).parents[3]
SHIPPED = (ROOT / "engine/cli/templates/jms-bridge.properties", ROOT / "deploy/helm/orders.properties")
START = "bridge.id=b\nsource.s.type=stomp\nsource.s.destinations=queue:q\n"


def told(*lines: str) -> list[str]:
    faults = lint_text(START + "\n".join(lines), env={"W": "JMSPriorty", "N": "'hunter2'"}).faults
    assert all(fault.level is Level.WARNING for fault in faults)
    return [str(fault).splitlines()[0] for fault in faults]


def route(name: str, include: str, *more: str) -> tuple[str, ...]:
    return (f"routes.{name}.in.include={include}", f"routes.{name}.out.topic=t", *more)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            route("r", "x = 1 AND JMSPriorty = 4"),
            "4:31: warning: there is no field JMSPriorty (did you mean JMSPriority?)",
        ),
        (
            route("r", "x=1", "routes.r.in.exclude=JMSPriority='4'"),
            "6:33: warning: JMSPriority is a number, never the text '4' (write 4 without quotes)",
        ),
        (
            route("r", "x=1", "routes.r.conv.key=msg.header.JMSCorrelationId"),
            "6:30: warning: there is no field JMSCorrelationId (did you mean JMSCorrelationID?)",
        ),
        (
            ("routes.r.in.include=x=1", "routes.r.out.topic=a.${msg.header.JMSTyp}"),
            "5:35: warning: there is no field JMSTyp (did you mean JMSType?)",
        ),
        (
            route("r", "a = '$${' AND JMSTyp = 'x'"),
            "4:35: warning: there is no field JMSTyp (did you mean JMSType?)",
        ),
        (
            route("r", "x=1", "source.s.selector=x = 1 AND JMSPriorty = 4"),
            "6:29: warning: there is no field JMSPriorty (did you mean JMSPriority?)",
        ),
    ],
)
def test_what_no_message_has_is_warned_of_at_its_place(lines: tuple[str, ...], message: str) -> None:
    assert told(*lines) == [message]


def test_paths_into_bodies_are_known() -> None:
    body = (
        "routes.r.in.include=msg.body.a = 1",
        "routes.r.out.topic=t.${msg.body.b}",
        "routes.r.conv.key=msg.body.c.d",
    )
    assert told(*body) == []
    assert told(*body[:2], "routes.r.conv.key=payload_id", 'routes.r.in.exclude="body.x" = 1') == [
        "7:21: warning: 'body.x' is a property here (write msg.body.x for the field of the body)"
    ]


def test_what_a_reference_stands_for_is_not_reported() -> None:
    assert told(*route("r", "${env:W} = 4 AND JMSPriority = ${env:N}")) == []


def test_a_route_behind_one_that_takes_everything_gets_nothing() -> None:
    lines = (*route("all", "TRUE"), *route("b", "x=1"), *route("c", "true"))
    hint = "(the first route that matches wins)"
    assert told(*lines) == [
        f"6:21: warning: route 'b' never gets a message: 'all' takes every one before it {hint}",
        f"8:21: warning: route 'c' never gets a message: 'all' takes every one before it {hint}",
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a = 'x'", "a = 'x' AND b > 3"),
        ("a > 5", "a > 10"),
        ("a IN ('x', 'y')", "a = 'x'"),
        ("a LIKE 'x%' OR b = 1", "a IN ('xy', 'xz') AND c IS NOT NULL"),
    ],
)
def test_a_route_that_an_earlier_one_covers_gets_nothing(first: str, second: str) -> None:
    assert told(*route("a", first), *route("b", second)) == [
        "6:21: warning: route 'b' never gets a message: 'a' takes all that it could take before it "
        "(move it before 'a', since the first route that matches wins)"
    ]
    assert told(*route("b", second), *route("a", first)) == []


def test_conditions_that_exclude_each_other_are_warned_of() -> None:
    assert told(*route("a", "region = 'eu' AND amount > 1000 AND amount < 10")) == [
        "4:57: warning: no value of amount meets this condition and amount > 1000 "
        "(join them with OR, or correct one of them)"
    ]


@pytest.mark.parametrize(
    "lines",
    [
        (*route("a", "x=1"), *route("all", "TRUE")),
        (*route("a", "x > 5", "routes.a.in.continue=true"), *route("b", "x > 10")),
        (*route("a", "x > 5", "routes.a.in.exclude=y"), *route("b", "x > 10")),
        (*route("a", "x > 5"), *route("b", "x > 10 AND msg.body.y = 1", "routes.b.in.body=json")),
        (*route("all", "TRUE", "routes.all.in.exclude=x=1"), *route("b", "x=1")),
        (*route("none", "FALSE"), *route("b", "x=1")),
        (*route("all", "TRUE", "routes.all.in.continue=true"), *route("b", "x=1")),
        (*route("a", "x=1", "routes.a.in.continue=true"), *route("b", "x=1")),
    ],
)
def test_a_route_that_may_get_something_is_not_warned_of(lines: tuple[str, ...]) -> None:
    assert told(*lines) == []


def test_the_last_route_has_no_route_for_its_messages_to_go_on_to() -> None:
    lines = (*route("a", "x=1", "routes.a.in.continue=true"), *route("b", "x=2", "routes.b.in.continue=true"))
    assert told(*lines) == [
        "9:22: warning: no route comes after this one (move the route up, or remove the key)",
    ]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("t,", "5:22: error: a destination is missing between commas (as in orders, nats:orders.eu)"),
        ("t, , u", "5:23: error: a destination is missing between commas (as in orders, nats:orders.eu)"),
        ("t, u, t", "5:26: error: 't' is listed twice (name each destination once)"),
        ("t, kafka:t", "5:23: error: 'kafka:t' is listed twice (name each destination once)"),
        ("t, nope:u", "5:23: error: 'nope' is neither kafka nor a sink (as in kafka:orders, or SINK:ADDRESS)"),
        ("t, __offsets", "5:23: error: '__offsets' is a topic of Kafka itself (name another topic)"),
        ("t, jms-bridge.journal", "5:23: error: 'jms-bridge.journal' is the journal (name another topic)"),
        ("t, u.${msg.header.x", "5:25: error: '${' without its '}' (as in orders.${msg.header.region})"),
        (
            "t, a b",
            "5:24: error: 'a b' is not a valid Kafka topic name (letters, digits, '.', '_' and '-', 249 at most)",
        ),
    ],
)
def test_a_fault_in_one_of_several_destinations_is_told_where_it_stands(value: str, said: str) -> None:
    faults = lint_text(START + f"routes.r.in.include=TRUE\nroutes.r.out.topic={value}\n").faults
    assert [str(fault).splitlines()[0] for fault in faults] == [said]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.name)
def test_nothing_that_comes_with_the_bridge_is_warned_of(path: Path) -> None:
    linted = lint(path, dict.fromkeys(variables(path.read_text(encoding="utf-8")), "x" * 32))
    assert [str(fault) for fault in linted.faults] == []


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = [
    found
    for page in PAGES
    for found in re.findall(r"^```properties\n(.+?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_no_example_in_the_documentation_is_warned_of(example: str) -> None:
    faults = lint_text(example, env=dict.fromkeys(variables(example), "x")).faults
    warnings = [str(fault) for fault in faults if fault.level is Level.WARNING and fault.line]
    # An example may show one key with several values.
    assert [warning for warning in warnings if "again, after line" not in warning] == []


def test_a_route_whose_exclude_leaves_out_all_that_it_includes_gets_nothing() -> None:
    wrong = route("r", "amount > 10 AND region = 'eu'", "routes.r.in.exclude=amount > 5 OR x = 1")
    assert told(*wrong) == [
        "6:21: warning: route 'r' never gets a message: this leaves out all that its in.include takes "
        "(correct one of the two conditions)"
    ]
    assert told(*route("r", "amount > 3", "routes.r.in.exclude=amount > 5")) == []
    assert told(*wrong, "routes.r.in.body=json") == []


def test_a_route_that_several_earlier_ones_cover_together_gets_nothing() -> None:
    lines = (*route("a", "x = 'a'"), *route("b", "x = 'b'"), *route("c", "x IN ('a', 'b') AND y = 1"))
    assert told(*lines) == [
        "8:21: warning: route 'c' never gets a message: 'a', 'b' take all that it could take before it "
        "(move it before 'a', since the first route that matches wins)"
    ]


def test_a_condition_whose_parts_exclude_each_other_is_warned_of_as_a_whole() -> None:
    assert told(*route("r", "x = 'a' AND (x = 'b' OR y = 1) AND NOT y = 1")) == [
        "4:21: warning: no message meets this condition (its parts exclude each other: correct one of them)"
    ]


@pytest.mark.parametrize(
    ("odd", "known"),
    [("regoin", "region"), ("regon", "region"), ("Region", "region"), ("regian", "region"), ("reggion", "region")],
)
def test_a_name_that_differs_little_from_one_of_other_routes_is_warned_of(odd: str, known: str) -> None:
    lines = (*route("a", f"{known} = 'a'"), *route("b", f"{known} = 'b'"), *route("c", f"x = 1 AND {odd} = 'c'"))
    assert told(*lines) == [
        f"8:31: warning: only this route asks for '{odd}', and 2 others for '{known}' (did you mean {known}?)"
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("regions", "region"),
        ("lineBTotal", "lineATotal"),
        ("payer", "payee"),
        ("sendDate", "endDate"),
        ("amount2", "amount1"),
        ("ratio", "region"),
        ("ab", "ac"),
        ("region_b", "region_a"),
    ],
)
def test_names_that_may_both_be_meant_are_left_alone(one: str, other: str) -> None:
    lines = (*route("a", f"{other} = 'a'"), *route("b", f"{other} = 'b'"), *route("c", f"{one} = 'c'"))
    assert told(*lines) == []


def test_a_name_that_a_route_uses_beside_the_near_one_is_meant() -> None:
    lines = (*route("a", "region = 'a'"), *route("b", "region = 'b'"), *route("c", "region = 'c' AND regoin = 'c'"))
    assert told(*lines) == []


def test_names_with_the_case_of_java_are_those_of_properties() -> None:
    assert told(*route("r", "msg.header.correlationId == 'x' AND messageId = 'y' AND CorelationId = 'z'")) == []


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("msg.header.CorelationId", "CorrelationId"),
        ("msg.header.CorrelationID", "CorrelationId"),
        ("msg.header.MesageId", "MessageId"),
    ],
)
def test_a_name_near_the_short_one_of_a_field_is_warned_of(name: str, field: str) -> None:
    assert told(*route("r", f"{name} == 'x'")) == [
        f"4:21: warning: '{name.rpartition('.')[2]}' is a property here (did you mean {field}, the field?)"
    ]
