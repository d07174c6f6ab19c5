"""Edits of a route to the headers of its messages, as the properties file has them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from routes.keys.header_names import FIXED, HEADER_NAME, HEADER_PATTERNS, HEADER_TEXT, header_name
from routes.keys.table import key
from routes.predicate.path_json import path_json
from routes.properties import HEADER_FIELDS
from routes.template_json import paths_of, template_parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from routes.predicate.nodes import ValuePath
    from routes.targets import Template

__all__ = ["LONGEST_TEXT", "HeaderEdits", "removal"]

T = TypeVar("T")
LONGEST_TEXT = 8192
"""Most bytes of the text that a header gets."""
_FRAMING = 32
"""More than the bytes around a name among the headers and among the types."""
_NOTHING = "(?!)"


def removal(patterns: tuple[str, ...]) -> str:
    """Returns the regular expression that all of a name has to match to be removed; Python and Java read it alike.

    A pattern with `*` does not match JMS fields and the bridge's own properties.
    """
    each = [
        f"(?!{FIXED}){'.*'.join(map(re.escape, pattern.split('*')))}" if "*" in pattern else re.escape(pattern)
        for pattern in patterns
    ]
    return "|".join(each) or _NOTHING


def _by_name(values: Mapping[str, T], *_: Any) -> tuple[tuple[str, T], ...]:
    return tuple((header_name(spelling), value) for spelling, value in values.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderEdits:
    """Edits to the headers that leave, in their order: some are removed, some are renamed, some are set."""

    removed: tuple[str, ...] = key(
        "out.remove-headers",
        HEADER_PATTERNS,
        "Headers that are removed from the route's messages: names, and patterns in which `*` stands for any text. "
        "Patterns match properties alone. All edits of headers affect the published record alone.",
        example="x-*, secret",
        made=lambda value, *_: value or (),
        value=(),
    )
    """Names, and patterns with `*` in them."""
    renamed: tuple[tuple[str, str], ...] = key(
        "out.rename-header.*",
        HEADER_NAME,
        "New name of a header that the route's messages have, which keeps value and type; it replaces a header that "
        "has the new name.",
        example="routes.NAME.out.rename-header.region=x-region",
        made=_by_name,
        value=(),
    )
    """Old and new names."""
    given: tuple[tuple[str, Template], ...] = key(
        "out.header.*",
        HEADER_TEXT,
        "Text of a header that the route's messages get: a constant, or a template as in `out.topic`, made of the "
        "message as it came. A message that lacks a value of the template, or for which the text would exceed 8 KiB, "
        "does not get the header, and loses one of the same name.",
        example="routes.NAME.out.header.x-origin=${msg.address}",
        template=True,
        made=_by_name,
        value=(),
    )
    """Names with their texts."""

    def __bool__(self) -> bool:
        return bool(self.removed or self.renamed or self.given)

    @property
    def paths(self) -> tuple[ValuePath, ...]:
        """The paths into the body under which texts are found."""
        return paths_of(template for _, template in self.given)

    @property
    def growth(self) -> int:
        """Most bytes by which the edits enlarge the headers of a message."""
        names = [new for _, new in self.renamed] + [name for name, _ in self.given]
        texts = [LONGEST_TEXT if template.references else len(str(template).encode()) for _, template in self.given]
        # A name may stand among the types, too, where each of its bytes may take three.
        return sum(_FRAMING + 4 * len(name.encode()) for name in names) + sum(texts)

    @property
    def json(self) -> str:
        """The edits as `jmsbridge.predicate.HeaderEdits` reads them."""
        paths = self.paths
        edits = {
            "removed": removal(self.removed),
            "renamed": [
                [old, new, "" if new in HEADER_FIELDS else HEADER_FIELDS.get(old)] for old, new in self.renamed
            ],
            "given": [[name, template_parts(template, paths)] for name, template in self.given],
            "paths": [path_json(path) for path in paths],
        }
        return json.dumps(edits)
