"""Checks that the parts of a predicate fit together: conditions are joined, values compared, numbers calculated with.

Only contradictions in the text itself are faults: a property may hold anything, and a comparison of unlike types is
false.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from routes.predicate import faults, numbers
from routes.predicate.nodes import (
    ADDRESS,
    Arithmetic,
    Between,
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
    PredicateNode,
    ValuePath,
    XmlPath,
    children,
    walk,
)
from routes.properties import HEADER_FIELDS, JmsType

if TYPE_CHECKING:
    from routes.errors import PredicateError

__all__ = ["MAX_OPERATORS", "check"]

MAX_OPERATORS = 10
"""Greatest number of arithmetic operators in one comparison. The types that meet in it depend on the message, and code
for all their combinations grows with the cube of their number."""


def check(text: str, root: PredicateNode) -> None:
    """Raises PredicateError for the first part, in the order of the text, that may not stand at its place."""
    _Check(text).all(root)


class _Check:
    def __init__(self, text: str) -> None:
        self._text = text

    def all(self, root: PredicateNode) -> None:
        self._condition(root, "a predicate is a condition")
        for node in walk(root):
            self._one(node)

    def _one(self, node: PredicateNode) -> None:
        match node:
            case Logical() | Not():
                rule = "NOT goes before a condition" if isinstance(node, Not) else f"{node.operator} joins conditions"
                for operand in children(node):
                    self._condition(operand, rule)
            case Comparison():
                self._size(node)
                self._comparison(node)
                self._elements(node)
            case In(operand=XmlPath() | BodyText() as value) | Like(operand=XmlPath() | BodyText() as value):
                self._constants(value, node)
            case Between() | Arithmetic() | Negate():
                if isinstance(node, Between):
                    self._size(node)
                    self._elements(node)
                for operand in children(node):
                    self._number(operand, _calculates(node))
            case Literal(value=int() as value) if not numbers.fits(value):
                raise self._error(node, f"the number {self._source(node)} does not fit 64 bits", faults.RANGE_HINT)

    def _elements(self, node: PredicateNode) -> None:
        paths = dict.fromkeys(part for part in walk(node) if isinstance(part, ValuePath) and part.is_repeated)
        for path in [*paths][1:]:
            message = "a comparison has one path that names several values, which it looks at one by one"
            raise self._error(path, message, "name one with a position, as [0] in JSON or [1] in XML")

    def _size(self, node: Comparison | Between) -> None:
        operators = [part for part in walk(node) if isinstance(part, Arithmetic | Negate)]
        if len(operators) > MAX_OPERATORS:
            message = f"a comparison calculates with more than {MAX_OPERATORS} operators"
            raise self._error(operators[MAX_OPERATORS], message, "let the sender put the result in a property")

    def _condition(self, node: PredicateNode, rule: str) -> None:
        if isinstance(node, XmlPath | BodyText):
            what = "number" if isinstance(node, XmlPath) and node.is_number else "text"
            raise self._error(node, f"{rule}, found the {what} {node}", "compare it, or ask IS NOT NULL")
        if isinstance(node, Arithmetic | Negate) or (isinstance(node, Literal) and not isinstance(node.value, bool)):
            raise self._error(node, f"{rule}, found {faults.name(node)}", faults.condition_hint(node))

    def _constant(self, value: PredicateNode, other: PredicateNode) -> None:
        """Checks the constant that XML or the text of the body is compared with: a text, a number for `number(…)`."""
        if not (isinstance(value, XmlPath | BodyText) and isinstance(other, Literal)):
            return
        is_number = isinstance(value, XmlPath) and value.is_number
        if not is_number and not isinstance(other.value, str):
            raise self._error(other, f"{value} is text, never {faults.name(other)}", _instead_of_text(value))
        if is_number and isinstance(other.value, str | bool):
            raise self._error(other, f"{value} is a number, never {faults.name(other)}", "leave out number()")

    def _constants(self, value: XmlPath | BodyText, node: In | Like) -> None:
        if isinstance(value, XmlPath) and value.is_number and (isinstance(node, Like) or node.texts):
            word = type(node).__name__.upper()
            raise self._error(value, f"{word} asks for texts, and {value} is a number", "leave out number()")
        for number in node.numbers if isinstance(node, In) else ():
            self._constant(value, number)

    def _number(self, node: PredicateNode, rule: str) -> None:
        if isinstance(node, BodyText) or (isinstance(node, XmlPath) and not node.is_number):
            raise self._error(node, f"{rule}, found the text {node}", _instead_of_text(node))
        if _is_condition(node) or (isinstance(node, Literal) and isinstance(node.value, str | bool)):
            raise self._error(node, f"{rule}, found {faults.name(node)}", faults.number_operand_hint(node))

    def _comparison(self, node: Comparison) -> None:
        for operand in (node.left, node.right):
            if _is_condition(operand):
                hint = "join conditions with AND or OR"
                raise self._error(operand, f"{node.operator} compares values, found {faults.name(operand)}", hint)
            if node.operator not in (Operator.EQ, Operator.NE):
                self._number(operand, f"{node.operator} compares numbers")
        for left, right in ((node.left, node.right), (node.right, node.left)):
            self._constant(left, right)
            if isinstance(right, Arithmetic | Negate) and self._is_text(left):
                rule = f"{self._source(left)} is text, and {self._source(right)} calculates a number"
                raise self._error(right, rule, faults.dash_hint(self._source(right)))

    def _is_text(self, node: PredicateNode) -> bool:
        match node:
            case Literal(value=str()) | BodyText() | XmlPath(is_number=False):
                return True
            case Identifier(name=name):
                return name == ADDRESS or HEADER_FIELDS.get(name) is JmsType.STRING
        return False

    def _source(self, node: PredicateNode) -> str:
        return self._text[node.position : node.end]

    def _error(self, node: PredicateNode, message: str, hint: str = "") -> PredicateError:
        return faults.error(self._text, node.position, message, hint)


def _is_condition(node: PredicateNode) -> bool:
    return isinstance(node, Logical | Not | Comparison | Between | In | Like | IsNull)


def _instead_of_text(value: XmlPath | BodyText) -> str:
    if isinstance(value, BodyText):
        return "compare it with a text in single quotes"
    return f"write {replace(value, is_number=True)} for the number"


def _calculates(node: Between | Arithmetic | Negate) -> str:
    match node:
        case Between():
            return "BETWEEN compares numbers"
        case Arithmetic():
            return f"{node.operator} calculates with numbers"
    return "- goes before a number"
