"""What is doubted can never be true, and what makes sense is not doubted."""

from __future__ import annotations

import pytest

from routes.errors import PredicateError
from routes.predicate import evaluate, parse
from routes.predicate.doubts import doubts, unknown_field
from routes.predicate.nodes import walk
from routes.properties import HEADER_FIELDS, JmsType, Property

VALUES = {
    JmsType.STRING: ("PERSISTENT", "4", "4711", "true", "queue:q", "a", ""),
    JmsType.INT: ("0", "1", "2", "4"),
    JmsType.LONG: ("0", "1", "4711"),
    JmsType.BOOLEAN: ("true", "false"),
}
"""What fields hold, by their types."""

NEVER = [
    ("JMSDeliveryMode = 2", "JMSDeliveryMode is text, never the number 2", "write 'PERSISTENT'"),
    ("JMSDeliveryMode==1", "JMSDeliveryMode is text, never the number 1", "write 'NON_PERSISTENT'"),
    ("JMSDeliveryMode = 'persistent'", "'persistent' is not a delivery mode", "did you mean 'PERSISTENT'?"),
    ("JMSDeliveryMode IN ('x')", "'x' is not a delivery mode", "it is 'PERSISTENT' or 'NON_PERSISTENT'"),
    ("JMSPriority='4'", "JMSPriority is a number, never the text '4'", "write 4 without quotes"),
    ("'high' = JMSPriority", "JMSPriority is a number, never the text 'high'", "compare it with a number"),
    ("JMSPriority <> '4'", "JMSPriority is a number, never the text '4'", "write 4 without quotes"),
    ("msg.header.Priority==TRUE", "msg.header.Priority is a number, never TRUE", "compare it with a number"),
    ("JMSRedelivered = 'true'", "JMSRedelivered is TRUE or FALSE, never the text 'true'", "write TRUE or FALSE"),
    ("JMSRedelivered = 1", "JMSRedelivered is TRUE or FALSE, never the number 1", "compare it with TRUE or FALSE"),
    (
        "msg.header.CorrelationId==4711",
        "msg.header.CorrelationId is text, never the number 4711",
        "write '4711'",
    ),
    ("msg.address==4711", "msg.address is text, never the number 4711", "write '4711'"),
    ("JMSPriority IN ('4')", "JMSPriority is a number, and IN asks for texts", "write the numbers without quotes"),
    ("JMSRedelivered IN ('true')", "JMSRedelivered is TRUE or FALSE, and IN asks for texts", "compare with ="),
    ("msg.address IN (5)", "msg.address is text, never the number 5", "compare with ="),
    ("JMSTimestamp LIKE '4%'", "JMSTimestamp is a number, and LIKE asks for texts", "compare with ="),
    ("JMSType BETWEEN 1 AND 4", "JMSType is text, and BETWEEN asks for numbers", "compare with ="),
    ("JMSType > 3", "JMSType is text, and > compares numbers", "compare with = or <>"),
    ("JMSPriority", "JMSPriority is a number, and never TRUE", "compare it"),
    ("msg.address==queue:q", "'queue:q' is not an address: msg.address is the name alone", "write 'q'"),
    ("msg.address = 'topic:q'", "'topic:q' is not an address: msg.address is the name alone", "write 'q'"),
    ("msg.address LIKE 'queue:q%'", "'queue:q%' is not an address: msg.address is the name alone", "write 'q%'"),
    ("msg.address IN ('queue:q')", "'queue:q' is not an address: msg.address is the name alone", "write 'q'"),
]


@pytest.mark.parametrize(("text", "message", "hint"), NEVER)
def test_what_is_doubted_is_true_for_no_message(text: str, message: str, hint: str) -> None:
    predicate = parse(text)
    (doubt,) = doubts(predicate)
    assert (doubt.message, doubt.hint) == (message, hint)
    names = [node.name for node in walk(predicate.root) if hasattr(node, "name")]
    field = names[0] if names[0] in HEADER_FIELDS else "JMSDestination"
    for value in VALUES[HEADER_FIELDS[field]]:
        if field == "JMSDeliveryMode" and value != "PERSISTENT":
            continue
        found = Property(value, HEADER_FIELDS[field])
        assert evaluate(predicate, {field: found}.get) is not True


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "region = emea",
            "this compares two properties, region and emea",
            "for a text write region = 'emea', for a property region = msg.header.emea",
        ),
        (
            "amount > 5 AND NOT JMSType <> order",
            "this compares two properties, JMSType and order",
            "for a text write JMSType <> 'order', for a property JMSType <> msg.header.order",
        ),
        (
            '"body.price" > 100',
            "'body.price' is a property here",
            "write msg.body.price for the field of the body",
        ),
    ],
)
def test_what_is_legal_and_most_likely_meant_otherwise_is_doubted(text: str, message: str, hint: str) -> None:
    (doubt,) = doubts(parse(text))
    assert (doubt.message, doubt.hint) == (message, hint)


@pytest.mark.parametrize("text", ["body.price > 100", "a = 1 AND msg.body. = 5", "payload.id IS NULL"])
def test_a_path_into_the_body_is_told_how_it_is_written(text: str) -> None:
    with pytest.raises(PredicateError) as caught:
        parse(text)
    assert "is not a path into the body" in str(caught.value)
    assert "write msg.body.name" in caught.value.fault.hint


@pytest.mark.parametrize(
    "text",
    [
        "JMSPriority = 4 AND JMSRedelivered AND NOT JMSRedelivered = FALSE",
        "JMSDeliveryMode = 'NON_PERSISTENT' OR JMSDeliveryMode IN ('PERSISTENT', 'NON_PERSISTENT')",
        "JMSPriority > 3.5 AND JMSTimestamp BETWEEN 1 AND 2 AND JMSXGroupSeq + 1 = 2",
        "msg.address==queue.q OR msg.address LIKE 'queue%' OR JMSDestination = 'queue:q'",
        "msg.header.CorrelationId=='4711' AND JMSType LIKE '4%' OR JMSCorrelationID IS NULL",
        "amount = '4' AND amount = 4 OR amount AND msg.header.CorelationId==x AND region > 5",
        "JMSXFoo = 1 AND JMS_IBM_Format = 'x' AND jmsPriorty = 1 AND JMSXGroupId = 'x'",
        "JMSType = msg.header.region AND JMSPriority = amount AND region = JMSType AND region==emea",
        "TRUE",
    ],
)
def test_what_makes_sense_is_not_doubted(text: str) -> None:
    assert list(doubts(parse(text))) == []


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("JMSPriorty", "did you mean JMSPriority?"),
        ("JMSCorrelationId", "did you mean JMSCorrelationID?"),
        ("JMSMessageId", "did you mean JMSMessageID?"),
        ("JMSFrobnication", "JMS keeps names like this one for its own fields"),
    ],
)
def test_a_field_that_is_none_is_told_with_the_one_that_was_meant(name: str, hint: str) -> None:
    assert unknown_field(name) == (f"there is no field {name}", hint)
    (doubt,) = doubts(parse(f'x = 1 AND "{name}" IS NULL'))
    assert (doubt.message, doubt.hint, doubt.node.position) == (f"there is no field {name}", hint, 10)


@pytest.mark.parametrize("name", [*HEADER_FIELDS, "JMSXFoo", "JMS_AMQP_Subject", "region", "jms"])
def test_a_field_or_property_that_may_be_there_is_known(name: str) -> None:
    assert unknown_field(name) is None
