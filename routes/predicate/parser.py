"""Parser of predicates: reads a text with the grammar beside this file, and checks that its parts fit together.

The tree's meaning is in `evaluate` and `columns`. `faults` puts syntax errors into words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypedDict

from lark import Token, Tree, UnexpectedInput

from routes.errors import PredicateError
from routes.predicate import faults, numbers, patterns
from routes.predicate.check import check
from routes.predicate.grammar import grammar
from routes.predicate.nodes import (
    ADDRESS,
    BODY,
    Arithmetic,
    Between,
    BodyPath,
    BodyText,
    Comparison,
    Identifier,
    In,
    IsNull,
    Like,
    Literal,
    Logical,
    MessagePart,
    Negate,
    Not,
    Operator,
    PathStep,
    Predicate,
    PredicateNode,
)
from routes.predicate.xpath import XPathError, parse_xpath
from routes.properties import SEED_NAMES

if TYPE_CHECKING:
    from lark import ParseTree

__all__ = ["MAX_CHARACTERS", "MAX_DEPTH", "parse"]

MAX_CHARACTERS = 1_000_000
"""Greatest length of a predicate in characters."""
MAX_DEPTH = 50
"""Deepest nesting of operators; parentheses alone and chains of AND or OR do not count."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def parse(text: str) -> Predicate:
    """Parses the text of a predicate.

    Raises:
        PredicateError: the text is not a predicate; with the place and what was expected. No other error is raised.
    """
    if len(text) > MAX_CHARACTERS:
        raise faults.error(text, 0, f"the predicate has {len(text):,} characters", f"at most {MAX_CHARACTERS:,}")
    if not text.strip(" \t\f\r\n"):
        raise faults.error(text, 0, "the predicate is empty", "TRUE matches every message")
    if surrogate := _SURROGATE.search(text):
        raise faults.error(text, surrogate.start(), *faults.character(surrogate[0]))
    try:
        tree = grammar().parse(text)
    except UnexpectedInput as error:
        raise faults.translate(text, error) from error
    _check_depth(text, tree)
    root = _Builder(text).build(tree)
    check(text, root)
    return Predicate(text, root)


def _check_depth(text: str, tree: ParseTree) -> None:
    waiting = [(tree, 1)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise _too_deep(text, node)
        waiting.extend((child, depth + 1) for child in node.children if isinstance(child, Tree))


def _too_deep(text: str, tree: ParseTree) -> PredicateError:
    return faults.error(
        text,
        tree.meta.start_pos,
        f"operators are nested more than {MAX_DEPTH} deep here",
        "shorten the calculation, or use several routes",
    )


_SEED_OPERATORS = {"==": Operator.EQ, "!=": Operator.NE}
_HEADER = "msg.header."
_STEP = re.compile(r"""\.([^."\[]+)|\."((?:[^"]|"")*)"|\[(-?[0-9]+|\*)\]""")
_INDEX_CHARACTERS = 9
# Characters beyond ASCII that Character.isJavaIdentifierStart and isJavaIdentifierPart take, as Unicode categories.
_NAME_START = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Sc", "Pc"})
_NAME_PART = _NAME_START | {"Nd", "Mn", "Mc", "Cf"}
_LOOKALIKES = "‘’‚‛“”„‟«»`´"  # noqa: RUF001 (the point of it)


class _Extent(TypedDict):
    position: int
    end: int


class _Builder:
    """Makes the nodes of one predicate.

    It calls itself for each level of nesting, so the depth must have been checked.

    Raises:
        PredicateError: a name, number or pattern is invalid.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._rules: Mapping[str, Callable[[ParseTree], PredicateNode]] = {
            "disjunction": lambda tree: self._logical(Operator.OR, tree),
            "conjunction": lambda tree: self._logical(Operator.AND, tree),
            "negated": lambda tree: Not(self._child(tree), **_extent(tree)),
            "comparison": self._comparison,
            "between": lambda tree: self._between(tree, negated=False),
            "not_between": lambda tree: self._between(tree, negated=True),
            "membership": lambda tree: self._in(tree, negated=False),
            "not_membership": lambda tree: self._in(tree, negated=True),
            "like": lambda tree: self._like(tree, negated=False),
            "not_like": lambda tree: self._like(tree, negated=True),
            "is_null": lambda tree: IsNull(self._named(tree, "IS NULL"), **_extent(tree)),
            "is_not_null": lambda tree: IsNull(self._named(tree, "IS NULL"), negated=True, **_extent(tree)),
            "arithmetic": self._arithmetic,
            "minus": self._minus,
            "plus": self._plus,
            "name": self._name,
            "number": self._number,
            "word": self._word,
            "text": lambda tree: Literal(_unquote(_token(tree)), **_extent(tree)),
            "true": lambda tree: Literal(True, **_extent(tree)),
            "false": lambda tree: Literal(False, **_extent(tree)),
            "address": lambda tree: Identifier(ADDRESS, **_extent(tree)),
            "header": self._header,
            "quoted_header": lambda tree: Identifier(self._quoted(tree, len(_HEADER)), **_extent(tree)),
            "quoted_name": lambda tree: Identifier(self._quoted(tree, 0), **_extent(tree)),
            "body": self._body,
            "body_text": lambda tree: BodyText(**_extent(tree)),
            "xpath": self._xpath,
        }

    def build(self, tree: ParseTree) -> PredicateNode:
        """Returns the node that stands for a part of the parse tree."""
        return self._rules[tree.data](tree)

    # Conditions

    def _logical(self, operator: Operator, tree: ParseTree) -> PredicateNode:
        operands: list[PredicateNode] = []
        for operand in map(self.build, _trees(tree)):
            if isinstance(operand, Logical) and operand.operator is operator:
                operands.extend(operand.operands)
            else:
                operands.append(operand)
        return Logical(operator, tuple(operands), **_extent(tree))

    def _comparison(self, tree: ParseTree) -> PredicateNode:
        left, right = map(self.build, _trees(tree))
        sign = _token(tree, 1)
        if _trees(tree)[1].data == "quoted_name":
            name = self._text[right.position + 1 : right.end - 1]
            raise self._error(
                right.position,
                "text goes in single quotes, a name in double quotes",
                f"write '{name}' for the text, msg.header.\"{name}\" for the property",
            )
        operator = _SEED_OPERATORS.get(sign) or Operator(sign)
        return Comparison(operator, left, right, **_extent(tree))

    def _between(self, tree: ParseTree, *, negated: bool) -> PredicateNode:
        operand, low, high = map(self.build, _trees(tree))
        return Between(operand, low, high, negated, **_extent(tree))

    def _in(self, tree: ParseTree, *, negated: bool) -> PredicateNode:
        operand = self._named(tree, "IN")
        constants = map(self.build, _trees(_trees(tree)[1]))
        # A dict keeps the order and drops duplicates.
        distinct = dict.fromkeys(constant for constant in constants if isinstance(constant, Literal))
        texts = tuple(constant.value for constant in distinct if isinstance(constant.value, str))
        not_texts = tuple(constant for constant in distinct if not isinstance(constant.value, str))
        return In(operand, texts, negated, not_texts, **_extent(tree))

    def _like(self, tree: ParseTree, *, negated: bool) -> PredicateNode:
        operand = self._named(tree, "LIKE")
        tokens = [child for child in tree.children if isinstance(child, Token)]
        pattern, escape = _unquote(tokens[0]), _unquote(tokens[1]) if len(tokens) > 1 else None
        if escape is not None and len(escape) != 1:
            raise self._error(_start(tokens[1]), f"ESCAPE takes one character, found {tokens[1]}")
        try:
            patterns.split(pattern, escape)
        except ValueError as error:
            raise self._error(
                _start(tokens[0]),
                f"the escape character {escape!r} stands before nothing that it can escape in {tokens[0]}",
                f"it goes before %, _ or {escape}",
            ) from error
        return Like(operand, pattern, escape, negated, **_extent(tree))

    def _named(self, tree: ParseTree, operator: str) -> MessagePart:
        operand = self._child(tree)
        if isinstance(operand, MessagePart):
            return operand
        raise self._error(operand.position, f"{operator} asks about a field or property, found {faults.name(operand)}")

    # Values

    def _arithmetic(self, tree: ParseTree) -> PredicateNode:
        left, right = map(self.build, _trees(tree))
        return Arithmetic(Operator(_token(tree, 1)), left, right, **_extent(tree))

    def _minus(self, tree: ParseTree) -> PredicateNode:
        operand = self._child(tree, 1)
        if isinstance(operand, Literal) and not isinstance(operand.value, str | bool):
            written = None if operand.written is None else operand.written.copy_negate()
            return Literal(-operand.value, operand.single, written, **_extent(tree))
        return Negate(operand, **_extent(tree))

    def _plus(self, tree: ParseTree) -> PredicateNode:
        operand = self._child(tree, 1)
        if isinstance(operand, Literal) and isinstance(operand.value, str | bool):
            raise self._error(operand.position, f"+ goes before a number, found {faults.name(operand)}")
        return operand

    def _number(self, tree: ParseTree) -> PredicateNode:
        token = _token(tree)
        number = numbers.literal(token)
        if number is None:
            raise self._error(_start(token), f"{str(token)!r} is not a number", faults.number_hint(token))
        return Literal(*number, numbers.written(token), **_extent(tree))

    def _word(self, tree: ParseTree) -> PredicateNode:
        """Reads the word after == or !=: a number if it is one without leading zeros, else TRUE, FALSE or text."""
        token = _token(tree)
        digits = token.removeprefix("-")
        number = None if digits[:1] == "0" and digits[1:].isdecimal() else numbers.literal(digits)
        if number is not None:
            (value, single), written = number, numbers.written(digits)
            if digits != token:
                value, written = -value, None if written is None else written.copy_negate()
            return Literal(value, single, written, **_extent(tree))
        if token.upper() == "NULL":
            raise self._error(_start(token), "nothing is equal to NULL", "write IS NULL, or 'NULL' for the text")
        self._refuse(token, lambda char: char in _LOOKALIKES or unicodedata.category(char)[0] in "ZC")
        return Literal(str(token), **_extent(tree))

    def _name(self, tree: ParseTree) -> PredicateNode:
        token = _token(tree)
        self._check_name(token, _start(token))
        return Identifier(str(token), **_extent(tree))

    def _header(self, tree: ParseTree) -> PredicateNode:
        token = _token(tree)
        start = _start(token) + len(_HEADER)
        name = token[len(_HEADER) :]
        for part in name.split("."):
            self._check_name(part, start)
            start += len(part) + 1
        return Identifier(SEED_NAMES.get(name, name), **_extent(tree))

    def _body(self, tree: ParseTree) -> PredicateNode:
        token = _token(tree)
        steps: list[PathStep] = []
        for step in _STEP.finditer(token, len(BODY)):
            name, quoted, index = step.groups()
            if name is not None:
                self._check_name(name, _start(token) + step.start(1))
                steps.append(name)
            elif quoted is not None:
                steps.append(quoted.replace('""', '"'))
            else:
                steps.append(None if index == "*" else self._index(index, _start(token) + step.start(3)))
        return BodyPath(tuple(steps), **_extent(tree))

    def _xpath(self, tree: ParseTree) -> PredicateNode:
        token = _token(tree)
        expression = _unquote(token)
        try:
            return parse_xpath(expression, **_extent(tree))
        except XPathError as error:
            # A doubled quote in the expression is one of its characters.
            before = expression[: error.offset].replace("'", "''")
            raise self._error(_start(token) + 1 + len(before), str(error), error.hint) from error

    def _index(self, text: str, start: int) -> int:
        if len(text) > _INDEX_CHARACTERS:
            raise self._error(start, f"no body has an element {text}")
        return int(text)

    def _quoted(self, tree: ParseTree, prefix: int) -> str:
        token = _token(tree)
        name = token[prefix + 1 : -1].replace('""', '"')
        if not name:
            raise self._error(_start(token), 'there is no name between "..."', "an empty text is ''")
        return name

    def _check_name(self, name: str, start: int) -> None:
        def foreign(offset: int, char: str) -> bool:
            return not char.isascii() and unicodedata.category(char) not in (_NAME_PART if offset else _NAME_START)

        for offset, char in enumerate(name):
            if foreign(offset, char):
                raise self._error(start + offset, *faults.character(char))

    def _refuse(self, token: Token, wrong: Callable[[str], bool]) -> None:
        for offset, char in enumerate(token):
            if wrong(char):
                raise self._error(_start(token) + offset, *faults.character(char))

    def _child(self, tree: ParseTree, index: int = 0) -> PredicateNode:
        child = tree.children[index]
        assert isinstance(child, Tree)
        return self.build(child)

    def _error(self, position: int, message: str, hint: str = "") -> PredicateError:
        return faults.error(self._text, position, message, hint)


def _trees(tree: ParseTree) -> list[ParseTree]:
    return [child for child in tree.children if isinstance(child, Tree)]


def _token(tree: ParseTree, index: int = 0) -> Token:
    token = tree.children[index]
    assert isinstance(token, Token)
    return token


def _start(token: Token) -> int:
    return token.start_pos or 0


def _extent(tree: ParseTree) -> _Extent:
    return {"position": tree.meta.start_pos, "end": tree.meta.end_pos}


def _unquote(token: str) -> str:
    return token[1:-1].replace("''", "'")
