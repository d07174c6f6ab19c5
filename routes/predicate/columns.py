"""Predicates and route tables for Spark, as Columns over the headers of a Kafka record.

    frame.filter(compile_predicate(predicate, F.col("headers")))

The conditions are not Spark's own expressions: five hundred of them take a minute to analyse and more code than Java
compiles. They go to the JVM as one text of JSON, and `jmsbridge.predicate.RouteTable` (`jvm/spark`) finds the first
rule that wants each record. Its results must equal those of `evaluate`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from py4j.java_gateway import JavaPackage
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from routes.predicate.nodes import Literal, Predicate
from routes.predicate.rule_json import RuleTable

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
    table = RuleTable()
    return _called([table.rule(*rule) for rule in rules], table, headers, body)


def copies(rules: Sequence[CopyRule], headers: Column, body: Column | None = None) -> Column:
    """Returns the numbers of a record's publications (array of int), counted through all rules; -1 alone for none.

    The record has those of the first rule that takes it and, after each rule that goes on, of the next one. The
    arguments are those of `first_match`.
    """
    table = RuleTable()
    made = [{**table.rule(*each.rule), "labels": each.labels, "goesOn": each.goes_on} for each in rules]
    return _called(made, table, headers, body)


def compile_predicate(predicate: Predicate, headers: Column, body: Column | None = None) -> Column:
    """Returns a nullable boolean: true, false, or NULL for unknown; `headers` and `body` as for `first_match`."""
    table = RuleTable()
    condition = table.condition(predicate.root)
    first = _called([{"include": condition}, {"include": ["NOT", condition]}], table, headers, body)
    return F.get(F.array(F.lit(True), F.lit(False)), first)


def _called(rules: list[Any], table: RuleTable, headers: Column, body: Column | None) -> Column:
    text = table.json(rules)
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
