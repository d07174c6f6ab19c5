"""What a search is asked: which topics, what a record has to have, and what belongs to the same question."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.errors import UsageError
from engine.find.header_names import header_names
from engine.find.places import searched_topics, topic_kinds
from engine.find.question import FindQuestion, TopicKind
from engine.find.scanner import criteria
from engine.find.search import FindProgress
from routes.config import loads
from routes.errors import PredicateError

CONFIG = loads(
    "bridge.id=b\nkafka.bootstrap.servers=127.0.0.1:9\nembedded=off\n"
    "sink.out.type=nats\nsink.out.url=nats://127.0.0.1:1\n"
    "routes.a.in.include=x=1\nroutes.a.out.topic=orders, out:subject\n"
    "routes.b.in.include=x=2\nroutes.b.out.topic=prices\n"
)
KNOWN = topic_kinds(CONFIG, CONFIG.routes)


def test_all_topics_with_messages_are_searched_and_no_others() -> None:
    assert searched_topics(KNOWN, FindQuestion()) == {
        "jms-bridge.journal": TopicKind.JOURNAL,
        "orders": TopicKind.DESTINATION,
        "prices": TopicKind.DESTINATION,
        "jms-bridge.sink.out": TopicKind.SINK,
        "jms-bridge.journal.set-aside": TopicKind.DEAD_LETTERS,
        "jms-bridge.journal.set-aside.quarantine": TopicKind.DEAD_LETTERS,
    }


def test_kinds_and_names_narrow_the_search() -> None:
    asked = FindQuestion(kinds=frozenset({TopicKind.JOURNAL}), topics=frozenset({"prices"}))
    assert list(searched_topics(KNOWN, asked)) == ["jms-bridge.journal", "prices"]


def test_a_topic_of_nobody_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"the bridge has no topic 'nobody'; .*jms-bridge\.journal, orders"):
        searched_topics(KNOWN, FindQuestion(topics=frozenset({"nobody"})))


@pytest.mark.parametrize("given", ["42", "ID:42"])
def test_an_id_is_found_with_its_beginning_and_without(given: str) -> None:
    (test,) = criteria(FindQuestion(message_id=given))["headers"]
    assert test["values"] == ["42", "ID:42"]
    assert {"jms.JMSMessageID", "jms.MessageId", "jms.string.JMSMessageID"} <= set(test["names"])


def test_one_test_asks_for_an_id_in_either_field() -> None:
    (test,) = criteria(FindQuestion(either_id="ID:42"))["headers"]
    assert test["values"] == ["42", "ID:42"]
    assert {"jms.JMSMessageID", "jms.JMSCorrelationID"} <= set(test["names"])


def test_values_of_one_name_are_alternatives_and_names_are_not() -> None:
    tests = criteria(FindQuestion(headers=(("Type", "a"), ("region", "x"), ("Type", "b"))))["headers"]
    assert [test["values"] for test in tests] == [["a", "b"], ["x"]]
    assert "jms.JMSType" in tests[0]["names"]
    assert tests[1]["names"][:2] == ["region", "jms.region"]


def test_a_wrong_predicate_is_told_with_its_column() -> None:
    with pytest.raises(PredicateError) as refused:
        criteria(FindQuestion(where="amount >"))
    assert refused.value.fault.column > 0


@pytest.mark.parametrize("name", ["JMSType", "Type", "jms.JMSType", "jms.Type"])
def test_a_jms_field_has_one_name_in_each_style(name: str) -> None:
    assert {"jms.JMSType", "jms.Type", "jms.string.JMSType"} <= set(header_names(name))


def test_a_question_stays_the_same_when_it_wants_more_or_goes_on() -> None:
    asked = FindQuestion(message_id="1", kinds=frozenset(TopicKind))
    assert asked.digest == replace(asked, most=7, resume="token").digest
    assert asked.digest != replace(asked, message_id="2").digest
    assert asked.digest != replace(asked, kinds=frozenset({TopicKind.SINK})).digest


def test_the_summary_says_what_was_read() -> None:
    day = 1_795_824_000_000
    asked = FindQuestion(since=day, until=day + 7_200_000)
    progress = FindProgress(12_400_000, 12_400_000, 3, None, True, records=12_400_000)
    assert progress.summary(asked) == (
        "12,400,000 of 12,400,000 records from 2026-11-28T00:00:00.000Z to 2026-11-28T02:00:00.000Z; 3 found"
    )
    with_gaps = FindProgress(90, 100, 0, "token", False, records=80, removed=10)
    assert with_gaps.summary(FindQuestion()) == (
        "90 of 100 offsets, which have 80 records; retention removed 10 before they were read; 0 found"
    )
