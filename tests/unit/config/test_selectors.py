"""What is not a JMS selector is an error with its place; what only a broker can tell is a warning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routes.config import lint_text

START = """\
bridge.id=b
source.s.type=amqp
source.s.destinations=queue:q
routes.r.in.include=msg.address==q
routes.r.out.topic=t
"""


def told(selector: str) -> list[str]:
    faults = lint_text(f"{START}source.s.selector={selector}\n", env={"PW": "a = hunter2 AND"}).faults
    return [str(fault).splitlines()[0] for fault in faults]


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("a = b AND", "6:28: error: found the end, expected a field or property, a number"),
        ("a = 'x' AND (b = 1", "6:31: error: this ( is never closed"),
        ("a = 'it", "6:23: error: the text that starts here has no closing quote"),
        ("a IN (1, 2)", "6:25: error: IN takes texts, not numbers, in a selector"),
        ("a.b = 1", "6:19: error: a.b is not a name without quotes (as in region = 'emea' AND amount > 5)"),
        ("msg.header.region==emea", "6:19: error: … msg.header.region (write region)"),
        ("x = 1 AND msg.header.Type = 'a'", "6:29: error: … msg.header.Type (write JMSType)"),
        ("msg.address = 'q'", "6:19: error: … msg.address (source.NAME.destinations"),
        ("a = 1 AND msg.body.b = 'q'", "6:29: error: … msg.body (a route's in.include can ask for"),
        ("msg.text LIKE 'q%'", "6:19: error: … msg.text (a route's in.include can ask for"),
        ("region == 'x'", "6:26: error: … == (write =, with a text in single"),
        ("region != 'x'", "6:26: error: … != (write <>)"),
        ("a = 1 || b = 1", "6:25: error: … || (write OR)"),
        ("!a", "6:19: error: … ! (write NOT)"),
    ],
)
def test_what_no_broker_reads_is_an_error_at_its_place(selector: str, message: str) -> None:
    (found,) = told(selector)
    assert found.startswith(message.replace("…", "the broker reads this, and JMS has no"))


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ('a = "x"', "6:23: warning: the broker may refuse this selector: text goes in single quotes"),
        ("a > 'x'", "6:23: warning: the broker may refuse this selector: > compares numbers"),
        ("hyphenated_props:a-b.c = 1", "6:19: warning: the broker may refuse this selector: "),
        ("XPATH '//a'", "6:25: warning: the broker may refuse this selector: found \"'//a'\""),
        ("a = 1 /* one */", "6:26: warning: the broker may refuse this selector: "),
        ("a % 2 = 0", "6:21: warning: the broker may refuse this selector: "),
        ("a = 99999999999999999999", "6:23: warning: the broker may refuse this selector: the number"),
    ],
)
def test_what_a_broker_may_read_is_a_warning(selector: str, message: str) -> None:
    (found,) = told(selector)
    assert found.startswith(message)


@pytest.mark.parametrize(
    "selector",
    [
        "region = 'emea' AND amount > 5",
        "JMSPriority BETWEEN 1 AND 4 OR JMSType IN ('a', 'b')",
        "a = 'msg.header.x == 1 && !b'",
        "AMQUserID = 'x' AND _AMQ_ORIG_ADDRESS LIKE 'a%'",
        '"a-b" = 1 OR NOT c',
        "amqp.priority = 4 AND amqp.subject = 'x'",
        "region IS NULL OR region <> 'test'",
    ],
)
def test_a_selector_of_jms_is_not_complained_about(selector: str) -> None:
    assert told(selector) == []


def test_a_secret_in_a_selector_is_not_quoted() -> None:
    (found,) = told("${env:PW}")
    assert found.startswith("6:19: error: the value of 'source.s.selector' is not a JMS selector")


@given(st.text(alphabet="ab1 ='\"()<>!&|.-%ANDORmsg", max_size=30))
def test_any_text_is_a_selector_or_a_fault_within_it(text: str) -> None:
    lines = "source.s.selector="
    for fault in lint_text(f"{START}{lines}{text}\n").faults:
        assert fault.line == 6
        assert fault.column >= len(lines)
