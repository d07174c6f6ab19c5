"""Conclusions from conditions, whatever a message holds: they are never true together, or another one is true as well.

Only what is certain is concluded. A value may be of any kind, and text without a type is read as the kind it is
compared with: texts and booleans are tried in each kind, and of numbers only those are different that no rounding makes
equal.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from routes.predicate import patterns
from routes.predicate.evaluate import truth_for
from routes.predicate.nodes import (
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
    Not,
    Operator,
    PredicateNode,
    ValuePath,
    XmlPath,
    walk,
)
from routes.predicate.values import ComparisonKind, Value

__all__ = ["Clash", "Covers", "clashes", "is_never_true"]

_Part = Identifier | ValuePath
"""Field or property, or a value of the body."""
_Comparison = tuple[Operator, Literal]
"""Comparison with a number, on the right."""

_MIRRORED = {Operator.LT: Operator.GT, Operator.LE: Operator.GE, Operator.GT: Operator.LT, Operator.GE: Operator.LE}
_MEANT = {
    Operator.EQ: {"="},
    Operator.NE: {"<", ">"},
    Operator.LT: {"<"},
    Operator.LE: {"<", "="},
    Operator.GT: {">"},
    Operator.GE: {">", "="},
}
_RELATIVE, _ABSOLUTE = 2.0**-22, 1e-44
"""Differences that two numbers can have, and more, which are equal as floats."""
_LARGEST_FLOAT = 3.4e38
"""Numbers beyond it may all be the same float."""
_REPLACEMENT = "\ufffd"
_PIECES_OF_BEGINNING = 2
_MOST_CONDITIONS, _MOST_VALUES, _MOST_CASES = 20, 100, 50
_MOST_STEPS, _MOST_OF_PAIR = 20_000, 500
"""Most steps of conclusions about all routes, and about two of them; after these, nothing is concluded."""
_TRUE = Literal(True)


class Clash(NamedTuple):
    """Two conditions about a part of messages that no value of it meets."""

    part: _Part
    earlier: PredicateNode
    later: PredicateNode


def clashes(conditions: Iterable[PredicateNode]) -> Iterator[Clash]:
    """Yields conditions joined by AND that are never true together, at most one pair for each part of messages."""
    by_part: dict[_Part, list[PredicateNode]] = {}
    for condition in conditions:
        if part := _part_of(condition):
            by_part.setdefault(part, []).append(condition)
    for part, about in by_part.items():
        pairs = itertools.combinations(about[:_MOST_CONDITIONS], 2)
        if pair := next((pair for pair in pairs if _exclude(part, *pair)), None):
            yield Clash(part, *pair)


def is_never_true(node: PredicateNode, but: PredicateNode | None = None) -> bool:
    """Returns True if a condition is certainly true for no message for which `but` is not true."""
    cases = _cases(node)
    return cases is not None and all(
        _contradicts(_joined(case, Operator.AND)) or (but is not None and Covers().is_covered(case, but))
        for case in cases
    )


def _contradicts(conditions: Sequence[PredicateNode]) -> bool:
    """Returns True if conditions joined by AND are never true together."""
    if any(isinstance(each, Between) and next(clashes((each, each)), None) for each in conditions):
        return True
    if next(clashes(conditions), None):
        return True
    covers = Covers()
    return any(covers.is_covered(_all_of(conditions), each.operand) for each in conditions if isinstance(each, Not))


def _all_of(conditions: Sequence[PredicateNode]) -> PredicateNode:
    return conditions[0] if len(conditions) == 1 else Logical(Operator.AND, tuple(conditions))


def _cases(node: PredicateNode) -> list[PredicateNode] | None:
    """Returns conditions without OR and lists, one of which is true exactly where `node` is; None for too many."""
    match node:
        case Logical(operator=Operator.OR):
            of_operands = [_cases(each) for each in node.operands]
            cases = [case for each in of_operands if each is not None for case in each]
            return None if None in of_operands or len(cases) > _MOST_CASES else cases
        case Logical():
            cases = [_TRUE]
            for operand in node.operands:
                more = _cases(operand)
                if more is None or len(cases) * len(more) > _MOST_CASES:
                    return None
                cases = [
                    _all_of([*(_joined(case, Operator.AND) if case is not _TRUE else ()), *_joined(each, Operator.AND)])
                    for case in cases
                    for each in more
                ]
            return cases
        case In(negated=False):
            if len(node.texts) + len(node.numbers) > _MOST_CASES:
                return None
            literals = (*map(Literal, node.texts), *node.numbers)
            return [Comparison(Operator.EQ, node.operand, each) for each in literals]
    return [node]


class Covers:
    """Routes by their predicates, to find those that take all messages of another predicate."""

    def __init__(self) -> None:
        self._routes: list[tuple[str, PredicateNode]] = []
        self._by_text: dict[tuple[PredicateNode, str], list[int]] = {}
        self._others: list[int] = []
        self._left = _MOST_STEPS
        self._left_of_pair = 0

    def add(self, name: str, node: PredicateNode) -> None:
        """Adds a route that comes after those before."""
        number = len(self._routes)
        self._routes.append((name, node))
        asked = (_text_asked(each) for each in _joined(node, Operator.AND))
        if key := next(filter(None, asked), None):
            self._by_text.setdefault(key, []).append(number)
        else:
            self._others.append(number)

    def name_of(self, node: PredicateNode) -> str | None:
        """Returns the first route whose predicate is true for every message that `node` is true for; None for none."""
        if not self._left:
            return None
        keys = {(part, text) for each in walk(node) for part, texts in [_texts(each)] if part for text in texts}
        numbers = itertools.chain(self._others, *(self._by_text.get(key, ()) for key in keys))
        routes = (self._routes[number] for number in sorted(numbers))
        return next((name for name, wanted in routes if self.is_covered(node, wanted)), None)

    def names_of(self, node: PredicateNode) -> tuple[str, ...]:
        """Returns the routes of which one is true for every message that `node` is true for; empty if there are none.

        One alone comes before several.
        """
        if name := self.name_of(node):
            return (name,)
        cases = _cases(node) or ()
        names = [self.name_of(case) for case in cases] if len(cases) > 1 else [None]
        return () if None in names else tuple(dict.fromkeys(filter(None, names)))

    def is_covered(self, given: PredicateNode, wanted: PredicateNode) -> bool:
        """Returns True if `wanted` is certainly true whenever `given` is."""
        most = self._left_of_pair = min(self._left, _MOST_OF_PAIR)
        implied = self._implies(given, wanted)
        self._left -= most - max(self._left_of_pair, 0)
        return implied

    def _implies(self, given: PredicateNode, wanted: PredicateNode) -> bool:
        """Returns True if `wanted` is certainly true whenever `given` is."""
        self._left_of_pair -= 1
        if self._left_of_pair < 0:
            return False
        if wanted == _TRUE or _is_same(given, wanted):
            return True
        match given, wanted:
            case _, Logical(operator=Operator.AND):
                return all(self._implies(given, each) for each in wanted.operands)
            case Logical(operator=Operator.OR), _:
                return all(self._implies(each, wanted) for each in given.operands)
            case _, Logical() if any(self._implies(given, each) for each in wanted.operands):
                return True
            case Logical(), _ if any(self._implies(each, wanted) for each in given.operands):
                return True
        return _follows(_joined(given, Operator.AND), wanted)


def _is_same(node: PredicateNode, other: PredicateNode) -> bool:
    """Returns True for equal nodes whose numbers are written as the same, too: those of bodies have more digits."""
    pairs = zip(walk(node), walk(other), strict=True)
    return node == other and all(
        one.written == another.written
        for one, another in pairs
        if isinstance(one, Literal) and isinstance(another, Literal)
    )


def _joined(node: PredicateNode, operator: Operator) -> Sequence[PredicateNode]:
    return node.operands if isinstance(node, Logical) and node.operator is operator else (node,)


def _part_of(condition: PredicateNode) -> _Part | None:
    """Returns the only part of messages that a condition is about; None for several, and where elements may differ."""
    kinds = (Identifier, ValuePath, BodyText, BodyFault)
    parts = {node for node in walk(condition) if isinstance(node, kinds)}
    match tuple(parts):
        case (Identifier() as name,):
            return name
        case (BodyPath() | XmlPath() as path,) if not path.is_repeated:
            return path
    return None


def _exclude(part: _Part, first: PredicateNode, second: PredicateNode) -> bool:
    """Returns True if two conditions about a part are never both true."""
    pairs = itertools.product(_comparisons(part, first), _comparisons(part, second))
    if any(_differ(*pair) for pair in pairs) or _part_ways(_beginning(first), _beginning(second)):
        return True
    for one, other in ((first, second), (second, first)):
        left_out = _asks_for_beginning(one) if isinstance(one, Like) and one.negated else ""
        if left_out and _beginning(other).startswith(left_out):
            return True
        values = _values(part, one)
        if values is not None and not any(_are_true((one, other), part, value) for value in values):
            return True
    return False


def _follows(given: Sequence[PredicateNode], wanted: PredicateNode) -> bool:
    """Returns True if a condition about one part is certainly true whenever the given ones are."""
    part = _part_of(wanted)
    if part is None:
        return False
    about = [each for each in given if _part_of(each) == part][:_MOST_CONDITIONS]
    if isinstance(wanted, IsNull):
        return wanted.negated and any(
            isinstance(each, Comparison | Between | In | Like) or each == part for each in about
        )
    known = [comparison for each in about for comparison in _comparisons(part, each)]
    needed = _comparisons(part, wanted)
    if needed and all(any(_contains(need, each) for each in known) for need in needed):
        return True
    if wished := _asks_for_beginning(wanted):
        known_beginnings = [begins for each in about if (begins := _beginning(each))]
        if isinstance(wanted, Like) and wanted.negated:
            if any(_part_ways(begins, wished) for begins in known_beginnings):
                return True
        elif any(begins.startswith(wished) for begins in known_beginnings):
            return True
    values = next((found for each in about if (found := _values(part, each)) is not None), ())
    left = [value for value in values if _are_true(about, part, value)]
    return bool(left) and all(_are_true((wanted,), part, value) for value in left)


def _are_true(conditions: Iterable[PredicateNode], part: _Part, value: Value | None) -> bool:
    return all(truth_for(each, part, value) for each in conditions)


def _comparisons(part: _Part, node: PredicateNode) -> list[_Comparison]:
    """Returns comparisons of a part with numbers, all of which are true where a condition is; none for others."""
    match node:
        case Comparison(operator=sign, left=left, right=Literal() as right) if left == part:
            comparisons = [(sign, right)]
        case Comparison(operator=sign, left=Literal() as left, right=right) if right == part:
            comparisons = [(_MIRRORED.get(sign, sign), left)]
        case Between(operand=operand, low=Literal() as low, high=Literal() as high, negated=False) if operand == part:
            comparisons = [(Operator.GE, low), (Operator.LE, high)]
        case _:
            return []
    return comparisons if all(not isinstance(literal.value, str | bool) for _, literal in comparisons) else []


def _differ(first: _Comparison, second: _Comparison) -> bool:
    """Returns True if no number meets both comparisons."""
    (sign, number), (other_sign, other) = first, second
    if _is_same(number, other):
        return not _MEANT[sign] & _MEANT[other_sign]
    return _is_apart(first, second) or _is_apart(second, first)


def _is_apart(upper: _Comparison, lower: _Comparison) -> bool:
    """Returns True if what is at least the one number is never at most the other."""
    return ">" not in _MEANT[lower[0]] and "<" not in _MEANT[upper[0]] and _is_below(lower[1], upper[1])


def _contains(wanted: _Comparison, given: _Comparison) -> bool:
    """Returns True if each number that meets one comparison meets the other."""
    if _is_same(wanted[1], given[1]):
        return _MEANT[given[0]] <= _MEANT[wanted[0]]
    if "<" not in _MEANT[given[0]] and _is_below(wanted[1], given[1]):
        return ">" in _MEANT[wanted[0]]
    return ">" not in _MEANT[given[0]] and _is_below(given[1], wanted[1]) and "<" in _MEANT[wanted[0]]


def _is_below(low: Literal, high: Literal) -> bool:
    """Returns True if a number is less than another in whatever kind they are compared."""
    first, second = float(low.value), float(high.value)
    if first > _LARGEST_FLOAT or second < -_LARGEST_FLOAT:
        return False
    slack = (abs(first) + abs(second)) * _RELATIVE + _ABSOLUTE
    return first + slack < second


def _text_asked(node: PredicateNode) -> tuple[PredicateNode, str] | None:
    """Returns the part and the only text that it has where a condition is true."""
    part, texts = _texts(node)
    return (part, texts[0]) if part and len(texts) == 1 else None


def _texts(node: PredicateNode) -> tuple[_Part | None, Sequence[str]]:
    """Returns the part and the texts of which it has one where a condition is true; None for other conditions."""
    match node:
        case Comparison(operator=Operator.EQ, left=part, right=Literal(value=str() as text)):
            texts: Sequence[str] = (text,)
        case Comparison(operator=Operator.EQ, left=Literal(value=str() as text), right=part):
            texts = (text,)
        case In(operand=part, texts=texts, negated=False, numbers=()):
            pass
        case _:
            return None, ()
    return (part, texts) if isinstance(part, _Part) else (None, ())


def _values(part: _Part, node: PredicateNode) -> Sequence[Value | None] | None:
    """Returns all values of a part for which a condition about it may be true; None if they cannot be listed.

    A value that is None stands for a part that is missing.
    """
    _, texts = _texts(node)
    kinds = [ComparisonKind.TEXT, *[ComparisonKind.UNTYPED] * isinstance(part, Identifier)]
    if texts and len(texts) <= _MOST_VALUES and not any(_REPLACEMENT in text for text in texts):
        return [Value(kind, text) for kind in kinds for text in texts]
    match node:
        case Comparison(operator=Operator.EQ, left=left, right=Literal(value=bool() as truth)) if left == part:
            return _truths(truth)
        case Comparison(operator=Operator.EQ, left=Literal(value=bool() as truth), right=right) if right == part:
            return _truths(truth)
        case Identifier() | BodyPath() | XmlPath():
            return _truths(truth=True)
        case IsNull(negated=False):
            return [None]
    return None


def _beginning(node: PredicateNode) -> str:
    """Returns the text that values begin with where a condition is true; empty if it is not known."""
    if not isinstance(node, Like) or node.negated:
        return ""
    begins = patterns.split(node.pattern, node.escape).prefix
    return "" if _REPLACEMENT in begins else begins


def _asks_for_beginning(node: PredicateNode) -> str:
    """Returns the text that a LIKE asks values to begin with, and nothing else; empty for other conditions."""
    if not isinstance(node, Like):
        return ""
    pattern = patterns.split(node.pattern, node.escape)
    is_beginning = (
        len(pattern.pieces) == _PIECES_OF_BEGINNING and not pattern.pieces[1] and None not in pattern.pieces[0]
    )
    return pattern.prefix if is_beginning and _REPLACEMENT not in pattern.prefix else ""


def _part_ways(first: str, second: str) -> bool:
    """Returns True if no text begins with both."""
    return not (first.startswith(second) or second.startswith(first))


def _truths(truth: bool) -> list[Value]:
    """Returns the values that are a truth, or texts that read as it."""
    spelled = itertools.product(*((letter, letter.upper()) for letter in str(truth).lower()))
    texts = (Value(ComparisonKind.UNTYPED, "".join(letters)) for letters in spelled)
    return [Value(ComparisonKind.BOOLEAN, truth), *texts]
