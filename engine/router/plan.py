"""The routes of a configuration as a topology. Nothing runs here and no server is asked.

Order of the rules: a message that this bridge routed before, one that is not durable (if so configured) and one that
expired are not routed; then the first route in the order of the configuration that wants the message has it; its key
is chosen; the checks are made; it is published, or its route's policy decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.message import DESTINATION, ORIGIN, ROUTE
from engine.router.addresses import address, to_sink, topics
from engine.router.failures import CHECKS, JOURNAL_KEY, UNMATCHED, Check, checks, dead_letter, key_name, stop_message
from engine.router.headers import appended, header, styled
from engine.router.routes import ROUTES, by_route
from engine.topology.dsl import Stream, Topology, TopologyBuilder
from engine.topology.nodes import ByBranch
from engine.topology.row import Row
from routes.model import Config, NonDurable, Policy, Unmatched
from routes.predicate import parse

__all__ = ["DEAD_LETTERS", "GUARDS", "PUBLISHED", "SKIPPED", "topology"]

PUBLISHED = "destinations"
DEAD_LETTERS = "dead-letters"
SKIPPED = "skipped"
GUARDS = {"not-own-origin": "own-origin", "durable": "non-durable", "not-expired": "expired"}
"""Guard nodes, and the reason that a message is counted under which they drop."""


def topology(config: Config, limits: Mapping[str, int] | None = None, now: Column | None = None) -> Topology:
    """The configuration's routes as a topology over the journal topic.

    Args:
        config: the whole configuration; sources and addresses do not matter here.
        limits: `max.message.bytes` by topic, dead-letter topic included; a topic that is not named is not checked.
        now: milliseconds since 1970, for expiry and the time of dead letters; without it the time at which Spark plans
            the batch, or the interval in real-time mode.
    """
    limits = limits or {}
    made = checks(config, limits)
    builder = TopologyBuilder()
    journal = builder.stream(config.journal.topic, name="journal")
    split = _guarded(journal, config, now).split(ROUTES)
    for route in config.routes:
        split.branch(route.include, name=route.name, unless=route.exclude)
    *wanted, unmatched = split.default_branch(UNMATCHED)
    dead = [unmatched] if config.routing.on_unmatched is Unmatched.DEAD_LETTER else []
    if wanted:
        failed = _published(wanted, config, made)
        dead += _after_policy(failed, config, made)
    if dead:
        _dead_letters(dead, config, made, now, limits)
    return builder.build()


def _guarded(journal: Stream, config: Config, now: Column | None) -> Stream:
    def not_own_origin(row: Row) -> Column:
        own = F.struct(F.lit(ORIGIN).alias("key"), F.lit(config.bridge_id).cast("binary").alias("value"))
        # Names alone are quickly looked through; only the few messages that were routed before have this one.
        return ~F.coalesce(row.has_header(ORIGIN) & F.array_contains(row.headers, own), F.lit(False))

    def durable(row: Row) -> Column:
        return F.coalesce(row.property("JMSDeliveryMode") != "NON_PERSISTENT", F.lit(True))

    def not_expired(row: Row) -> Column:
        expiration = row.property("JMSExpiration").try_cast("bigint")
        # The clock is read only for the few messages that can expire.
        return F.when(expiration > 0, expiration > _milliseconds(now)).otherwise(F.lit(True))

    stream = journal.filter(not_own_origin, name="not-own-origin")
    if config.routing.non_durable is NonDurable.DROP:
        stream = stream.filter(durable, name="durable")
    return stream.filter(not_expired, name="not-expired")


def _published(wanted: Sequence[Stream], config: Config, made: Sequence[Check]) -> list[Stream]:
    """Publishes what passes all checks; gives the streams of what failed one."""
    names = by_route(config, key_name)

    def key(row: Row) -> Column:
        *others, last = dict.fromkeys(names.values.values())
        chosen = _key(row, last)
        for name in others:
            chosen = F.when(row.pick(names) == name, _key(row, name)).otherwise(chosen)
        return F.nullif(chosen, F.lit(""))

    matched = wanted[0].merge(*wanted[1:], name="matched")
    split = matched.select_key(key, name="key").split(CHECKS)
    for check in made:
        split.branch(check.fails, name=check.reason)
    *failed, passed = split.default_branch("passed")
    published = passed.map(lambda row: row.replace(headers=_headers(row, config)), name="headers")
    published.to(topics(config), name=PUBLISHED)
    return failed


def _key(row: Row, name: str) -> Column:
    return row.source_key.cast("string") if name == JOURNAL_KEY else row.property(name)


def _headers(row: Row, config: Config) -> Column:
    """Those of the journal in the wanted style, and this bridge's own. A sink wants them as the journal has them."""
    style = styled(row.headers, config.routing.headers)
    if all(route.target.sink is None for route in config.routes):
        return appended(style, row, config.bridge_id)
    given = to_sink(row, config)
    route = row.pick(by_route(config, lambda route: route.name))
    more = F.array(header(DESTINATION, address(row, config)), header(ROUTE, route))
    if style is not row.headers:
        style = F.when(given, row.headers).otherwise(style)
    own = appended(style, row, config.bridge_id)
    return F.when(given, F.concat(own, more)).otherwise(own)


def _after_policy(failed: Sequence[Stream], config: Config, made: tuple[Check, ...]) -> list[Stream]:
    """Skips, stops, and gives the streams that become dead letters."""
    policies = by_route(config, lambda route: route.on_soft_failure)
    used = set(policies.values.values())
    branches = {Policy.STOP: "stopped", Policy.SKIP: SKIPPED, Policy.DEAD_LETTER: "dead-lettered"}
    split = failed[0].merge(*failed[1:], name="failed").split("policy")
    for policy, name in branches.items():
        if policy in used:
            split.branch(_same(policies, policy) if len(used) > 1 else parse("TRUE"), name=name)
    streams = {stream.name: stream for stream in split.no_default_branch()}
    if "stopped" in streams:
        streams["stopped"].fail(lambda row: stop_message(row, config, made), name="stop")
    return [stream for name, stream in streams.items() if name == "dead-lettered"]


def _same(values: ByBranch, value: str) -> Callable[[Row], Column]:
    return lambda row: row.pick(values) == value


def _dead_letters(
    dead: Sequence[Stream], config: Config, made: tuple[Check, ...], now: Column | None, limits: Mapping[str, int]
) -> None:
    topic = config.letter_topic

    def change(row: Row) -> Row:
        return dead_letter(row, config, made, _milliseconds(now), limits.get(topic))

    merged = dead[0] if len(dead) == 1 else dead[0].merge(*dead[1:], name="dead")
    merged.map(change, name="dead-letter-headers").to(topic, name=DEAD_LETTERS)


def _milliseconds(now: Column | None) -> Column:
    return F.unix_millis(F.current_timestamp()) if now is None else now
