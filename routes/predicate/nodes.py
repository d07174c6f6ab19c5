"""The syntax tree of a predicate: frozen values, each with its place in the text.

`parser` makes the tree, `evaluate` computes it for one message, `columns` compiles it for Spark. The meaning of the
nodes is in docs/routing-language.md and in those two modules; this module has only their shape.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "ADDRESS",
    "BODY",
    "PATHS",
    "Arithmetic",
    "Between",
    "BodyFault",
    "BodyPath",
    "BodyText",
    "Comparison",
    "DocumentFormat",
    "Identifier",
    "In",
    "IsNull",
    "Like",
    "Literal",
    "Logical",
    "MessagePart",
    "Negate",
    "Not",
    "Operator",
    "PathStep",
    "Predicate",
    "PredicateNode",
    "ValuePath",
    "XmlPath",
    "XmlStep",
    "asks_for_body",
    "children",
    "identifiers",
    "repeated",
    "walk",
]

BODY = "msg.body"
"""Beginning of every path into a body."""
PATHS = (BODY, "xpath(")
"""Beginnings of the texts that are paths into a body where names of headers may stand, too."""
ADDRESS = "msg.address"
"""Name of the identifier that stands for the destination without its `queue:` or `topic:`."""


class DocumentFormat(StrEnum):
    """Formats of bodies that paths lead into."""

    JSON = "json"
    XML = "xml"
    AVRO = "avro"
    PROTOBUF = "protobuf"

    @property
    def has_schema(self) -> bool:
        """True if bodies of the format are read by a schema, which a registry has."""
        return self in (DocumentFormat.AVRO, DocumentFormat.PROTOBUF)


class Operator(StrEnum):
    """Operators of comparisons, arithmetic and logic."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    AND = "AND"
    OR = "OR"


@dataclass(frozen=True, slots=True)
class PredicateNode:
    """Base of all parts of a predicate. Nodes compare by content, not by place."""

    position: int = field(default=0, compare=False, kw_only=True)
    """Offset of the node's first character in the predicate's text, from 0."""
    end: int = field(default=0, compare=False, kw_only=True)
    """Offset after the node's last character."""


@dataclass(frozen=True, slots=True)
class Literal(PredicateNode):
    """A constant: text, a boolean, an exact number (64 bits) or an approximate one."""

    value: str | bool | int | float
    single: bool = False
    """True if it is an approximate number of single precision (`1.5f`); `value` is rounded to it already."""
    written: Decimal | None = field(default=None, compare=False)
    """The number as it is written, if `value` is a double that may only approximate it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._said == other._said

    def __hash__(self) -> int:
        return hash(self._said)

    @property
    def _said(self) -> tuple[object, ...]:
        # Python takes 1, 1.0 and True for equal; a predicate does not.
        return (type(self.value), self.value, self.single)


@dataclass(frozen=True, slots=True)
class Identifier(PredicateNode):
    """A JMS field by its JMS name, a property by its own, or `ADDRESS`."""

    name: str


PathStep = str | int | None
"""Step of a path: the name of a field, the index of an element (-1: the last), or None for each element."""


@dataclass(frozen=True, slots=True)
class BodyPath(PredicateNode):
    """A path into the body, as `msg.body.lines[*].amount`; without steps the whole document."""

    steps: tuple[PathStep, ...]

    def __str__(self) -> str:
        return BODY + "".join(map(_spelled, self.steps))

    @property
    def is_repeated(self) -> bool:
        """True if the path may name several values."""
        return None in self.steps


@dataclass(frozen=True, slots=True)
class XmlStep:
    """Step to the child elements of a local name: to all, or to the one at `position` (from 1; -1: the last)."""

    name: str
    position: int | None = None

    def __str__(self) -> str:
        place = {None: "", -1: "[last()]"}.get(self.position, f"[{self.position}]")
        return f"/{self.name}{place}"


@dataclass(frozen=True, slots=True)
class XmlPath(PredicateNode):
    """A path into an XML body, as `xpath('/order/line[1]/@id')`."""

    steps: tuple[XmlStep, ...]
    """Steps from the document, the root element first."""
    attribute: str | None = None
    """Local name of the attribute whose value is meant; None: the text of the element."""
    is_own_text: bool = False
    """True if the text of elements in the element does not count: `text()`."""
    is_number: bool = False
    """True if the text is read as a number: `number(…)`."""

    def __str__(self) -> str:
        end = "" if self.attribute is None else f"/@{self.attribute}"
        path = "".join(map(str, self.steps)) + end + "/text()" * self.is_own_text
        return f"xpath('number({path})')" if self.is_number else f"xpath('{path}')"

    @property
    def is_repeated(self) -> bool:
        """True if the path may name several values."""
        return any(step.position is None for step in self.steps[1:])


@dataclass(frozen=True, slots=True)
class BodyText(PredicateNode):
    """The whole body as text."""

    def __str__(self) -> str:
        return "msg.text"


ValuePath = BodyPath | XmlPath
"""Paths to values in a body."""

MessagePart = Identifier | ValuePath | BodyText
"""Parts of a predicate whose values are those of the message."""


@dataclass(frozen=True, slots=True)
class Negate(PredicateNode):
    """Unary minus."""

    operand: PredicateNode


@dataclass(frozen=True, slots=True)
class Arithmetic(PredicateNode):
    """`left + right`, with `-`, `*` and `/`."""

    operator: Operator
    left: PredicateNode
    right: PredicateNode


@dataclass(frozen=True, slots=True)
class Comparison(PredicateNode):
    """`left = right`, with `<>`, `<`, `<=`, `>` and `>=`."""

    operator: Operator
    left: PredicateNode
    right: PredicateNode


@dataclass(frozen=True, slots=True)
class Between(PredicateNode):
    """`operand BETWEEN low AND high`."""

    operand: PredicateNode
    low: PredicateNode
    high: PredicateNode
    negated: bool = False


@dataclass(frozen=True, slots=True)
class In(PredicateNode):
    """`operand IN ('a', 'b', 5)`."""

    operand: MessagePart
    texts: tuple[str, ...]
    negated: bool = False
    numbers: tuple[Literal, ...] = ()


@dataclass(frozen=True, slots=True)
class Like(PredicateNode):
    """`operand LIKE 'pattern' ESCAPE 'c'`."""

    operand: MessagePart
    pattern: str
    escape: str | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull(PredicateNode):
    """`operand IS NULL`."""

    operand: MessagePart
    negated: bool = False


@dataclass(frozen=True, slots=True)
class BodyFault(PredicateNode):
    """A condition that is true for a body which cannot be read as a format; no predicate spells it."""

    format: DocumentFormat


@dataclass(frozen=True, slots=True)
class Not(PredicateNode):
    """Logical negation."""

    operand: PredicateNode


@dataclass(frozen=True, slots=True)
class Logical(PredicateNode):
    """`a AND b AND …` or `a OR b OR …`, two operands or more, flattened."""

    operator: Operator
    operands: tuple[PredicateNode, ...]


@dataclass(frozen=True, slots=True)
class Predicate:
    """A whole predicate: the text as written and its tree."""

    text: str = field(compare=False)
    """Text as it stands in its file: references to the environment or a file stay references."""
    root: PredicateNode = field(repr=False)
    origins: tuple[int, ...] = field(default=(), compare=False, repr=False)
    """Offset in `text` of each character that was parsed, and of the end. Empty: `text` itself was parsed."""

    def __str__(self) -> str:
        return self.text

    def span(self, node: PredicateNode) -> tuple[int, int]:
        """Returns start and end of a node in `text`; a node that comes from a reference spans all of the reference."""
        if not self.origins:
            return node.position, node.end
        after = bisect_right(self.origins, self.origins[node.end - 1])
        return self.origins[node.position], self.origins[after]

    def source(self, node: PredicateNode) -> str:
        """Returns a node as it is written in `text`."""
        start, end = self.span(node)
        return self.text[start:end]


def children(node: PredicateNode) -> tuple[PredicateNode, ...]:
    """Returns the parts of a node, in the order they are written."""
    match node:
        case Logical():
            return node.operands
        case Comparison() | Arithmetic():
            return (node.left, node.right)
        case Between():
            return (node.operand, node.low, node.high)
        case In():
            return (node.operand, *node.numbers)
        case Not() | Negate() | Like() | IsNull():
            return (node.operand,)
    return ()


def walk(node: PredicateNode) -> Iterator[PredicateNode]:
    """Yields the node and all below it, each before its parts; without recursion."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(children(node)))


def identifiers(predicate: Predicate) -> frozenset[str]:
    """Returns the names of all fields and properties in the predicate, `ADDRESS` among them."""
    return frozenset(node.name for node in walk(predicate.root) if isinstance(node, Identifier))


def repeated(node: PredicateNode) -> ValuePath | None:
    """Returns the path of a condition that may name several values; None if there is none, or for joined conditions."""
    if isinstance(node, Logical | Not):
        return None
    paths = (part for part in walk(node) if isinstance(part, ValuePath) and part.is_repeated)
    return next(paths, None)


def asks_for_body(node: PredicateNode) -> bool:
    """Returns whether a part of a predicate reads the body of a message."""
    return any(isinstance(part, ValuePath | BodyText | BodyFault) for part in walk(node))


def _spelled(step: PathStep) -> str:
    if isinstance(step, str):
        quoted = step.replace('"', '""')
        return f".{step}" if step.isascii() and step.isidentifier() else f'."{quoted}"'
    return "[*]" if step is None else f"[{step}]"
