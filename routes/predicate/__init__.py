"""The language of `in.include` and `in.exclude`: JMS message selectors, and the shorter spelling with `msg.`.

Text is parsed into a tree. The tree is evaluated for one message here, and compiled to Spark Columns by `columns`,
which is imported by itself so that no other part needs Spark. docs/routing-language.md is the reference.
"""

from routes.predicate.evaluate import Lookup, Trace, evaluate, trace
from routes.predicate.nodes import Predicate, identifiers
from routes.predicate.parser import parse

__all__ = ["Lookup", "Predicate", "Trace", "evaluate", "identifiers", "parse", "trace"]
