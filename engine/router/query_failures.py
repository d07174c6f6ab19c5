"""Failures of the router's query and of the records that it publishes, as errors for users."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.router.plan.failures import stopped_by_policy
from engine.spark.failures import causes_of, error_causes, failure_of, refusal_reason, spark_failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.streaming.query import StreamingQuery

    from engine.router.row_counters import RefusedMessage, SendFailure
    from engine.spark.failures import Cause

__all__ = ["MessagesRefusedError", "error_failure", "query_failure", "router_failure", "send_failure"]


class MessagesRefusedError(Exception):
    """Kafka has refused records of the router for their own sakes: the next query makes dead letters of them.

    `messages` holds the reasons by journal partition and offset.
    """

    def __init__(self, refused: Sequence[RefusedMessage]) -> None:
        self.messages = {(each.partition, each.offset, each.copy): _refusal(each.failure) for each in refused}
        super().__init__(next(iter(self.messages.values())))


def _refusal(failure: SendFailure) -> str:
    return f"topic '{failure.topic}' does not take the record: {refusal_reason(failure.kind)}: {failure.detail}"


def query_failure(query: StreamingQuery) -> Exception | None:
    """The error that ended the router's query; None if the query runs or was stopped."""
    causes = causes_of(query)
    return router_failure(causes) if causes else None


def error_failure(error: Exception) -> Exception:
    """The error for users that an exception of PySpark stands for."""
    causes = error_causes(error)
    return router_failure(causes) if causes else spark_failure(error)


def router_failure(causes: Sequence[Cause]) -> Exception:
    """The error that a chain of Java exceptions, outermost first, stands for.

    StoppedByPolicyError for the policy `stop`, else as `engine.spark.failures.failure_of`.
    """
    stopped = (stopped_by_policy(message) for _, message in causes)
    return next(filter(None, stopped), None) or failure_of(causes)


def send_failure(failure: SendFailure) -> Exception:
    """The error that stands for a record which Kafka did not take."""
    return failure_of([(failure.kind, failure.detail)], failure.topic)
