"""Settings of a configuration's publications, computed once, as constants and addresses over a row.

The topology, the checks and the headers take each fact about a route and its destinations from here; none of them reads
the configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.router.plan.language import text_of
from engine.router.plan.row import PlanFunction, PlanRow
from engine.topologies.library.casts import BINARY, cast
from routes.model import BodyConversion, Config, HeaderStyle, Publication, Route
from routes.targets import Reference, Template

__all__ = ["JOURNAL_KEY", "ROUTES", "AddressTemplate", "ByBranch", "RouteSettings"]

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
class AddressTemplate:
    """Address of a publication that depends on the message."""

    publication: int
    """Index of the publication."""
    template: Template
    sink: bool
    """True if the address is one of a sink's system; else it is a Kafka topic."""
    topics: tuple[str, ...]
    """The Kafka topics that it may name."""
    pattern: str
    """Regular expression that the whole address has to match at a sink."""

    def fill(self, row: PlanRow) -> Column:
        """The address of a message; NULL if one of its values is missing or empty."""
        # From the headers as read: the address does not depend on the style of the headers that are published.
        parts = (
            F.nullif(text_of(row, row.source_header_view, part.name), F.lit(""))
            if isinstance(part, Reference)
            else F.lit(part)
            for part in self.template.parts
        )
        return F.concat(*parts)

    def is_valid(self, row: PlanRow) -> Column:
        """True if a message's address names one of the topics, or is allowed by the sink's system; may be NULL."""
        filled = self.fill(row)
        return filled.rlike(f"\\A(?:{self.pattern})\\z") if self.sink else filled.isin(*self.topics)


@dataclass(frozen=True, slots=True)
class RouteSettings:
    """Settings of all publications; a `ByBranch` gives the constant of the publication of a message."""

    publications: tuple[Publication, ...]
    bridge_id: str
    header_style: HeaderStyle
    """Style of the headers of records that are not for sinks."""
    key_pattern: str
    """Regular expression that a key of text has to match."""
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
    policies: ByBranch
    """Treatment of a message that fails softly (`routes.model.Policy`)."""
    any_body: ByBranch
    """Empty text for publications that take every kind of body."""
    json_body: ByBranch
    """Empty text for publications that also take bodies of JSON."""
    body_formats: ByBranch
    """Format of bodies, for routes that name one."""
    growths: ByBranch
    """Most bytes by which edits enlarge the headers, for routes that edit some."""
    edits: ByBranch
    """Edits to headers, as JSON (`HeaderEdits.json`), for routes that edit some."""
    masks: ByBranch
    """Name of the route, for routes that mask bodies."""
    steps: ByBranch
    """Conversions of bodies, as JSON (`BodySteps.json`), for routes that convert some."""
    converted_kinds: ByBranch
    """Kind of converted bodies, for routes that convert some."""
    converted_json: ByBranch
    """Empty text for publications that also convert the JSON of maps, streams and objects."""
    templates: tuple[AddressTemplate, ...]
    """Addresses that depend on the message, in the order of their publications."""

    @staticmethod
    def of(config: Config, limits: Mapping[str, int]) -> RouteSettings:
        """Computes the settings of a configuration; `limits` is `max.message.bytes` by topic, as far as it is known."""
        publications = config.publications
        topics = {topic for publication in publications for topic in publication.target.topics}
        systems = {sink.name: sink.type for sink in config.sinks}

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
            config.journal.max_message_bytes,
            limits.get(config.letter_topic),
            {topic: limit for topic, limit in limits.items() if topic in topics},
            names=constant(lambda route: route.name),
            targets=of_target(lambda publication: str(publication.target)),
            numbered=of_target(lambda publication: publication.mark if config.has_copies else None),
            constant_topics=of_target(lambda publication: publication.target.topic),
            constant_addresses=of_target(lambda each: str(each.target.address) if each.target.sink else None),
            sinks=of_target(lambda publication: publication.target.sink),
            keys=of_target(lambda each: each.route.key or (JOURNAL_KEY if each.target.sink else "JMSMessageID")),
            configured_keys=constant(lambda route: route.key),
            policies=constant(lambda route: route.on_soft_failure),
            any_body=of_target(lambda publication: "" if publication.conversion is BodyConversion.ANY else None),
            json_body=of_target(lambda publication: "" if publication.conversion is BodyConversion.JSON else None),
            body_formats=constant(lambda route: route.body_format),
            growths=constant(lambda route: str(route.edits.growth) if route.edits else None),
            edits=constant(lambda route: route.edits.json if route.edits else None),
            masks=constant(lambda route: route.name if route.mask else None),
            steps=constant(lambda route: route.steps.json if route.steps else None),
            converted_kinds=constant(lambda route: route.steps.kind if route.steps else None),
            converted_json=of_target(lambda publication: "" if publication.converts_json else None),
            templates=tuple(
                AddressTemplate(
                    index,
                    target.address,
                    target.sink is not None,
                    target.topics,
                    systems[target.sink].addresses.allowed if target.sink else "",
                )
                for index, target in enumerate(publication.target for publication in publications)
                if target.address.references
            ),
        )

    @property
    def routes(self) -> tuple[Route, ...]:
        """The routes, in their order."""
        return tuple({each.route.name: each.route for each in self.publications}.values())

    @property
    def topics(self) -> PlanFunction:
        """The Kafka topic that a message is published to: a constant of the publication, or a function of the row."""
        chosen = self.topic_templates
        return (lambda row: _chosen(row, chosen, self.constant_topics(row))) if chosen else self.constant_topics

    @property
    def changes_bodies(self) -> bool:
        """True if a route masks or converts bodies."""
        return bool(self.masks.values or self.steps.values)

    @property
    def growth(self) -> int:
        """Most bytes by which the edits of any route enlarge the headers."""
        return max(map(int, self.growths.values.values()), default=0)

    @property
    def topic_templates(self) -> list[AddressTemplate]:
        """The templates of Kafka topics."""
        return [template for template in self.templates if not template.sink]

    def address(self, row: PlanRow) -> Column:
        """The message's address; NULL if it is a constant Kafka topic, or if a header of it is missing."""
        return _chosen(row, self.templates, self.constant_addresses(row))

    def edited_headers(self, row: PlanRow) -> Column:
        """The message's headers after the edits of its route."""
        asks_for_body = any(route.edits.paths for route in self.routes)
        body = row.value if asks_for_body else cast(F.lit(None), BINARY)
        return row.header_view.functions.call("edited-headers:", row.headers, self.edits(row), body)

    def is_unresolved(self, row: PlanRow) -> Column:
        """True if the address lacks a header, is not allowed by the sink's system, or names no known topic."""
        unresolved = F.lit(False)
        for template in self.templates:
            invalid = ~F.coalesce(template.is_valid(row), F.lit(False))
            unresolved = F.when(row.branch(ROUTES) == template.publication, invalid).otherwise(unresolved)
        return unresolved


def _chosen(row: PlanRow, templates: Sequence[AddressTemplate], constant: Column) -> Column:
    for template in templates:
        constant = F.when(row.branch(ROUTES) == template.publication, template.fill(row)).otherwise(constant)
    return constant
