"""Many rules at once: which is the first that wants a message, as one Column.

Rules that only ask for texts (`msg.address = 'a' AND region IN ('x', 'y')`) become entries of one constant map for
each set of names, which Spark looks up by hash: hundreds of them cost as much as one, in time and in generated code.
The others stay a CASE in their order. The answer is the least number that either gives.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from routes.predicate.conditions import compile_predicate
from routes.predicate.keys import keys
from routes.predicate.nodes import Predicate
from routes.predicate.views import ColumnView

__all__ = ["first_match"]

Rule = tuple[Predicate, Predicate | None]
"""What to include, and what of that to exclude."""

_MIN_ENTRIES = 8
# Fewer texts than this are compared one by one.

_Names = tuple[str, ...]
_Texts = tuple[str, ...]


def first_match(rules: Sequence[Rule], view: ColumnView) -> Column:
    """Index (int) of the first rule whose include is true and whose exclude is not; NULL if there is none."""
    tables, others = _sort(rules, view)
    found = [_lookup(names, table, view) for names, table in tables.items()]
    if others:
        found.append(_case({number: rules[number] for number in others}, view))
    if not found:
        return F.lit(None).cast("int")
    return F.least(*found) if len(found) > 1 else found[0]


def _sort(rules: Sequence[Rule], view: ColumnView) -> tuple[dict[_Names, dict[_Texts, int]], list[int]]:
    """Tables of texts with the first rule that asks for each, by names; and the rules that are in none."""
    tables: dict[_Names, dict[_Texts, int]] = {}
    rows = {number: _rows(rule, view) for number, rule in enumerate(rules)}
    sizes = Counter(names for found in rows.values() for names, _ in found or ())
    others: list[int] = []
    for number, found in rows.items():
        if found is None or any(sizes[names] < _MIN_ENTRIES for names, _ in found):
            others.append(number)
            continue
        for names, texts in found:
            tables.setdefault(names, {}).setdefault(texts, number)
    return tables, others


def _rows(rule: Rule, view: ColumnView) -> list[tuple[_Names, _Texts]] | None:
    include, exclude = rule
    found = keys(include.root) if exclude is None else None
    if found is None or not all(view.operand(name).text is not None for key in found for name in key):
        return None
    ordered = [sorted(key.items()) for key in found]
    return [(tuple(name for name, _ in key), tuple(text for _, text in key)) for key in ordered]


def _lookup(names: _Names, table: Mapping[_Texts, int], view: ColumnView) -> Column:
    # As JSON, because a Column for each text would take a call into the JVM each; Spark makes it one constant.
    texts = F.from_json(F.lit(json.dumps([_joined(texts) for texts in table])), "array<string>")
    numbers = F.from_json(F.lit(json.dumps(list(table.values()))), "array<int>")
    *first, last = [text for name in names if (text := view.operand(name).text) is not None]
    parts = [part for text in first for part in (F.octet_length(text).cast("string"), F.lit(":"), text)]
    return F.try_element_at(F.map_from_arrays(texts, numbers), F.concat(*parts, last) if parts else last)


def _joined(texts: _Texts) -> str:
    """One text for several, different for different ones: each but the last says how many bytes it has."""
    *first, last = texts
    return "".join(f"{len(text.encode())}:{text}" for text in first) + last


def _case(rules: Mapping[int, Rule], view: ColumnView) -> Column:
    (number, rule), *others = rules.items()
    case = F.when(_selects(rule, view), number)
    for number, rule in others:
        case = case.when(_selects(rule, view), number)
    return case


def _selects(rule: Rule, view: ColumnView) -> Column:
    include, exclude = rule
    wanted = compile_predicate(include, view, exact=False)
    if exclude is None:
        return wanted
    return wanted & ~F.coalesce(compile_predicate(exclude, view, exact=False), F.lit(False))
