"""Many rules at once: which is the first that wants a message, as one Column.

Most rules ask for certain texts: `msg.address = 'a' AND region IN ('x', 'y')`, perhaps with more beside it. The texts
of all rules that ask for the same names become one constant map, which Spark looks up by hash. It gives the rule
itself, if the texts are all it asks for; else the few rules that are worth trying, as a branch of a search tree. So
hundreds of rules cost about as much as one. Rules that ask for no texts stay a CASE in their order, and the answer is
the least number of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column
from pyspark.sql import functions as F

from routes.predicate.conditions import compile_predicate
from routes.predicate.keys import required, sufficient
from routes.predicate.nodes import Predicate
from routes.predicate.tables import look_up
from routes.predicate.views import ColumnView

__all__ = ["first_match"]

Rule = tuple[Predicate, Predicate | None]
"""What to include, and what of that to exclude."""

_Names = tuple[str, ...]
_Texts = tuple[str, ...]

_MIN_ENTRIES = 8
# Rules that ask for fewer texts than this are tried one by one.
_MAX_COPIES = 4
# A rule that asks for more than texts is worth trying for each of its keys, and its code may come up as often.


@dataclass(slots=True)
class _Asked:
    """Texts a rule asks for, and whether that is all it asks for."""

    keys: list[tuple[_Names, _Texts]]
    is_all: bool


@dataclass(slots=True)
class _Table:
    """The rules worth trying for each key, in order; those after one that asks for nothing else never come up."""

    tries: dict[_Texts, list[int]] = field(default_factory=dict)
    closed: set[_Texts] = field(default_factory=set)

    def add(self, texts: _Texts, number: int, *, closes: bool) -> None:
        if texts not in self.closed:
            self.tries.setdefault(texts, []).append(number)
        if closes:
            self.closed.add(texts)


def first_match(rules: Sequence[Rule], view: ColumnView) -> Column:
    """Index (int) of the first rule whose include is true and whose exclude is not; NULL if there is none."""
    asked = {number: found for number, rule in enumerate(rules) if (found := _asked(rule, view)) is not None}
    entries = Counter(names for found in asked.values() for names, _ in found.keys)
    tables: dict[_Names, _Table] = {}
    others: list[int] = []
    for number in range(len(rules)):
        found = asked.get(number)
        if found is None or any(entries[names] < _MIN_ENTRIES for names, _ in found.keys):
            others.append(number)
            continue
        for names, texts in dict.fromkeys(found.keys):
            tables.setdefault(names, _Table()).add(texts, number, closes=found.is_all)
    columns = [_lookup(names, table, rules, view) for names, table in tables.items()]
    columns += [_case(others, rules, view)] if others else []
    if not columns:
        return F.lit(None).cast("int")
    return F.least(*columns) if len(columns) > 1 else columns[0]


def _asked(rule: Rule, view: ColumnView) -> _Asked | None:
    include, exclude = rule
    found = sufficient(include.root) if exclude is None else None
    is_all = found is not None
    if found is None:
        found = required(include.root)
        if found is None or len(found) > _MAX_COPIES:
            return None
    if not all(view.operand(name).text is not None for key in found for name in key):
        return None
    keys = [sorted(key.items()) for key in found]
    return _Asked([(tuple(name for name, _ in key), tuple(text for _, text in key)) for key in keys], is_all)


def _lookup(names: _Names, table: _Table, rules: Sequence[Rule], view: ColumnView) -> Column:
    """What a table says: a rule's number where that is certain, else the branch to try, counted down from -1."""
    branches: dict[tuple[int, ...], int] = {}
    values = []
    for texts, tries in table.tries.items():
        certain = len(tries) == 1 and texts in table.closed
        values.append(tries[0] if certain else branches.setdefault(tuple(tries), -1 - len(branches)))
    found = _element(names, dict(zip(table.tries, values, strict=True)), view)
    if not branches:
        return found
    # `elt` names what was found once and evaluates no other branch, where a CASE would name it again for each.
    tried = F.elt(-found, *(_case(tries, rules, view).cast("string") for tries in branches))
    return F.when(found >= 0, found).otherwise(tried.cast("int"))


def _element(names: _Names, table: Mapping[_Texts, int], view: ColumnView) -> Column:
    *first, last = [text for name in names if (text := view.operand(name).text) is not None]
    parts = [part for text in first for part in (F.octet_length(text).cast("string"), F.lit(":"), text)]
    return look_up(F.concat(*parts, last) if parts else last, {_joined(texts): value for texts, value in table.items()})


def _joined(texts: _Texts) -> str:
    """One text for several, different for different ones: each but the last says how many bytes it has."""
    *first, last = texts
    return "".join(f"{len(text.encode())}:{text}" for text in first) + last


def _case(numbers: Sequence[int], rules: Sequence[Rule], view: ColumnView) -> Column:
    first, *others = numbers
    case = F.when(_selects(rules[first], view), first)
    for number in others:
        case = case.when(_selects(rules[number], view), number)
    return case


def _selects(rule: Rule, view: ColumnView) -> Column:
    include, exclude = rule
    wanted = compile_predicate(include, view, exact=False)
    if exclude is None:
        return wanted
    return wanted & ~F.coalesce(compile_predicate(exclude, view, exact=False), F.lit(False))
