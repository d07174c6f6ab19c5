"""A YAML file as nodes with positions, and the faults found in it.

Values follow YAML 1.2: `no`, `on` and `1:30` are text, `true` is a boolean. The meaning of the file is
in `cases`.
"""

from __future__ import annotations

import base64
import binascii
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from routes.errors import Fault

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

__all__ = ["Node", "Scalar", "SourcePosition", "TestDocument"]

Scalar = str | bool | int | float | None

_MAX_BYTES = 1024 * 1024
_MOST_VALUES = 10_000
"""Limit of values in one tree, because an alias may stand for any number of them."""
_CORE = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
)
"""Tags of scalars: YAML 1.2.2, 10.3.2, without octal and hexadecimal numbers."""


class _Loader(yaml.SafeLoader):
    """Loader that reads scalars as YAML 1.2 does; the library's own rules are those of YAML 1.1."""


_Loader.yaml_implicit_resolvers = {}
for _name, _pattern, _first in _CORE:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", re.compile(f"^(?:{_pattern})$"), _first)


class SourcePosition(NamedTuple):
    """Position of a node in the file, line and column counted from 1, with the text of its line."""

    line: int
    column: int
    excerpt: str


class TestDocument:
    """A file that was read: its root node, and the faults found by this class and its callers."""

    def __init__(self, path: Path, help_hint: str = "jms-bridge test --help") -> None:
        """Reads the file; never raises for its content: if it is invalid, `root` is None and there is a fault.

        `help_hint` is the hint for a file that cannot be read.
        """
        self.path = path
        self.faults: list[Fault] = []
        self.root: Node | None = None
        self._lines: list[str] = []
        try:
            with path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
        except OSError as error:
            self._fail(f"the file cannot be read: {(error.strerror or str(error)).lower()}", help_hint)
            return
        if len(data) > _MAX_BYTES:
            self._fail(f"the file has more than {_MAX_BYTES >> 20} MiB", "spread the tests over several files")
            return
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            self._fail("the file is not UTF-8", "save it as UTF-8")
            return
        self._lines = text.splitlines()
        try:
            self.root = _Loader(text).get_single_node()
        except yaml.MarkedYAMLError as error:
            self._not_yaml(error)
        except yaml.YAMLError as error:
            self._fail(f"the file is not YAML: {' '.join(str(error).split())}")
        except RecursionError:
            self._fail("the file is nested too deeply")
        if self.root is None and not self.faults:
            self._fail("the file is empty", "start with 'tests:'")

    def fault(self, node: Node, message: str, hint: str = "") -> None:
        """Adds a fault at a node."""
        line, column, excerpt = self.place(node)
        self.faults.append(Fault(message, hint, str(self.path), line, column, excerpt))

    def place(self, node: Node) -> SourcePosition:
        """The position of a node."""
        line, column = node.start_mark.line, node.start_mark.column
        return SourcePosition(line + 1, column + 1, self._lines[line] if line < len(self._lines) else "")

    @staticmethod
    def is_mapping(node: Node) -> bool:
        """True if the node is a mapping."""
        return isinstance(node, MappingNode)

    @staticmethod
    def is_scalar(node: Node) -> bool:
        """True if the node is a scalar."""
        return isinstance(node, ScalarNode)

    def members(self, node: Node, what: str, known: Collection[str] | None = None) -> dict[str, Node]:
        """The members of a mapping; adds a fault for each unknown or repeated one, or if the node is not a mapping."""
        if not isinstance(node, MappingNode):
            self.fault(node, f"{what} has to be a mapping", "NAME: VALUE, one on each line")
            return {}
        found: dict[str, Node] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, ScalarNode) else ""
            if not name:
                self.fault(key, f"a name in {what} has to be text")
            elif known is not None and name not in known:
                near = get_close_matches(name, known, n=1)
                hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(known)}"
                self.fault(key, f"unknown key '{name}' in {what}", hint)
            elif name in found:
                self.fault(key, f"'{name}' stands twice in {what}", "remove one of them")
            else:
                found[name] = value
        return found

    def items(self, node: Node, what: str) -> list[Node]:
        """The items of a list; adds a fault if the node is not a list."""
        if isinstance(node, SequenceNode):
            return list(node.value)
        self.fault(node, f"{what} has to be a list", "each item after '- '")
        return []

    def text(self, node: Node, what: str) -> str | None:
        """A scalar as it is written, also a number; None for null, and, with a fault, for any other node."""
        if not isinstance(node, ScalarNode):
            self.fault(node, f"{what} has to be text")
            return None
        return None if node.tag.endswith(":null") else str(node.value)

    def scalar(self, node: Node, what: str) -> Scalar:
        """A scalar as text, boolean, integer, float or None."""
        text = self.text(node, what)
        if text is None:
            return None
        match node.tag.rpartition(":")[2]:
            case "bool":
                return text.lower() == "true"
            case "int" if len(text) <= 20:
                return int(text)
            case "int":
                self.fault(node, f"{what} is too large a number")
                return None
            case "float":
                return float(text.replace(".", "", 1) if text.strip("+-")[1:2].isalpha() else text)
        return text

    def header(self, node: Node, what: str) -> str | bytes | None:
        """A header's value: text, bytes from `{base64: …}`, or None for null."""
        if not self.is_mapping(node):
            return self.text(node, what)
        members = self.members(node, what, ("base64",))
        if "base64" not in members:
            return None
        return self.from_base64(members["base64"], self.text(members["base64"], "'base64'") or "")

    def from_base64(self, node: Node, text: str) -> bytes:
        """The bytes that a text in base64 stands for; adds a fault for any other text."""
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except (binascii.Error, ValueError):
            self.fault(node, "the text is not base64")
            return b""

    def tests(self, *beside: str) -> tuple[dict[str, Node], list[Node]]:
        """The members of the root, which are 'tests' and these `beside` it, and the items of 'tests'."""
        assert self.root is not None, "there is nothing to read otherwise"
        members = self.members(self.root, "the file", (*beside, "tests"))
        if "tests" not in members:
            if not self.faults:
                self.fault(self.root, "there are no tests", "start with 'tests:'")
            return members, []
        return members, self.items(members["tests"], "'tests'")

    def check_names(self, named: Iterable[tuple[str, Node]]) -> None:
        """Adds a fault for each test that has the name of one before it."""
        lines: dict[str, int] = {}
        for name, node in named:
            line = self.place(node).line
            if (first := lines.setdefault(name, line)) != line:
                self.fault(node, f"the test in line {first} is also called '{name}'", "rename one")

    def tree(self, node: Node, what: str) -> object:
        """Any value with all values in it, as JSON has them."""
        return _Tree(self, what).value(node, ())

    def _fail(self, message: str, hint: str = "") -> None:
        self.faults.append(Fault(message, hint, str(self.path)))

    def _not_yaml(self, error: yaml.MarkedYAMLError) -> None:
        what = f"the file is not YAML: {error.problem or error.context}"
        mark = error.problem_mark or error.context_mark
        if mark is None:
            self._fail(what)
        else:
            self.fault(ScalarNode("", "", mark, mark), what)


class _Tree:
    """Turns nodes into values; adds a fault if aliases make a value endless or huge."""

    def __init__(self, document: TestDocument, what: str) -> None:
        self._document = document
        self._what = what
        self._left = _MOST_VALUES

    def value(self, node: Node, above: tuple[Node, ...]) -> object:
        self._left -= 1
        if self._left == 0 or node in above or len(above) > 100:
            self._document.fault(node, f"{self._what} is too large, nested too deeply, or contains itself")
        if self._left <= 0 or node in above or len(above) > 100:
            return None
        if isinstance(node, SequenceNode):
            return [self.value(item, (*above, node)) for item in node.value]
        if isinstance(node, MappingNode):
            members = self._document.members(node, self._what)
            return {name: self.value(value, (*above, node)) for name, value in members.items()}
        return self._document.scalar(node, self._what)
