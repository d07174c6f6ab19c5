"""Tests what Java's exceptions become: errors that end the bridge, and those that another attempt may cure."""

from __future__ import annotations

import pytest

from engine.errors import HardFailureError, ServerEndedError
from engine.kafka.errors import KafkaUnavailableError, UnusableTopicError
from engine.kafka.retry import Outage
from engine.router.plan.failures import StoppedByPolicyError
from engine.router.query_failures import router_failure
from engine.spark.failures import RecordRefusedError, failure_of
from engine.spark.hadoop_path import StorageUnavailableError
from routes.config import loads
from routes.errors import BridgeError

KAFKA = "org.apache.kafka.common.errors."


def test_a_message_that_stops_the_router_is_told_with_destination_reason_and_position() -> None:
    text = '[USER_RAISED_EXCEPTION] jms-bridge:stop:{"route":"a","destination":"kafka:ta","reason":"key-not-found","position":"j:0:7","detail":"no \\"k\\""} SQLSTATE: P0001'  # noqa: E501
    error = router_failure([("org.apache.spark.SparkException", "Job aborted"), ("x.SparkRuntimeException", text)])
    assert isinstance(error, StoppedByPolicyError)
    assert (error.route, error.destination, error.reason) == ("a", "kafka:ta", "key-not-found")
    assert error.position == "j:0:7"
    assert str(error).startswith("route 'a' cannot take the message at j:0:7: no \"k\" (key-not-found). ")
    assert error.exit_code == 5


def test_a_lost_executor_is_no_message_that_stops_the_router() -> None:
    plan = "+- Project [concat(jms-bridge:stop:, get(texts, index), position)]"
    lost = "Job aborted due to stage failure: ... ExecutorLostFailure (executor 1 exited)"
    error = router_failure([("StreamingQueryException", f"=== Streaming Query ===\n{plan}"), ("SparkException", lost)])
    assert isinstance(error, ServerEndedError)


@pytest.mark.parametrize("kind", ["ProducerFencedException", "InvalidProducerEpochException"])
def test_a_task_that_kafka_refuses_in_favour_of_its_successor_is_started_again(kind: str) -> None:
    error = failure_of([("org.apache.spark.SparkException", "Job aborted"), (KAFKA + kind, "a newer producer")])
    assert isinstance(error, ServerEndedError)
    assert str(error) == "another task publishes in place of one that was taken for lost"


def test_the_constant_of_that_message_in_a_plan_is_no_message() -> None:
    plan = "Project [raise_error(concat(jms-bridge:stop:, get(from_json(…))))]"
    error = router_failure([("org.apache.spark.sql.streaming.StreamingQueryException", plan), ("a.B", "inner")])
    assert str(error) == "Spark's query ended: B: inner"


def test_a_file_system_that_is_away_may_come_back() -> None:
    for cause in [
        ("java.io.EOFException", "no answer; see wiki.apache.org/hadoop/EOFException\n\tat x"),
        ("org.apache.hadoop.ipc.StandbyException", "no answer; see the active one"),
    ]:
        error = failure_of([("org.apache.spark.SparkException", "Job aborted"), cause, ("java.io.IOException", "")])
        assert isinstance(error, StorageUnavailableError)
        assert str(error).startswith("the file system of the checkpoint fails: no answer; see")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("InvalidTopicException", HardFailureError),
        ("TopicAuthorizationException", HardFailureError),
        ("SaslAuthenticationException", HardFailureError),
        ("RecordTooLargeException", HardFailureError),
        ("TimeoutException", KafkaUnavailableError),
        ("DisconnectException", KafkaUnavailableError),
        ("UnknownLeaderEpochException", KafkaUnavailableError),
        ("UnknownTopicOrPartitionException", UnusableTopicError),
        ("SomethingNew", RuntimeError),
    ],
)
def test_kafkas_errors_are_final_or_pass(kind: str, expected: type[Exception]) -> None:
    causes = [("org.apache.spark.SparkException", "Job aborted"), (KAFKA + kind, "because")]
    error = failure_of(causes, "orders")
    assert type(error) is expected
    assert "because" in str(error)


def test_a_record_that_kafka_refuses_is_no_matter_of_other_records() -> None:
    refusal = '{"topic": "orders", "kind": "PolicyViolationException", "error": "no key"}'
    causes = [("org.apache.spark.SparkException", "Job aborted"), ("jmsbridge.kafka.RefusedRecordException", refusal)]
    error = failure_of([*causes, (KAFKA + "PolicyViolationException", "no key")])
    assert isinstance(error, RecordRefusedError)
    assert (error.refusal, str(error)) == (refusal, "topic 'orders' does not take a record: no key")
    # A message of a record that looks like one has another class.
    assert not isinstance(failure_of([("java.lang.IllegalStateException", refusal)]), RecordRefusedError)


def test_a_topic_that_a_topology_lacks_is_named() -> None:
    cause = "jmsbridge.kafka.UnusableTopicException", "topic 'orders' does not exist"
    error = failure_of([("org.apache.spark.SparkException", "Job aborted"), cause])
    assert type(error) is UnusableTopicError
    assert str(error) == "topic 'orders' does not exist"


def test_a_journal_that_lost_records_is_a_matter_for_recovery() -> None:
    assert isinstance(failure_of([("x.Y", "[KAFKA_DATA_LOSS.COULD_NOT_READ] …")]), KafkaUnavailableError)
    removed = "org.apache.kafka.clients.consumer.OffsetOutOfRangeException"
    assert isinstance(failure_of([("x.Y", "Job aborted"), (removed, "out of range")]), KafkaUnavailableError)


def test_an_unforeseen_error_is_one_line_without_its_stack() -> None:
    error = failure_of([("a.B", "outer"), ("java.lang.IllegalStateException", "inner\n\tat somewhere")])
    assert str(error) == "Spark's query ended: IllegalStateException: inner"
    assert not isinstance(error, BridgeError)


def test_an_outage_ends_the_router_only_after_its_timeout() -> None:
    config = loads("bridge.id=b\nrouter.outage-timeout=60s\nroutes.a.in.include=a='b'\nroutes.a.out.topic=t\n")
    now = 0.0
    outage = Outage(config.kafka_access, lambda: now)
    assert [outage.goes_on(KafkaUnavailableError("away")) for _ in range(5)] == [1.0, 2.0, 5.0, 10.0, 10.0]
    outage.over()
    now = 50.0
    assert outage.goes_on(KafkaUnavailableError("away")) == 1.0
    now = 61.0
    with pytest.raises(BridgeError, match=r"for 60 seconds .*: away. Start the bridge again") as raised:
        outage.goes_on(KafkaUnavailableError("away"))
    assert raised.value.exit_code == 6
