"""Settings of a configuration's publications, computed once, as constants and addresses over a row.

The topology, the checks and the headers take each fact about a route and its destinations from here; none of them reads
the configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.claims.section import ClaimCheckConfig
from engine.router.plan.language import filled
from engine.router.plan.row import PlanFunction, PlanRow
from routes.model import BodyConversion, Config, HeaderStyle, Publication, Route, Target
from routes.predicate.bodies import Bounds
from routes.systems import System
from routes.template_json import paths_of, template_json

__all__ = ["JOURNAL_KEY", "ROUTES", "ByBranch", "RouteSettings"]

ROUTES = "routes"
"""Name of the split that gives each message to the publications of a route, of which each is a branch."""

JOURNAL_KEY = ""
"""Stands for a header's name in `RouteSettings.keys`: the key is that of the journal record, and may be missing."""


@dataclass(frozen=True, slots=True)
class ByBranch:
    """A constant for each branch of a split that the record has passed: a topic, a key, a setting."""

    split: str
    """Name of the split."""
    values: Mapping[str, str]
    """Value by branch name; NULL for a branch that is missing."""

    def __call__(self, row: PlanRow) -> Column:
        """The constant of the branch that took the record, as text; NULL for a branch without one."""
        return row.branches[self.split].pick(self.values)

    def __str__(self) -> str:
        """The split, and the constants by branch."""
        return f"by {self.split} [{', '.join(f'{branch}={value}' for branch, value in self.values.items())}]"

    def faults(self, splits: Mapping[str, Sequence[str]]) -> Iterable[str]:
        """Faults: no such split, or no such branches."""
        if self.split not in splits:
            yield f"no split is named '{self.split}'"
        branches = set(splits.get(self.split, self.values))
        for branch in self.values:
            if branch not in branches:
                yield f"split '{self.split}' has no branch '{branch}'"


@dataclass(frozen=True, slots=True)
class RouteSettings:
    """Settings of all publications; a `ByBranch` gives the constant of the publication of a message."""

    publications: tuple[Publication, ...]
    bridge_id: str
    header_style: HeaderStyle
    """Style of the headers of records that are not for sinks."""
    key_pattern: str
    """Regular expression that a key of text has to match."""
    bounds: Bounds
    """Sizes beyond which a body is not read."""
    max_message_bytes: int
    """The most bytes that a journal record can have."""
    letter_limit: int | None
    """`max.message.bytes` of the dead-letter topic, if known."""
    limits: Mapping[str, int]
    """`max.message.bytes` of topics that messages are published to, as far as it is known."""
    names: ByBranch
    """Names of the routes."""
    targets: ByBranch
    """Destinations as the configuration spells them."""
    numbered: ByBranch
    """Number of the destination in its route, and the destination; empty if no message has several publications."""
    constant_topics: ByBranch
    constant_addresses: ByBranch
    """Addresses in the systems of sinks that do not depend on the message."""
    sinks: ByBranch
    keys: ByBranch
    """JMS fields, properties or paths into bodies that keys are taken from, or `JOURNAL_KEY`."""
    configured_keys: ByBranch
    """The part of `keys` for routes whose key is configured, and therefore checked."""
    paused: ByBranch
    """Name of the route, for routes that are paused."""
    policies: ByBranch
    """Treatment of a message that fails softly (`routes.model.Policy`)."""
    any_body: ByBranch
    """Empty text for publications that take every kind of body."""
    json_body: ByBranch
    """Empty text for publications that also take bodies of JSON."""
    body_formats: ByBranch
    """Format of bodies, for routes that name one."""
    schemas: ByBranch
    """Name of the route, for routes whose bodies have to fit a schema."""
    growths: ByBranch
    """Most bytes by which edits enlarge the headers, for routes that edit some."""
    edits: ByBranch
    """Edits to headers, as JSON (`HeaderEdits.json`), for routes that edit some."""
    masks: ByBranch
    """Name of the route, for routes that mask bodies."""
    steps: ByBranch
    """Conversions of bodies, as JSON (`BodySteps.json`), for routes that convert some."""
    written: ByBranch
    """Name of the publication, for those whose bodies are written by a schema."""
    converted_kinds: ByBranch
    """Kind of bodies that leave, for routes that convert them or write them by a schema."""
    converted_json: ByBranch
    """Empty text for publications that also convert the JSON of maps, streams and objects."""
    claims: ByBranch
    """Bytes of the largest body that leaves in its record, for routes that keep larger ones as files."""
    claim_folder: str | None
    """Place of these files."""
    templates: ByBranch
    """Addresses that depend on the message, as JSON (`routes.template_json`)."""
    templates_ask_for_body: bool
    """True if one of these addresses has a value of the body in it."""
    patterns: ByBranch
    """Regular expression that such an address has to match as a whole, if it is one of a sink's system."""
    topics_to_choose: tuple[str, ...]
    """The Kafka topics that such an address may name."""

    @staticmethod
    def of(config: Config, limits: Mapping[str, int]) -> RouteSettings:
        """Computes the settings of a configuration; `limits` is `max.message.bytes` by topic, as far as it is known."""
        publications = config.publications
        topics = {topic for publication in publications for topic in publication.target.topics}
        systems = {sink.name: sink.type for sink in config.sinks}
        made = [each.target for each in publications if each.target.address.references]

        def of_target(value: Callable[[Publication], str | None]) -> ByBranch:
            values = ((publication.name, value(publication)) for publication in publications)
            return ByBranch(ROUTES, {name: text for name, text in values if text is not None})

        def constant(value: Callable[[Route], str | None]) -> ByBranch:
            return of_target(lambda publication: value(publication.route))

        return RouteSettings(
            publications,
            config.bridge_id,
            config.routing.headers,
            config.routing.key_pattern,
            config.routing.bounds,
            config.journal.max_message_bytes,
            limits.get(config.letter_topic),
            {topic: limit for topic, limit in limits.items() if topic in topics},
            names=constant(lambda route: route.name),
            targets=of_target(lambda publication: str(publication.target)),
            numbered=of_target(lambda publication: publication.mark if config.has_copies else None),
            constant_topics=of_target(lambda publication: publication.target.topic),
            constant_addresses=of_target(lambda each: _constant_address(each.target)),
            sinks=of_target(lambda publication: publication.target.sink),
            keys=of_target(lambda each: each.route.key or (JOURNAL_KEY if each.target.sink else "JMSMessageID")),
            configured_keys=constant(lambda route: route.key),
            paused=constant(lambda route: route.name if route.paused else None),
            policies=constant(lambda route: route.on_soft_failure),
            any_body=of_target(lambda publication: "" if publication.conversion is BodyConversion.ANY else None),
            json_body=of_target(lambda publication: "" if publication.conversion is BodyConversion.JSON else None),
            body_formats=constant(lambda route: route.read_as),
            schemas=constant(lambda route: route.name if route.schema else None),
            growths=constant(lambda route: str(route.edits.growth) if route.edits else None),
            edits=constant(lambda route: route.edits.json if route.edits else None),
            masks=constant(lambda route: route.name if route.mask else None),
            steps=constant(lambda route: route.steps.json if route.steps else None),
            written=of_target(lambda publication: publication.name if publication.route.written_schema else None),
            converted_kinds=constant(lambda route: route.left_kind if route.converts else None),
            converted_json=of_target(lambda publication: "" if publication.converts_json else None),
            claims=constant(lambda route: None if route.claim_above is None else str(route.claim_above)),
            claim_folder=config.section(ClaimCheckConfig).place,
            templates=of_target(lambda each: _template(each.target)),
            templates_ask_for_body=bool(paths_of(target.address for target in made)),
            patterns=of_target(lambda each: _pattern(each.target, systems)),
            topics_to_choose=tuple({topic: None for target in made if not target.sink for topic in target.topics}),
        )

    @property
    def routes(self) -> tuple[Route, ...]:
        """The routes, in their order."""
        return tuple({each.route.name: each.route for each in self.publications}.values())

    @property
    def topics(self) -> PlanFunction:
        """The Kafka topic that a message is published to: a constant of the publication, or a function of the row."""
        if self.templates.values.keys() == self.patterns.values.keys():
            return self.constant_topics
        return lambda row: F.coalesce(self.constant_topics(row), self._filled(row))

    @property
    def changes_bodies(self) -> bool:
        """True if a route masks, converts or writes bodies, or keeps some as files."""
        return self.rewrites_bodies or bool(self.claims.values)

    @property
    def rewrites_bodies(self) -> bool:
        """True if a route masks, converts or writes bodies."""
        return bool(self.masks.values or self.converted_kinds.values)

    @property
    def growth(self) -> int:
        """Most bytes by which the edits of any route enlarge the headers."""
        return max(map(int, self.growths.values.values()), default=0)

    def address(self, row: PlanRow) -> Column:
        """The message's address; NULL if it is a constant Kafka topic, or if a header of it is missing."""
        constant = self.constant_addresses(row)
        return F.coalesce(constant, self._filled(row)) if self.templates.values else constant

    def is_unresolved(self, row: PlanRow) -> Column:
        """True if the address lacks a header, is not allowed by the sink's system, or names no known topic."""
        address, pattern = self._filled(row), self.patterns(row)
        valid = address.isin(*self.topics_to_choose)
        for each in dict.fromkeys(self.patterns.values.values()):
            valid = F.when(pattern == each, address.rlike(f"\\A(?:{each})\\z")).otherwise(valid)
        return self.templates(row).isNotNull() & ~F.coalesce(valid, F.lit(False))

    def _filled(self, row: PlanRow) -> Column:
        return filled(row, self.templates(row), asks_for_body=self.templates_ask_for_body)


def _constant_address(target: Target) -> str | None:
    return str(target.address) if target.sink and not target.address.references else None


def _template(target: Target) -> str | None:
    return template_json(target.address) if target.address.references else None


def _pattern(target: Target, systems: Mapping[str, System]) -> str | None:
    return systems[target.sink].addresses.allowed if target.sink and target.address.references else None
