"""Routing language in the plan: conditions and keys over the JMS fields and properties of a record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from engine.router.plan.nodes import CopyCondition, RecordCondition
from engine.router.plan.row import PlanRow
from engine.topologies.library.casts import BINARY, cast
from engine.topologies.library.row import HeaderView
from routes.model import Publication
from routes.predicate import Predicate
from routes.predicate.bodies import Bounds, body_path
from routes.predicate.columns import CopyRule, Rule, compile_predicate, copies, first_match
from routes.predicate.nodes import ADDRESS
from routes.predicate.path_json import path_json
from routes.properties import HEADER_FIELDS, encode_type_name

__all__ = [
    "JMS_PREFIX",
    "MessageCondition",
    "MessageField",
    "PublicationCondition",
    "declared_type",
    "field_text",
    "filled",
    "read_within",
    "text_of",
]

JMS_PREFIX = "jms."
"""Prefix of the Kafka headers that hold a JMS field or property; its name follows."""

_REST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class MessageCondition(RecordCondition):
    """Condition that is true for messages that `include` accepts and `exclude` does not."""

    include: Predicate
    exclude: Predicate | None = None

    def __call__(self, row: PlanRow) -> Column:
        """Boolean Column; NULL if `include` is unknown."""
        included = compile_predicate(self.include, row.headers, row.value)
        if self.exclude is None:
            return included
        return included & ~F.coalesce(compile_predicate(self.exclude, row.headers, row.value), F.lit(False))

    @classmethod
    def first(cls, conditions: Sequence[MessageCondition], row: PlanRow) -> Column:
        """Index of the first condition that is true, found by one call into the JVM for all of them."""
        rules = [(condition.include, condition.exclude) for condition in conditions]
        return first_match(rules, row.headers, row.value)


@dataclass(frozen=True, slots=True)
class PublicationCondition(CopyCondition):
    """Condition of one of the publications of a route; those of a route come one after the other."""

    publication: Publication

    def __call__(self, row: PlanRow) -> Column:
        """Boolean Column; NULL if the route's predicate is unknown."""
        return MessageCondition(*self._rule)(row)

    @property
    def _rule(self) -> Rule:
        return self.publication.route.taken, self.publication.route.exclude

    @classmethod
    def first(cls, conditions: Sequence[PublicationCondition], row: PlanRow) -> Column:
        """Index of the first condition that is true."""
        return first_match([condition._rule for condition in conditions], row.headers, row.value)

    @classmethod
    def every(cls, conditions: Sequence[PublicationCondition], row: PlanRow) -> Column:
        """Indexes of the publications of a message, found by one call into the JVM for all of them."""
        rules = []
        for _, each in groupby(conditions, lambda condition: condition.publication.route.name):
            of_route = list(each)
            labels = tuple(condition.publication.label for condition in of_route)
            rules.append(CopyRule(of_route[0]._rule, labels, of_route[0].publication.route.goes_on))
        return copies(rules, row.headers, row.value)


@dataclass(frozen=True, slots=True)
class MessageField:
    """Text of a JMS field or property, as a function of a topology."""

    name: str

    def __call__(self, row: PlanRow) -> Column:
        """Text of the field or property; NULL if the message has none."""
        return field_text(row.header_view, self.name)


def field_text(headers: HeaderView, name: str) -> Column:
    """Text of a JMS field or property (`ADDRESS` too), whatever its type; NULL if the message has none.

    Bytes that are not UTF-8 are in it as they came.
    """
    if name != ADDRESS:
        return headers.text(JMS_PREFIX + name)
    destination = headers.text(f"{JMS_PREFIX}JMSDestination")
    prefixed = destination.startswith("queue:") | destination.startswith("topic:")
    return F.when(prefixed, F.substring(destination, len("queue:") + 1, _REST)).otherwise(destination)


def read_within(bounds: Bounds, spark: SparkSession) -> None:
    """Makes the functions over bodies that are made from now on read bodies within bounds."""
    jvm: Any = spark._jvm
    kind = jvm.jmsbridge.predicate.Bounds
    kind.use(kind(bounds.size, bounds.depth, bounds.elements))


def text_of(row: PlanRow, headers: HeaderView, name: str) -> Column:
    """Text of a field or property (`field_text`), or of the value under a path into the body (`Body.text_under`)."""
    path = body_path(name)
    if path is None:
        return field_text(headers, name)
    return headers.call(f"body:{json.dumps([path_json(path)])}", row.source_value)


def filled(row: PlanRow, template: Column, *, asks_for_body: bool) -> Column:
    """Text of a template (JSON of `template_json`) for a message as it was read.

    NULL without a template, or if one of its values is missing or empty.
    """
    body = row.source_value if asks_for_body else cast(F.lit(None), BINARY)
    return row.source_header_view.call("filled:", template, body)


def declared_type(headers: HeaderView, name: str) -> Column:
    """Declared type of a JMS field or property (`routes.properties.JmsType`); empty text if it has none.

    Values of bodies have none: a number among them is valid as a key, as any other.
    """
    if body_path(name) is not None:
        return F.lit("")
    if name in HEADER_FIELDS:
        return F.lit(HEADER_FIELDS[name])
    return headers.call(f"declared-type:{encode_type_name(name)}")
