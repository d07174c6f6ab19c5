"""Predicates and route tables for Spark, as Columns over the headers of a Kafka record.

    frame.filter(compile_predicate(predicate, F.col("headers")))

The conditions are not Spark's own expressions: five hundred of them take a minute to analyse and more code than Java
compiles. They go to the JVM as one text of JSON, and `jmsbridge.predicate.RouteTable` (`jvm/spark`) finds the first
rule that wants each record. Its results must equal those of `evaluate`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from py4j.java_gateway import JavaPackage
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from routes.predicate import patterns
from routes.predicate.keys import Part, Prefix, Range, Requirement, required, sufficient
from routes.predicate.nodes import (
    ADDRESS,
    Arithmetic,
    Between,
    BodyFault,
    BodyPath,
    BodyText,
    Comparison,
    Identifier,
    In,
    IsNull,
    Like,
    Literal,
    Logical,
    Negate,
    Not,
    Operator,
    Predicate,
    PredicateNode,
    ValuePath,
    XmlPath,
    repeated,
)
from routes.predicate.path_json import path_json
from routes.predicate.values import constant
from routes.properties import HEADER_FIELDS, encode_type_name

__all__ = ["CopyRule", "Rule", "compile_predicate", "copies", "first_match"]

Rule = tuple[Predicate, Predicate | None]
"""A rule: messages to include, and exceptions among them."""


class CopyRule(NamedTuple):
    """A rule of which each record has as many publications as the rule has labels."""

    rule: Rule
    labels: tuple[str, ...]
    """Texts of the header `jmsbridge.only`, by which a record gets the publication of that label alone."""
    goes_on: bool
    """True if later rules are tried for the record as well."""


_ALWAYS = Predicate("TRUE", Literal(True))
_CATALOG = "jmsbridge"
_CATALOG_CLASS = "jmsbridge.predicate.Functions"


def first_match(rules: Sequence[Rule], headers: Column, body: Column | None = None) -> Column:
    """Returns the index (int) of the first rule whose include is true and whose exclude is not; NULL if there is none.

    Args:
        rules: in the order in which they are tried.
        headers: `array<struct<key: string, value: binary>>`, nullable, as Spark's Kafka source gives it.
        body: binary, nullable, which is read only if a rule asks for it; None: no record has a body.

    Raises:
        RuntimeError: the active session lacks `jms-bridge-spark.jar`.
    """
    if not rules:
        return F.lit(None).cast("int")
    if rules[0] == (_ALWAYS, None):
        return F.lit(0)
    table = _Table()
    return _called([table.rule(*rule) for rule in rules], table, headers, body)


def copies(rules: Sequence[CopyRule], headers: Column, body: Column | None = None) -> Column:
    """Returns the numbers of a record's publications (array of int), counted through all rules; -1 alone for none.

    The record has those of the first rule that takes it and, after each rule that goes on, of the next one. The
    arguments are those of `first_match`.
    """
    table = _Table()
    made = [{**table.rule(*each.rule), "labels": each.labels, "goesOn": each.goes_on} for each in rules]
    return _called(made, table, headers, body)


def compile_predicate(predicate: Predicate, headers: Column, body: Column | None = None) -> Column:
    """Returns a nullable boolean: true, false, or NULL for unknown; `headers` and `body` as for `first_match`."""
    table = _Table()
    condition = table.condition(predicate.root)
    first = _called([{"include": condition}, {"include": ["NOT", condition]}], table, headers, body)
    return F.get(F.array(F.lit(True), F.lit(False)), first)


def _called(rules: list[Any], table: _Table, headers: Column, body: Column | None) -> Column:
    made = {"fields": table.fields, "paths": table.paths, "body": table.asks_for_body, "rules": rules}
    text = json.dumps(made, separators=(",", ":"))
    name = f"routes_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    spark = SparkSession.active()
    jvm: Any = spark._jvm
    tables = jvm.jmsbridge.predicate.RouteTable
    if isinstance(tables, JavaPackage):
        msg = "the Spark session lacks jms-bridge-spark.jar: add it to spark.jars or the driver's class path"
        raise RuntimeError(msg)
    tables.put(name, text)
    spark.conf.set(f"spark.sql.catalog.{_CATALOG}", _CATALOG_CLASS)
    if not table.asks_for_body:
        return F.call_function(f"{_CATALOG}.{name}", headers)
    return F.call_function(f"{_CATALOG}.{name}", headers, F.lit(None).cast("binary") if body is None else body)


class _Table:
    """Rules as the JSON that `jmsbridge.predicate` reads: lists that begin with a word."""

    def __init__(self) -> None:
        self.fields: list[dict[str, Any]] = []
        """The fields and properties that the rules read."""
        self.paths: list[Any] = []
        """The paths into bodies that the rules read."""
        self.asks_for_body = False
        """True if a rule reads bodies."""
        self._indexes: dict[str, int] = {}

    def rule(self, include: Predicate, exclude: Predicate | None) -> dict[str, Any]:
        """Returns the JSON of a rule; without conditions if its keys alone decide."""
        keys = sufficient(include.root) if exclude is None else None
        if keys is not None:
            return {"requires": self._requirements(keys)}
        requirements = required(include.root)
        return {
            "requires": None if requirements is None else self._requirements(requirements),
            "include": self.condition(include.root),
            "exclude": exclude and self.condition(exclude.root),
        }

    def condition(self, node: PredicateNode) -> list[Any]:
        """Returns the JSON of a part that is true, false or unknown."""
        path = repeated(node)
        return self._one(node) if path is None else ["EACH", self._path(path), self._one(node)]

    def _one(self, node: PredicateNode) -> list[Any]:
        match node:
            case Logical():
                return [node.operator.value, *map(self.condition, node.operands)]
            case Not():
                return ["NOT", self.condition(node.operand)]
            case Comparison():
                return self._compare(node.operator, node.left, node.right)
            case Between(negated=False):
                above = self._compare(Operator.GE, node.operand, node.low)
                return ["AND", above, self._compare(Operator.LE, node.operand, node.high)]
            case Between():
                # The specification defines both forms; they are not each other's negation for values of unlike types.
                below = self._compare(Operator.LT, node.operand, node.low)
                return ["OR", below, self._compare(Operator.GT, node.operand, node.high)]
            case In():
                return _negated(node.negated, self._membership(node))
            case Like():
                pattern = patterns.split(node.pattern, node.escape)
                return _negated(node.negated, ["LIKE", self._operand(node.operand), pattern.regex, pattern.prefix])
            case BodyFault():
                self.asks_for_body = True
                return ["FAULT", node.format.value]
            case IsNull():
                return _negated(node.negated, ["NULL", self._operand(node.operand)])
        return self._compare(Operator.EQ, node, Literal(True))

    def _membership(self, node: In) -> list[Any]:
        equals = [self._compare(Operator.EQ, node.operand, number) for number in node.numbers]
        if node.texts or not equals:
            equals.insert(0, ["IN", self._operand(node.operand), node.texts])
        return equals[0] if len(equals) == 1 else ["OR", *equals]

    def _compare(self, sign: Operator, left: PredicateNode, right: PredicateNode) -> list[Any]:
        return [sign.name, self._operand(left), self._operand(right)]

    def _operand(self, node: PredicateNode) -> list[Any]:
        match node:
            case Identifier():
                return ["FIELD", self._index(node.name)]
            case BodyPath() | XmlPath():
                return ["ELEMENT"] if node.is_repeated else ["BODY", self._path(node)]
            case BodyText():
                self.asks_for_body = True
                return ["BODY_TEXT"]
            case Literal():
                value = constant(node)
                return [value.kind.name, value.value, *([] if value.written is None else [str(value.written)])]
            case Arithmetic():
                return [node.operator.name, self._operand(node.left), self._operand(node.right)]
            case Negate():
                return ["NEGATE", self._operand(node.operand)]
        raise AssertionError(node)

    def _requirements(self, requirements: Iterable[Requirement]) -> list[Any]:
        made = map(self._requirement, requirements)
        return list({json.dumps(each): each for each in made}.values())

    def _requirement(self, requirement: Requirement) -> list[Any]:
        match requirement:
            case Prefix(part=part, text=text):
                return ["PREFIX", self._part(part), text]
            case Range(part=part):
                # JSON has no infinite numbers; NULL is not a bound.
                bounds = (requirement.low, requirement.high)
                return ["RANGE", self._part(part), *(bound if math.isfinite(bound) else None for bound in bounds)]
        # Headers before the body, which is read only if they fit.
        return ["TEXTS", sorted(([self._part(part), text] for part, text in requirement.items()), reverse=True)]

    def _part(self, part: Part) -> int:
        """Returns the index of a field, or of a path as a negative number from -1 down."""
        return self._index(part.name) if isinstance(part, Identifier) else -1 - self._path(part)

    def _path(self, path: ValuePath) -> int:
        self.asks_for_body = True
        made = path_json(path)
        if made not in self.paths:
            self.paths.append(made)
        return self.paths.index(made)

    def _index(self, name: str) -> int:
        if name not in self._indexes:
            self._indexes[name] = len(self.fields)
            field = "JMSDestination" if name == ADDRESS else name
            self.fields.append(
                {
                    "header": f"jms.{field}",
                    "name": encode_type_name(field),
                    "type": HEADER_FIELDS.get(field),
                    "address": name == ADDRESS,
                }
            )
        return self._indexes[name]


def _negated(negated: bool, condition: list[Any]) -> list[Any]:
    return ["NOT", condition] if negated else condition
