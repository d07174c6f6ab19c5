"""Routes of a configuration as a topology; made without Spark jobs and without a server.

Order of the rules: messages that this bridge routed before, that are not durable (if so configured) or that have
expired are not routed. The first route in the order of the configuration whose predicates accept the message takes it,
and further ones if that route goes on; each of their destinations is a publication, with a copy of the message.
Then its key is chosen and the checks are made. A message that passes them is published; for one that fails, its route's
policy decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.message import ORIGIN
from engine.router.plan.builder import Plan, PlanBuilder, PlanStream
from engine.router.plan.failures import CHECKS, UNMATCHED, FailureStage
from engine.router.plan.language import MessageCondition, PublicationCondition, field_text
from engine.router.plan.route_settings import ROUTES, RouteSettings
from engine.router.plan.row import PlanFunction, PlanRow
from engine.router.plan.stages import Stages, stages_of
from engine.topologies.library.casts import BIGINT, BINARY, cast, try_cast
from routes.model import Config, NonDurable, Policy, Unmatched
from routes.predicate import parse

__all__ = ["CHANGED", "DEAD_LETTERS", "GUARDS", "PUBLISHED", "SKIPPED", "build", "topology"]

PUBLISHED = "destinations"
"""Name of the node that publishes routed messages."""
CHANGED = "changed-destinations"
"""Name of the node that publishes routed messages with changed bodies; the others are published without a copy."""
DEAD_LETTERS = "dead-letters"
"""Name of the node that publishes dead letters."""
SKIPPED = "skipped"
"""Name of the branch in which messages end by the policy `skip`."""
GUARDS = {"not-own-origin": "own-origin", "durable": "non-durable", "not-expired": "expired"}
"""Reason under which a dropped message is counted, by the name of the guard node that drops it."""

_ALWAYS = MessageCondition(parse("TRUE"))


def topology(config: Config, limits: Mapping[str, int] | None = None, now: Column | None = None) -> Plan:
    """The configuration's routes as a topology over the journal topic.

    Args:
        config: the whole configuration; the sources and the addresses of servers have no effect.
        limits: `max.message.bytes` by topic, dead-letter topic included; record sizes are not checked for other topics.
        now: milliseconds since 1970, for expiry and the time of dead letters; without it the time at which Spark plans
            the batch, or the interval in real-time mode.
    """
    return build(config, stages_of(RouteSettings.of(config, limits or {})), now)


def build(config: Config, stages: Stages, now: Column | None) -> Plan:
    """The topology of a configuration whose stages are known; otherwise as `topology`."""
    builder = PlanBuilder(origin=config.bridge_id)
    journal = builder.stream(config.journal.topic, name="journal")
    guarded = _guarded(journal, config.bridge_id, config.routing.non_durable, now)
    split = guarded.split(ROUTES, copies=config.has_copies)
    for publication in config.publications:
        route = publication.route
        alone = MessageCondition(route.taken, route.exclude)
        split.branch(PublicationCondition(publication) if config.has_copies else alone, name=publication.name)
    *wanted, unmatched = split.default_branch(UNMATCHED)
    dead = [unmatched] if config.routing.on_unmatched is Unmatched.DEAD_LETTER else []
    if wanted:
        dead += _after_policy(_published(wanted, stages), stages.failures)
    if dead:

        def change(row: PlanRow) -> PlanRow:
            return stages.failures.dead_letter(row, _milliseconds(now))

        merged = dead[0] if len(dead) == 1 else dead[0].merge(*dead[1:], name="dead")
        merged.map(change, name="dead-letter-headers", apart=True).to(config.letter_topic, name=DEAD_LETTERS)
    return builder.build()


def _guarded(journal: PlanStream, bridge_id: str, non_durable: NonDurable, now: Column | None) -> PlanStream:
    def not_own_origin(row: PlanRow) -> Column:
        origin = F.struct(F.lit(ORIGIN).alias("key"), cast(F.lit(bridge_id), BINARY).alias("value"))
        # Searching names alone is fast. Only the few messages that a bridge routed before have this header, so values
        # are rarely compared.
        return ~F.coalesce(row.has_header(ORIGIN) & F.array_contains(row.headers, origin), F.lit(False))

    def durable(row: PlanRow) -> Column:
        return F.coalesce(field_text(row.header_view, "JMSDeliveryMode") != "NON_PERSISTENT", F.lit(True))

    def not_expired(row: PlanRow) -> Column:
        expiration = try_cast(field_text(row.header_view, "JMSExpiration"), BIGINT)
        # The clock is read only for the few messages that can expire.
        return F.when(expiration > 0, expiration > _milliseconds(now)).otherwise(F.lit(True))

    stream = journal.filter(not_own_origin, name="not-own-origin")
    if non_durable is NonDurable.DROP:
        stream = stream.filter(durable, name="durable")
    return stream.filter(not_expired, name="not-expired")


def _published(wanted: Sequence[PlanStream], stages: Stages) -> list[PlanStream]:
    """Publishes messages that pass all checks; returns one stream for each check with the messages that fail it."""
    settings, bodies, destinations = stages.settings, stages.bodies, stages.destinations
    matched = wanted[0].merge(*wanted[1:], name="matched")
    keyed = matched.select_key(stages.keys.chosen, name="key")
    if settings.rewrites_bodies:
        # A node of its own: Spark then keeps the result, which checks, sizes and the sink read.
        keyed = keyed.map(bodies.leaving, name="leaving-bodies")
    split = keyed.split(CHECKS)
    for check in stages.failures.checks:
        split.branch(check.fails, name=check.reason)
    *failed, passed = split.default_branch("passed")
    if settings.edits.values:
        # A node of its own: Spark then keeps the result, which the style of the headers reads several times.
        passed = passed.map(destinations.edited, name="edited-headers")
    if settings.changes_bodies:
        ways = passed.split("change-or-not")
        ways.branch(bodies.is_changed, name="to-change")
        to_change, passed = ways.default_branch("not-to-change")
        changed = to_change.map(bodies.changed, name="changed-bodies")
        if settings.claims.values:
            # A node of its own: Spark then keeps the changed body, of which size and claim are taken.
            changed = changed.map(bodies.claimed, name="claimed-bodies")
        changed.map(destinations.headed, name="changed-headers").to(settings.topics, name=CHANGED)
    passed.map(destinations.headed, name="headers").to(settings.topics, name=PUBLISHED)
    return failed


def _after_policy(failed: Sequence[PlanStream], failures: FailureStage) -> list[PlanStream]:
    """Applies the policies of routes to failed messages; returns the streams that become dead letters."""
    branches = {Policy.STOP: "stopped", Policy.SKIP: SKIPPED, Policy.DEAD_LETTER: "dead-lettered"}
    used = failures.policies
    split = failed[0].merge(*failed[1:], name="failed").split("policy")
    for policy, name in branches.items():
        if policy in used:
            split.branch(_is(failures.policy, policy) if len(used) > 1 else _ALWAYS, name=name)
    streams = {stream.name: stream for stream in split.no_default_branch()}
    if "stopped" in streams:
        streams["stopped"].fail(failures.stop_message, name="stop")
    return [stream for name, stream in streams.items() if name == "dead-lettered"]


def _is(value: PlanFunction, expected: str) -> PlanFunction:
    return lambda row: value(row) == expected


def _milliseconds(now: Column | None) -> Column:
    return F.unix_millis(F.current_timestamp()) if now is None else now
