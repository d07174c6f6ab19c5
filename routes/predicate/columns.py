"""Predicates for Spark: take the values out of the headers with `extract`, then compile one predicate or many rules.

    frame, view = extract(frame, identifiers(predicate))
    frame.filter(compile_predicate(predicate, view))

Native expressions only, so that records never leave generated code. Here are the public names; `views` holds where
values come from, `conditions` one predicate, `dispatch` many.
"""

from routes.predicate.conditions import compile_predicate
from routes.predicate.dispatch import first_match
from routes.predicate.views import ColumnView, HeaderView, View, extract, header_names

__all__ = ["ColumnView", "HeaderView", "View", "compile_predicate", "extract", "first_match", "header_names"]
