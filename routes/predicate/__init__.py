"""The language of `in.include` and `in.exclude`: JMS message selectors, and the shorter spelling with `msg.`.

Text is parsed into a tree. The tree is evaluated for one message here, and compiled to Spark Columns by `columns`,
which is imported by itself so that no other part needs Spark. docs/routing-language.md is the reference.
"""

from routes.predicate.evaluate import Lookup, Trace, evaluate, trace
from routes.predicate.nodes import Predicate, identifiers

__all__ = ["Lookup", "Predicate", "Trace", "evaluate", "identifiers", "parse", "trace"]


def parse(text: str) -> Predicate:
    """Parses the text of a predicate, see `routes.predicate.parser`, which is imported by the first call.

    Raises:
        PredicateError: the text is not a predicate; with the place and what was expected. No other error is raised.
    """
    from routes.predicate import parser

    return parser.parse(text)
