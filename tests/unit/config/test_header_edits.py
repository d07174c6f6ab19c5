"""Keys that edit headers: what they read as, and what lint says of them."""

from __future__ import annotations

import pytest

from routes.config import lint_text, loads
from routes.errors import Level
from routes.header_edits import HeaderEdits
from routes.model import Config
from routes.targets import Reference, Template

START = """\
bridge.id=b
source.s.type=stomp
source.s.destinations=queue:q
routes.r.in.include=TRUE
routes.r.out.topic=t
"""
"""A configuration without a fault, five lines long."""
AS_IN = '(as in region, CorrelationId, x-tenant or "order no")'
EDITABLE = (
    "(of the JMS fields, JMSCorrelationID, JMSDeliveryMode, JMSPriority, JMSReplyTo, JMSType, JMSXGroupID and "
    "JMSXGroupSeq can be edited)"
)


def text(*edits: str) -> str:
    return START + "".join(f"routes.r.out.{edit}\n" for edit in edits)


def faults(*edits: str) -> list[str]:
    return [str(fault).splitlines()[0].replace(" error:", "") for fault in lint_text(text(*edits)).faults]


def edits(config: Config) -> HeaderEdits:
    return config.routes[0].edits


def test_a_route_edits_nothing_unless_it_says_so() -> None:
    assert not edits(loads(START))
    assert edits(loads(START)) == HeaderEdits()


def test_names_are_read_in_any_spelling() -> None:
    lines = (
        "header.CorrelationId=${msg.header.order}",
        'header.msg.header."x-tenant"=acme',
        "header.price.eur=${msg.body.a[0].b} ${msg.address}",
        "rename-header.Type=kind",
        "rename-header.x-id=msg.header.ReplyTo",
        "remove-headers=x-*, JMSXGroupID,Priority , größe",
    )
    assert edits(loads(text(*lines))) == HeaderEdits(
        given=(
            ("JMSCorrelationID", Template((Reference("order"),))),
            ("x-tenant", Template(("acme",))),
            ("price.eur", Template((Reference("msg.body.a[0].b"), " ", Reference("msg.address")))),
        ),
        renamed=(("JMSType", "kind"), ("x-id", "JMSReplyTo")),
        removed=("x-*", "JMSXGroupID", "JMSPriority", "größe"),
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "header.JMSMessageID=x",
            f"6:1: JMSMessageID belongs to the message as it came, and stays as it is {EDITABLE}",
        ),
        ("rename-header.a=JMSTyp", "6:30: there is no field JMSTyp (did you mean JMSType?)"),
        (
            "rename-header.a=jmsbridge.b",
            "6:30: 'jmsbridge.b' cannot be edited (names that begin with jmsbridge belong to the bridge)",
        ),
        (
            "remove-headers=a, JMS_JmsBridge_*",
            "6:32: 'JMS_JmsBridge_*' cannot be edited (names that begin with JMS_JmsBridge belong to the bridge)",
        ),
        (
            "remove-headers=a, JMSX*",
            "6:32: 'JMSX*' stands for properties, and none begins like this (name each JMS field)",
        ),
        ("remove-headers=a, b, a", "6:35: 'a' is listed twice (name each header once)"),
        ("remove-headers=a,", f"6:31: the name of the header is missing {AS_IN}"),
        ("header.msg.body.a=x", f"6:1: 'msg.body.a' is not the name of a header {AS_IN}"),
        ("header.a=x ${msg.header.b", "6:25: '${' without its '}' (as in orders.${msg.header.region})"),
        ("header.a=", "6:23: the value is empty (remove the line if nothing is to be set)"),
        ("header.JMSPriority=10", "6:33: '10' is not a value of JMSPriority: a number from 0 to 9"),
        ("header.ReplyTo=replies", "6:29: 'replies' is not a value of JMSReplyTo: queue:NAME or topic:NAME"),
        ("rename-header.Type=JMSType", "6:33: 'JMSType' is the name that the header has (remove the line)"),
    ],
)
def test_a_wrong_name_or_value_is_told_with_its_place(line: str, message: str) -> None:
    assert faults(line) == [message]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ("header.Type=a", "header.JMSType=b"),
            "7:1: 'routes.r.out.header.JMSType' is the header of 'routes.r.out.header.Type' on line 6 (remove one of "
            "them)",
        ),
        (
            ("rename-header.Type=a", 'rename-header."JMSType"=b'),
            "7:1: 'routes.r.out.rename-header.\"JMSType\"' is the header of 'routes.r.out.rename-header.Type' on "
            "line 6 (remove one of them)",
        ),
        (
            ("rename-header.a=x", "rename-header.b=x"),
            "7:30: 'x' is the new name of another header, on line 6 (give each header a name of its own)",
        ),
        (
            ("rename-header.a=b", "rename-header.b=c"),
            "6:30: 'b' is renamed itself, on line 7 (give the header a name that no other has before or after)",
        ),
    ],
)
def test_edits_that_contradict_each_other_are_refused(lines: tuple[str, ...], message: str) -> None:
    assert faults(*lines) == [message]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ("remove-headers=x-*, a", "header.a=1", "header.x-b=1"),
            "6:34: warning: 'a' is removed, and set on line 7 (remove one of the two: a set header replaces the one "
            "that the message has)",
        ),
        (
            ("remove-headers=x-*", "rename-header.x-a=b"),
            "7:1: warning: 'x-a' is removed before it could be renamed (remove one of the two)",
        ),
        (
            ("rename-header.a=b", "header.b=1"),
            "6:30: warning: line 7 sets 'b', so that the renamed header is lost (remove one of the two lines)",
        ),
        (
            ("header.a=${msg.header.JMSTyp}",),
            "6:36: warning: there is no field JMSTyp (did you mean JMSType?)",
        ),
    ],
)
def test_edits_without_an_effect_are_warned_of(lines: tuple[str, ...], message: str) -> None:
    linted = lint_text(text(*lines))
    assert [str(fault).splitlines()[0] for fault in linted.faults] == [message]
    assert [fault.level for fault in linted.faults] == [Level.WARNING]


def test_a_header_may_be_named_like_a_secret_and_its_variable_stays_for_the_router() -> None:
    config = loads(text("header.x-api-token=${env:TOKEN}"), env={"TOKEN": "t-1"})
    assert edits(config).given == (("x-api-token", Template(("t-1",))),)
    assert config.secret_variables == frozenset()


def test_edits_tell_by_how_much_they_enlarge_the_headers() -> None:
    small = edits(loads(text("header.a=b", "rename-header.c=d", "remove-headers=e")))
    assert 2 < small.growth < 100
    assert edits(loads(text("header.a=${msg.body.b}"))).growth > 8_192
