"""Rules as JSON, of which `jmsbridge.predicate.Rules` (`jvm/spark`) makes a table: lists that begin with a word."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from routes.predicate import patterns
from routes.predicate.keys import Part, Prefix, Range, Requirement, required, sufficient
from routes.predicate.nodes import (
    ADDRESS,
    Arithmetic,
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
    Negate,
    Not,
    Operator,
    Predicate,
    PredicateNode,
    ValuePath,
    XmlPath,
    repeated,
)
from routes.predicate.path_json import path_json
from routes.predicate.values import constant
from routes.properties import HEADER_FIELDS, encode_type_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["RuleTable"]


class RuleTable:
    """Rules of one table; each is added by a call of `rule` or `condition`."""

    def __init__(self) -> None:
        self.fields: list[dict[str, Any]] = []
        """The fields and properties that the rules read."""
        self.paths: list[Any] = []
        """The paths into bodies that the rules read."""
        self.asks_for_body = False
        """True if a rule reads bodies."""
        self._indexes: dict[str, int] = {}

    def json(self, rules: Sequence[Any]) -> str:
        """Returns the JSON of the table with these rules, which the table has made."""
        made = {"fields": self.fields, "paths": self.paths, "body": self.asks_for_body, "rules": rules}
        return json.dumps(made, separators=(",", ":"))

    def rule(self, include: Predicate, exclude: Predicate | None) -> dict[str, Any]:
        """Returns the JSON of a rule; without conditions if its keys alone decide."""
        keys = sufficient(include.root) if exclude is None else None
        if keys is not None:
            return {"requires": self._requirements(keys)}
        requirements = required(include.root)
        return {
            "requires": None if requirements is None else self._requirements(requirements),
            "include": self.condition(include.root),
            "exclude": exclude and self.condition(exclude.root),
        }

    def condition(self, node: PredicateNode) -> list[Any]:
        """Returns the JSON of a part that is true, false or unknown."""
        path = repeated(node)
        return self._one(node) if path is None else ["EACH", self._path(path), self._one(node)]

    def _one(self, node: PredicateNode) -> list[Any]:
        match node:
            case Logical():
                return [node.operator.value, *map(self.condition, node.operands)]
            case Not():
                return ["NOT", self.condition(node.operand)]
            case Comparison():
                return self._compare(node.operator, node.left, node.right)
            case Between(negated=False):
                above = self._compare(Operator.GE, node.operand, node.low)
                return ["AND", above, self._compare(Operator.LE, node.operand, node.high)]
            case Between():
                # The specification defines both forms; they are not each other's negation for values of unlike types.
                below = self._compare(Operator.LT, node.operand, node.low)
                return ["OR", below, self._compare(Operator.GT, node.operand, node.high)]
            case In():
                return _negated(node.negated, self._membership(node))
            case Like():
                pattern = patterns.split(node.pattern, node.escape)
                return _negated(node.negated, ["LIKE", self._operand(node.operand), pattern.regex, pattern.prefix])
            case BodyFault():
                self.asks_for_body = True
                return ["FAULT", node.format.value]
            case IsNull():
                return _negated(node.negated, ["NULL", self._operand(node.operand)])
        return self._compare(Operator.EQ, node, Literal(True))

    def _membership(self, node: In) -> list[Any]:
        equals = [self._compare(Operator.EQ, node.operand, number) for number in node.numbers]
        if node.texts or not equals:
            equals.insert(0, ["IN", self._operand(node.operand), node.texts])
        return equals[0] if len(equals) == 1 else ["OR", *equals]

    def _compare(self, sign: Operator, left: PredicateNode, right: PredicateNode) -> list[Any]:
        return [sign.name, self._operand(left), self._operand(right)]

    def _operand(self, node: PredicateNode) -> list[Any]:
        match node:
            case Identifier():
                return ["FIELD", self._index(node.name)]
            case BodyPath() | XmlPath():
                return ["ELEMENT"] if node.is_repeated else ["BODY", self._path(node)]
            case BodyText():
                self.asks_for_body = True
                return ["BODY_TEXT"]
            case Literal():
                value = constant(node)
                return [value.kind.name, value.value, *([] if value.written is None else [str(value.written)])]
            case Arithmetic():
                return [node.operator.name, self._operand(node.left), self._operand(node.right)]
            case Negate():
                return ["NEGATE", self._operand(node.operand)]
        raise AssertionError(node)

    def _requirements(self, requirements: Iterable[Requirement]) -> list[Any]:
        made = map(self._requirement, requirements)
        return list({json.dumps(each): each for each in made}.values())

    def _requirement(self, requirement: Requirement) -> list[Any]:
        match requirement:
            case Prefix(part=part, text=text):
                return ["PREFIX", self._part(part), text]
            case Range(part=part):
                # JSON has no infinite numbers; NULL is not a bound.
                bounds = (requirement.low, requirement.high)
                return ["RANGE", self._part(part), *(bound if math.isfinite(bound) else None for bound in bounds)]
        # Headers before the body, which is read only if they fit.
        return ["TEXTS", sorted(([self._part(part), text] for part, text in requirement.items()), reverse=True)]

    def _part(self, part: Part) -> int:
        """Returns the index of a field, or of a path as a negative number from -1 down."""
        return self._index(part.name) if isinstance(part, Identifier) else -1 - self._path(part)

    def _path(self, path: ValuePath) -> int:
        self.asks_for_body = True
        made = path_json(path)
        if made not in self.paths:
            self.paths.append(made)
        return self.paths.index(made)

    def _index(self, name: str) -> int:
        if name not in self._indexes:
            self._indexes[name] = len(self.fields)
            field = "JMSDestination" if name == ADDRESS else name
            self.fields.append(
                {
                    "header": f"jms.{field}",
                    "name": encode_type_name(field),
                    "type": HEADER_FIELDS.get(field),
                    "address": name == ADDRESS,
                }
            )
        return self._indexes[name]


def _negated(negated: bool, condition: list[Any]) -> list[Any]:
    return ["NOT", condition] if negated else condition
