"""Masks of values in JSON bodies, which leave all other bytes as they are.

`jmsbridge.predicate.Mask` (`jvm/spark`) masks the same bodies alike.
"""

from __future__ import annotations

import hmac
import json
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from routes.predicate.bodies import BOUNDS, BYTE_ORDER_MARK, SURROGATE, Body, Bounds
from routes.predicate.nodes import DocumentFormat
from routes.properties import encode_type_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from routes.predicate.nodes import BodyPath, PathStep

__all__ = ["UNMASKABLE", "Mask", "MaskMethod", "too_large"]

UNMASKABLE = "the mask could not be applied: "
"""Beginning of the reason why a body has no mask."""
_GROWTH = 4
"""Bytes of a masked body for each one that a body may have: digests may make it much larger."""

_STARS = '"***"'
_STRING = "string"
_TOKEN = re.compile(r'[ \t\r\n]*("(?:[^"\\]|\\.)*"|[\[\]{},:]|[^ \t\r\n\[\]{},:"]+)')


class MaskMethod(StrEnum):
    """Ways to mask a value."""

    REPLACE = "replace"
    REMOVE = "remove"
    HASH = "hash"


class _Node(NamedTuple):
    """A value of a document, by its places in the text."""

    start: int
    end: int
    members: Sequence[_Member]
    """Fields of an object, or elements of an array."""


class _Member(NamedTuple):
    """A field or element."""

    name: str | None
    """Name of the field; None for an element."""
    start: int
    value: _Node


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Mask:
    """Mask of the values under paths: a path that leads nowhere changes nothing, one to an object masks all of it."""

    paths: tuple[BodyPath, ...]
    method: MaskMethod
    secret: str | None = field(repr=False)
    """Key of the digests of `MaskMethod.HASH`."""

    def fault(self, body: bytes | None, bounds: Bounds = BOUNDS) -> str | None:
        """Returns the reason why the mask cannot be applied to a body; None if it can."""
        if self.body(body, bounds) is not None:
            return None
        return UNMASKABLE + (Body(body, bounds).fault(DocumentFormat.JSON) or too_large(bounds))

    def body(self, body: bytes | None, bounds: Bounds = BOUNDS) -> bytes | None:
        """Returns the body with its values masked; None if it cannot be read as JSON, or becomes too large."""
        if body is None or Body(body, bounds).fault(DocumentFormat.JSON) is not None:
            return None
        content = body.removeprefix(BYTE_ORDER_MARK)
        text, parts, copied = content.decode(), list[str](), 0
        for edit in self._edits(text, _read(text, 0), [path.steps for path in self.paths]):
            parts += [text[copied : edit.start], edit.text]
            copied = edit.end
        left = body[: len(body) - len(content)] + "".join((*parts, text[copied:])).encode()
        return left if len(left) <= _GROWTH * bounds.size else None

    def hidden(self, body: bytes) -> Iterator[str]:
        """Yields the values that the mask takes out of a body, which is one that can be masked; numbers as written."""
        text = body.removeprefix(BYTE_ORDER_MARK).decode()
        for edit in self._edits(text, _read(text, 0), [path.steps for path in self.paths]):
            yield from _scalars(text, _read(text, edit.start))

    def types(self, body: bytes, types: str, *, is_map: bool) -> str:
        """Returns the types of the values of a map or stream (`engine.jms_values`) that belong to the masked body.

        `body` is one that can be masked, as it was before.
        """
        size = 0 if is_map else _size(body)
        names = self.type_names
        left = []
        for index, declared in enumerate(types.split(",") if types else ()):
            name = declared.rpartition("=")[0]
            masked = name in names if is_map else index < size and self._ends_at(index, size)
            if not masked:
                left.append(declared)
            elif self.method is not MaskMethod.REMOVE:
                left.append(f"{name}={_STRING}" if is_map else _STRING)
        return ",".join(left)

    @property
    def type_names(self) -> list[str]:
        """Names of the fields of the document that paths end at, as the header of types spells them."""
        first = (path.steps[0] for path in self.paths if len(path.steps) == 1)
        return [encode_type_name(step) for step in first if isinstance(step, str)]

    def _ends_at(self, index: int, size: int) -> bool:
        return any(len(path.steps) == 1 and _leads(path.steps[0], None, index, size) for path in self.paths)

    def _edits(self, text: str, value: _Node, paths: Sequence[Sequence[PathStep]]) -> Iterator[_Edit]:
        """Yields the changes of the text, in its order; removed members go with one comma each."""
        last_end: int | None = None
        removed: tuple[int, int] | None = None
        size = len(value.members)
        for index, (name, start, member) in enumerate(value.members):
            rest = [steps[1:] for steps in paths if _leads(steps[0], name, index, size)]
            is_masked = any(not steps for steps in rest)
            if is_masked and self.method is MaskMethod.REMOVE:
                removed = (removed[0] if removed else start, member.end)
                continue
            if removed:
                yield _Edit(removed[0], start, "")
                removed = None
            if is_masked:
                yield _Edit(member.start, member.end, self._instead(text[member.start : member.end]))
            elif rest:
                yield from self._edits(text, member, rest)
            last_end = member.end
        if removed:
            yield _Edit(removed[0] if last_end is None else last_end, removed[1], "")

    def _instead(self, value: str) -> str:
        if self.method is MaskMethod.REPLACE:
            return _STARS
        content = _decoded(value) if value[0] == '"' else value
        return f'"{hmac.digest((self.secret or "").encode(), content.encode(), "sha256").hex()}"'


def too_large(bounds: Bounds) -> str:
    """Returns the reason why a mask is not applied to a body that it would enlarge beyond bounds."""
    return f"the masked body has more than {_GROWTH * bounds.size:,} bytes"


def _read(text: str, offset: int) -> _Node:
    """Returns the value that begins at a place of a valid document, or behind blanks there."""
    first, offset = _token(text, offset)
    start = offset - len(first)
    if first not in "{[":
        return _Node(start, offset, ())
    members: list[_Member] = []
    sign, end = _token(text, offset)
    while sign not in "}]":
        if first == "{":
            name, end = _token(text, offset)
            value = _read(text, _token(text, end)[1])
            members.append(_Member(_decoded(name), end - len(name), value))
        else:
            value = _read(text, offset)
            members.append(_Member(None, value.start, value))
        sign, offset = _token(text, value.end)
        end = offset
    return _Node(start, end, members)


def _scalars(text: str, value: _Node) -> Iterator[str]:
    """Yields the texts of a value, or of those in it."""
    for member in value.members:
        yield from _scalars(text, member.value)
    written = text[value.start : value.end]
    if not written.startswith(("{", "[")):
        yield _decoded(written) if written[0] == '"' else written


def _token(text: str, offset: int) -> tuple[str, int]:
    """Returns the next token, and its end."""
    match = _TOKEN.match(text, offset)
    assert match is not None
    return match[1], match.end()


def _decoded(string: str) -> str:
    """Returns the text of a JSON string; half of a character beyond 16 bits stands for nothing."""
    return SURROGATE.sub("\ufffd", json.loads(string))


def _leads(step: PathStep, name: str | None, index: int, size: int) -> bool:
    """Returns whether a step leads to a field, or to an element of an array."""
    return step == name if name is not None else step is None or step in (index, index - size)


def _size(body: bytes) -> int:
    """Returns the number of elements of a body that is an array; 0 for any other."""
    text = body.removeprefix(BYTE_ORDER_MARK).decode()
    return len(_read(text, 0).members) if _token(text, 0)[0] == "[" else 0
