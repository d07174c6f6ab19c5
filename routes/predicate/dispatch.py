"""Many rules at once: which is the first that wants a message, as one Column."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from routes.predicate.conditions import compile_predicate
from routes.predicate.nodes import Predicate
from routes.predicate.views import ColumnView

__all__ = ["first_match"]

Rule = tuple[Predicate, Predicate | None]
"""What to include, and what of that to exclude."""


def first_match(rules: Sequence[Rule], view: ColumnView) -> Column:
    """Index (int) of the first rule whose include is true and whose exclude is not; NULL if there is none."""
    index: Column = F.lit(None).cast("int")
    for number, rule in reversed(list(enumerate(rules))):
        index = F.when(_selects(rule, view), number).otherwise(index)
    return index


def _selects(rule: Rule, view: ColumnView) -> Column:
    include, exclude = rule
    wanted = compile_predicate(include, view, exact=False)
    if exclude is None:
        return wanted
    return wanted & ~F.coalesce(compile_predicate(exclude, view, exact=False), F.lit(False))
