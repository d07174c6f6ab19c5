"""What an operator is told about a refusal of Kafka, and which errors are none."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from engine.errors import HardFailureError
from engine.kafka.errors import MISSING, PASSING, is_fatal, is_of_unused_group, refusal, remedy

ENGINE = Path(__file__).parents[3] / "engine"


@pytest.mark.parametrize(
    ("code", "rights", "said"),
    [
        (
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            "READ and WRITE",
            "refuses topic 't': not authorised to read and write the topic; grant READ and WRITE on it "
            "(TOPIC_AUTHORIZATION_FAILED)",
        ),
        (
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            "WRITE",
            "refuses topic 't': not authorised to write to the topic; grant WRITE on it (TOPIC_AUTHORIZATION_FAILED)",
        ),
        (
            KafkaError.GROUP_AUTHORIZATION_FAILED,
            "READ",
            "refuses topic 't': not authorised to read in the group; grant READ on it (GROUP_AUTHORIZATION_FAILED)",
        ),
        (
            KafkaError.UNKNOWN_TOPIC_OR_PART,
            "READ",
            "refuses topic 't': there is no such topic; create it, or start the whole bridge, which does "
            "(UNKNOWN_TOPIC_OR_PART)",
        ),
        (
            KafkaError._AUTHENTICATION,
            "READ",
            "refuses the login: no such user; check kafka.sasl.* and kafka.security.protocol",
        ),
    ],
)
def test_a_refusal_names_the_thing_the_reason_and_the_remedy(code: int, rights: str, said: str) -> None:
    found = refusal(KafkaError(code, "no such user"), "k:9092", "topic 't'", rights)
    assert isinstance(found, HardFailureError)
    assert str(found) == f"Kafka at k:9092 {said}"


@pytest.mark.parametrize("code", sorted(PASSING))
def test_what_may_pass_is_no_refusal(code: int) -> None:
    error = KafkaError(code)
    assert remedy(error) is None
    assert refusal(error, "k:9092", "topic 't'") is None
    assert not is_fatal(error)


def test_a_missing_topic_does_not_pass_by_itself() -> None:
    assert not MISSING & PASSING


def test_codes_of_errors_are_in_one_package() -> None:
    named = [
        path.relative_to(ENGINE).as_posix()
        for path in ENGINE.rglob("*.py")
        if path.parent.name != "kafka" or path.parent.parent.name != "engine"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "KafkaError"
    ]
    assert not named


def test_only_a_refused_group_is_passed_over_by_a_consumer_that_does_not_use_it() -> None:
    assert is_of_unused_group(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
    assert not is_of_unused_group(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert not is_of_unused_group(None)
