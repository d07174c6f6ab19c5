"""Check of the paths into bodies that routes have, by the schema of a file that `in.schema` names.

Nothing is asked of a registry. Bodies that do not fit can have fields that the schema does not have, and `in.exclude`
and `IS NULL` may look for these: a name there is only doubted if it is near to one of the schema.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from engine.errors import HardFailureError
from engine.schemas.file_checks import shape_of_file
from routes.config.mask_checks import taken_fields
from routes.errors import Level
from routes.keys.secrets import has_reference
from routes.predicate import faults
from routes.predicate.bodies import body_path
from routes.predicate.doubts import Doubt, ValueSort, instead, sort_of
from routes.predicate.nodes import (
    BODY,
    Arithmetic,
    Between,
    BodyPath,
    Comparison,
    In,
    IsNull,
    Like,
    Literal,
    Logical,
    Negate,
    Not,
    Operator,
    children,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from engine.schemas.shapes import Shape
    from routes.keys.settings import Settings
    from routes.predicate.nodes import PathStep, Predicate, PredicateNode
    from routes.schema_names import SchemaName

__all__ = ["ShapeDoubts", "paths_by_schema"]

_NEAR, _SAME = 0.6, 0.8
"""Similarity (difflib's ratio) of a name that may be meant, and of one that is, where other names are allowed, too."""
_DIGITS = re.compile(r"\d+")
_MOST_SHOWN = 8
_PLURALS = {ValueSort.TEXT: "texts", ValueSort.NUMBER: "numbers"}
_INCLUDE, _EXCLUDE, _MASK = (f"routes.NAME.{key}" for key in ("in.include", "in.exclude", "out.mask"))


def paths_by_schema(settings: Settings) -> None:
    """Warns of paths that lead to nothing by the schema of a route, and of comparisons that are never true by it."""
    for name in settings.names("routes"):
        schema = settings.get("routes.NAME.in.schema", name)
        shape = _shape(schema, settings.base) if schema is not None and schema.file is not None else None
        if shape is None:
            continue
        doubted = ShapeDoubts(shape, f"the schema of route {name}")
        for key in (_INCLUDE, _EXCLUDE):
            entry, predicate = settings.entry(key, name), settings.get(key, name)
            if entry is None or predicate is None:
                continue
            for doubt, offset in doubted.of_predicate(predicate, is_exclude=key == _EXCLUDE):
                # The content of a reference must not be shown.
                if not has_reference(predicate.source(doubt.node)):
                    start, _ = predicate.span(doubt.node)
                    settings.faults.append(entry.fault(doubt.message, doubt.hint, start + offset, Level.WARNING))
        for key, path in _taken(settings, name):
            entry = settings.entry(key, name)
            found = doubted.of_path(path)
            if entry is None or found is None:
                continue
            place = re.search(rf"{re.escape(str(path))}(?![\w.\[])", entry.value)
            if place or not has_reference(entry.value):
                offset = place.start() + found.offset(place[0]) if place else 0
                settings.faults.append(entry.fault(found.message, found.hint, offset, Level.WARNING))


def _taken(settings: Settings, name: str) -> Iterator[tuple[str, BodyPath]]:
    """Yields the paths of a route outside its conditions, each after the key that has it."""
    for key, field in taken_fields(settings, name):
        if isinstance(path := body_path(field), BodyPath):
            yield key, path
    for path in settings.get(_MASK, name) or ():
        yield _MASK, path


def _shape(schema: SchemaName, base: Path) -> Shape | None:
    """Returns the shape of bodies that fit the schema of a file; None if the file cannot be used."""
    try:
        return shape_of_file(schema, base)
    except HardFailureError:
        return None  # `schema_files` refuses it.


@dataclass(frozen=True, slots=True)
class _Astray:
    """A step of a path that leads to nothing."""

    before: str
    """The path up to the step."""
    message: str
    hint: str

    def offset(self, spelled: str) -> int:
        """Returns the offset of the step in a path as it is written; 0 for one that is spelled in another way."""
        behind = len(self.before)
        return behind + (spelled[behind] == ".") if spelled.startswith(self.before) else 0


class ShapeDoubts:
    """Doubts about paths into bodies of a shape."""

    def __init__(self, shape: Shape, whose: str) -> None:
        """Creates it with the name of the schema for messages."""
        self._shape = shape
        self._whose = whose

    def of_predicate(self, predicate: Predicate, *, is_exclude: bool) -> Iterator[tuple[Doubt, int]]:
        """Yields the doubts about a predicate, each with an offset in the text of its node."""
        joined = {
            id(part) for node in walk(predicate.root) if isinstance(node, Logical | Not) for part in children(node)
        }
        conditions = joined | {id(predicate.root)}
        asked: set[int] = set()
        for node in walk(predicate.root):
            if isinstance(node, IsNull) and not node.negated:
                asked.add(id(node.operand))
            if isinstance(node, BodyPath):
                found = self.of_path(node, is_open=is_exclude or id(node) in asked)
                if found:
                    yield Doubt(node, found.message, found.hint), found.offset(predicate.source(node))
            for doubt in self._never(predicate, node, is_condition=id(node) in conditions):
                yield doubt, 0

    def of_path(self, path: BodyPath, *, is_open: bool = False) -> _Astray | None:
        """Returns the first step that leads to nothing; None if there is none.

        If `is_open`, other names are allowed everywhere.
        """
        shape = self._shape
        for number, step in enumerate(path.steps):
            before = path.steps[:number]
            found = self._stray(shape, before, step, is_open=is_open)
            if found is not None:
                return _Astray(str(BodyPath(before)), *found)
            shape = shape.field(step) if isinstance(step, str) else shape.element()
        return None

    def _stray(
        self, shape: Shape, before: tuple[PathStep, ...], step: PathStep, *, is_open: bool
    ) -> tuple[str, str] | None:
        """Returns message and hint for a step that leads to nothing; else None."""
        wanted = ValueSort.OBJECT if isinstance(step, str) else ValueSort.ARRAY
        if shape.sorts is not None and wanted not in shape.sorts:
            if is_open:
                return None
            is_array = ValueSort.ARRAY in shape.sorts
            hint = "[*] names each element, [0] the first" if is_array else f"leave {_shown((step,))} out"
            return f"{self._said(str(BodyPath(before)), shape)}, not {wanted}", hint
        if not isinstance(step, str) or step in shape.fields:
            return None
        is_closed = shape.is_closed and not is_open
        near = _near(step, shape.fields, _NEAR if is_closed else _SAME)
        if not near and not is_closed:
            return None
        names = [_shown((*before, each)) for each in shape.fields]
        more = ", …" if len(names) > _MOST_SHOWN else ""
        known = f"{', '.join(names[:_MOST_SHOWN])}{more}" if names else "no fields"
        hint = f"did you mean {_shown((*before, near))}?" if near else f"it has {known}"
        return f"{self._whose} has no {_shown((*before, step))}", hint

    def _said(self, path: str, shape: Shape) -> str:
        sorts = " or ".join(sorted(shape.sorts or ())) or "null"
        return f"{path} is {sorts} by {self._whose}"

    def _never(self, predicate: Predicate, node: PredicateNode, *, is_condition: bool) -> Iterator[Doubt]:
        """Yields the doubts about a condition that is never true, or a calculation that gives nothing."""
        match node:
            case Comparison(left=BodyPath() as path, right=other) | Comparison(left=other, right=BodyPath() as path):
                yield from self._compared(predicate, node.operator, path, other)
            case In(operand=BodyPath() as path, negated=False):
                lists = {ValueSort.TEXT: node.texts, ValueSort.NUMBER: node.numbers}
                wanted = {sort: _PLURALS[sort] for sort, each in lists.items() if each}
                yield from self._unlike(predicate, node, path, wanted, f"IN asks for {' or '.join(wanted.values())}")
            case Like(operand=BodyPath() as path, negated=False):
                yield from self._unlike(predicate, node, path, (ValueSort.TEXT,), "LIKE asks for texts")
            case Between(operand=BodyPath() as path):
                yield from self._unlike(predicate, node, path, (ValueSort.NUMBER,), "BETWEEN asks for numbers")
            case Arithmetic() | Negate():
                for part in children(node):
                    if isinstance(part, BodyPath):
                        yield from self._unlike(
                            predicate, part, part, (ValueSort.NUMBER,), "arithmetic asks for numbers"
                        )
            case BodyPath() if is_condition:
                yield from self._unlike(predicate, node, node, (ValueSort.TRUTH,), "never TRUE")

    def _compared(
        self, predicate: Predicate, operator: Operator, path: BodyPath, other: PredicateNode
    ) -> Iterator[Doubt]:
        if operator not in (Operator.EQ, Operator.NE):
            yield from self._unlike(predicate, path, path, (ValueSort.NUMBER,), f"{operator} compares numbers")
            return
        shape = self._at(path)
        sort = sort_of(other) if isinstance(other, Literal) else ValueSort.NUMBER
        if shape.sorts is None or sort in shape.sorts or not isinstance(other, Literal | Arithmetic | Negate):
            return
        hint = "compare it with another value"
        if shape.sorts & {ValueSort.OBJECT, ValueSort.ARRAY}:
            hint = "compare a value in it"
        elif isinstance(other, Literal) and len(shape.sorts) == 1:
            hint = instead(min(shape.sorts), other, predicate.source(other))
        yield Doubt(other, f"{self._said(predicate.source(path), shape)}, never {faults.name(other)}", hint)

    def _unlike(
        self, predicate: Predicate, node: PredicateNode, path: BodyPath, wanted: Iterable[ValueSort], asks: str
    ) -> Iterator[Doubt]:
        """Yields the doubt about a path whose values are of none of the sorts that a condition asks for."""
        shape = self._at(path)
        if shape.sorts is not None and shape.sorts.isdisjoint(wanted):
            message = f"{self._said(predicate.source(path), shape)}, and {asks}"
            yield Doubt(node, message, "name another value, or correct the condition")

    def _at(self, path: BodyPath) -> Shape:
        """Returns the shape of the values that a path names; any values for a path that leads to nothing."""
        shape = self._shape
        for step in path.steps:
            shape = shape.field(step) if isinstance(step, str) else shape.element()
        return shape


def _near(name: str, among: Mapping[str, object], least: float) -> str:
    """Returns the name that is most like another one; empty if none is so much like it, or has other digits alone."""
    plain = _DIGITS.sub("", name)
    names = [each for each in among if _DIGITS.sub("", each) != plain]
    same = [each for each in names if each.lower() == name.lower()]
    return next(iter(same or get_close_matches(name, names, n=1, cutoff=least)), "")


def _shown(steps: tuple[PathStep, ...]) -> str:
    """Returns a path without its beginning, as `customer.country`."""
    return str(BodyPath(steps)).removeprefix(BODY).removeprefix(".")
