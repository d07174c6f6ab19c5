"""Routing of a frame of messages: the router's topology, applied to any frame with a Kafka source's columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from engine.router.plan.compile import Compiled, compile_topology
from engine.router.plan.failures import CHECKS, UNMATCHED
from engine.router.plan.language import field_text, read_within
from engine.router.plan.refusals import NO_REFUSALS, Refusals
from engine.router.plan.route_settings import ROUTES, RouteSettings
from engine.router.plan.schemas import use_schemas
from engine.router.plan.stages import stages_of
from engine.router.plan.topology import CHANGED, DEAD_LETTERS, GUARDS, PUBLISHED, SKIPPED, build
from routes.model import Config, Policy

__all__ = ["Routed", "RoutingOutcome", "route"]


@dataclass(frozen=True, slots=True)
class RoutingOutcome:
    """Outcome of a message's routing."""

    kind: str
    """`routed`, `unrouted` (counted only), or the policy that was applied: `skip`, `dead-letter`."""
    reason: str = ""
    """Reason for which the message was not routed; empty if it was."""

    def __str__(self) -> str:
        return f"{self.kind}.{self.reason}" if self.reason else self.kind


@dataclass(frozen=True, slots=True, eq=False)
class Routed:
    """Result of `route`: a frame of messages, each with its topic and outcome."""

    frame: DataFrame
    """Columns: `key`, `value`, `headers`, `topic` (NULL: not published), `outcome` (index into `outcomes`),
    `publication` (index into the configuration's publications, or NULL), `journal_partition`, `journal_offset`,
    `journal_timestamp`, `copy` (number of the copy of the message, from 0),
    `failed_message` (JMSMessageID of a message that failed softly, JMSDestination of one that no route took); and
    `kept`, `new_value`, `new_headers` and `trail`, which tell what is published as it was read
    (`engine.router.plan.compile.Compiled`)."""
    outcomes: tuple[RoutingOutcome, ...]
    limit: int | None = None
    """Smallest of the limits that `route` was given, in bytes; None without any."""


def route(
    frame: DataFrame,
    config: Config,
    limits: Mapping[str, int] | None = None,
    now: Column | None = None,
    refusals: Refusals = NO_REFUSALS,
    left_out: Callable[[DataFrame], DataFrame] | None = None,
) -> Routed:
    """Routes every message of a frame; needs a Spark session, which may be local, and no broker.

    Args:
        frame: frame, streaming or not, with the columns of Spark's Kafka source and headers
            (`engine.router.plan.records.RECORD_SCHEMA`). Every record counts as one of the journal, whatever its
            topic.
        config: configuration with the routes and their policies.
        limits: `max.message.bytes` by topic; record sizes are not checked for topics that are left out.
        now: milliseconds since 1970; see `engine.router.plan.topology.topology`.
        refusals: what Kafka does not take.
        left_out: removes copies of messages, see `compile_topology`; for configurations with copies.

    Raises HardFailureError or RegistryUnavailableError if a schema that a source or route names cannot be found.

    A failure whose policy is `stop` ends the query that reads the result, with an error that names the message.
    """
    use_schemas(config, frame.sparkSession)
    read_within(config.routing.bounds, frame.sparkSession)
    stages = stages_of(RouteSettings.of(config, limits or {}), refusals)
    reasons = tuple(check.reason for check in stages.failures.checks)
    compiled = compile_topology(build(config, stages, now), frame, left_out)
    outcomes = (
        RoutingOutcome("routed"),
        *(RoutingOutcome("unrouted", reason) for reason in (*GUARDS.values(), UNMATCHED)),
        *(RoutingOutcome(policy, reason) for policy in (Policy.SKIP, Policy.DEAD_LETTER) for reason in reasons),
        RoutingOutcome(Policy.DEAD_LETTER, UNMATCHED),
    )
    unmatched = outcomes.index(RoutingOutcome("unrouted", UNMATCHED))
    wanted = compiled.branch(ROUTES)
    failed = compiled.ended_at(SKIPPED) | compiled.ended_at(DEAD_LETTERS)
    result = compiled.frame.select(
        "key",
        "value",
        "headers",
        "topic",
        "kept",
        "new_value",
        "new_headers",
        "trail",
        _outcome(compiled, outcomes).alias("outcome"),
        F.when(wanted < len(config.publications), wanted).alias("publication"),
        F.col("source_partition").alias("journal_partition"),
        F.col("source_offset").alias("journal_offset"),
        F.col("source_timestamp").alias("journal_timestamp"),
        "copy",
        F.when(failed, field_text(compiled.source_header_view, "JMSMessageID"))
        .when(_outcome(compiled, outcomes) == unmatched, field_text(compiled.source_header_view, "JMSDestination"))
        .alias("failed_message"),
    )
    return Routed(result, outcomes, min((limits or {}).values(), default=None))


def _outcome(compiled: Compiled, outcomes: tuple[RoutingOutcome, ...]) -> Column:
    """Index of the outcome, from the node where a message ended and the check that it failed."""
    index = {str(outcome): number for number, outcome in enumerate(outcomes)}
    failed = compiled.branch(CHECKS)
    # Branches of CHECKS have the order of `reasons`, and so have the outcomes of each policy: index of the check plus
    # index of the policy's first outcome. A dead letter that failed no check was taken by no route.
    skipped, dead = (
        next(i for i, outcome in enumerate(outcomes) if outcome.kind == kind)
        for kind in (Policy.SKIP, Policy.DEAD_LETTER)
    )
    outcome = F.when(compiled.ended_at(PUBLISHED) | compiled.ended_at(CHANGED), 0)
    for node, reason in GUARDS.items():
        outcome = outcome.when(compiled.dropped_by(node), index[f"unrouted.{reason}"])
    unmatched = F.lit(index[f"{Policy.DEAD_LETTER}.{UNMATCHED}"])
    return (
        outcome.when(compiled.ended_at(SKIPPED), failed + skipped)
        .when(compiled.ended_at(DEAD_LETTERS), F.coalesce(failed + dead, unmatched))
        .otherwise(index[f"unrouted.{UNMATCHED}"])
    )
