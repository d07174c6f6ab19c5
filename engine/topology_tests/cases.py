"""Reads test cases of topologies from a YAML file, which docs/streams.md describes.

All faults of a file are found at once, each with its position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import UsageError
from engine.route_tests.document import SourcePosition, TestDocument
from engine.times import read_time
from engine.topologies.library.windows import milliseconds
from routes.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from engine.route_tests.document import Node

__all__ = [
    "DEFAULT_FILE",
    "REASONS",
    "ExpectedRecord",
    "ExpectedTopic",
    "InputStep",
    "Member",
    "Placed",
    "TopologyCase",
    "read_topology_cases",
]

DEFAULT_FILE = "topologies.test.yaml"
"""Name of the test file in the working directory."""
REASONS = ("reason", "node", "error")
"""Members of an expected dead letter that are texts of its headers `jmsbridge.…`."""

_CASE = ("name", "topology", "wall-clock", "input", "output", "dead-letters", "counts")
_INPUT = ("topic", "key", "key_base64", "value", "value_base64", "timestamp", "headers")
_ADVANCE, _ADVANCE_CLOCK = "advance-time", "advance-wall-clock"
_OUTPUT = ("key", "value", "timestamp", "headers")
_HELP = "jms-bridge topology test --help"

Content = Mapping[str, Any] | str | bytes | None
"""A key or a value: a mapping to be written in the form of the topic, text, bytes, or null."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A text or a number with its position in the file."""

    value: Any
    place: SourcePosition


@dataclass(frozen=True, slots=True)
class InputStep:
    """A record to be processed, or a move of stream time or of the clock."""

    topic: str | None
    """None: the clock moves on by `clock_ms` or, without it, stream time to `timestamp`."""
    place: SourcePosition
    """Position of the topic, of the time or of the duration."""
    timestamp: int
    """Milliseconds since 1970."""
    key: Content = None
    value: Content = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    clock_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """An expected part of a record, such as `key`, `value total` or `header region`."""

    name: str
    value: Any
    place: SourcePosition


@dataclass(frozen=True, slots=True)
class ExpectedRecord:
    """An expected record of a topic; parts that it does not name may be anything."""

    members: tuple[Member, ...]
    place: SourcePosition


@dataclass(frozen=True, slots=True)
class ExpectedTopic:
    """The records of a topic, all of them and in their order."""

    topic: str
    records: tuple[ExpectedRecord, ...]
    place: SourcePosition


@dataclass(frozen=True, slots=True)
class TopologyCase:
    """A test case: a topology, its input and its expected results."""

    name: str
    file: str
    line: int
    place: SourcePosition
    topology: Placed
    """The function that builds it, as `module:function`."""
    steps: tuple[InputStep, ...]
    output: tuple[ExpectedTopic, ...]
    letters: tuple[ExpectedRecord, ...]
    counts: tuple[tuple[str, str, Placed], ...]
    """Node, reason, and how many records the node did not process for this reason."""
    wall_clock_ms: int | None = None
    """Time that the clock shows at first, in milliseconds since 1970."""


def read_topology_cases(path: Path) -> tuple[TopologyCase, ...]:
    """Reads the cases in a file, in its order; ConfigurationError holds all faults of the file."""
    document = TestDocument(path, _HELP)
    cases = _TopologyReader(document).cases() if document.root is not None else ()
    if document.faults:
        raise ConfigurationError(document.faults)
    return cases


class _TopologyReader:
    """Makes test cases from the nodes of a document, and adds faults to it."""

    def __init__(self, document: TestDocument) -> None:
        self._document = document
        self._topology: Placed | None = None

    def cases(self) -> tuple[TopologyCase, ...]:
        members, nodes = self._document.tests("topology")
        if "topology" in members:
            self._topology = self._placed(members["topology"], "'topology'")
        cases = [(case, node) for number, node in enumerate(nodes, 1) if (case := self._case(node, number))]
        self._document.check_names((case.name, node) for case, node in cases)
        return tuple(case for case, _ in cases)

    def _case(self, node: Node, number: int) -> TopologyCase | None:
        before = len(self._document.faults)
        members = self._document.members(node, "a test", _CASE)
        if len(self._document.faults) > before:
            return None
        topology = self._placed(members["topology"], "'topology'") if "topology" in members else self._topology
        if topology is None:
            self._document.fault(
                node, "the test has no 'topology'", "name it at the top of the file: topology: MODULE:FUNCTION"
            )
            return None
        if "input" not in members:
            self._document.fault(node, "the test has no 'input'")
            return None
        if not members.keys() & {"output", "dead-letters", "counts"}:
            self._document.fault(node, "the test expects nothing", "add 'output', 'dead-letters' or 'counts'")
            return None
        name = self._document.text(members["name"], "'name'") if "name" in members else None
        place = self._document.place(node)
        return TopologyCase(
            name or f"test {number}",
            str(self._document.path),
            place.line,
            place,
            topology,
            tuple(self._step(each) for each in self._document.items(members["input"], "'input'")),
            self._output(members["output"]) if "output" in members else (),
            self._records(members["dead-letters"], "'dead-letters'", REASONS) if "dead-letters" in members else (),
            self._counts(members["counts"]) if "counts" in members else (),
            self._time(members["wall-clock"]) if "wall-clock" in members else None,
        )

    def _step(self, node: Node) -> InputStep:
        members = self._document.members(node, "a record of 'input'", (*_INPUT, _ADVANCE, _ADVANCE_CLOCK))
        for move in (_ADVANCE, _ADVANCE_CLOCK):
            if move not in members:
                continue
            for other in (each for each in members if each != move):
                self._document.fault(members[other], f"'{other}' belongs to a record, not to '{move}'")
            by = members[move]
            place = self._document.place(by)
            if move == _ADVANCE:
                return InputStep(None, place, self._time(by))
            return InputStep(None, place, 0, clock_ms=self._duration(by))
        topic = self._document.text(members["topic"], "'topic'") if "topic" in members else None
        if topic is None:
            self._document.fault(node, "the record has no 'topic'")
        return InputStep(
            topic or "",
            self._document.place(members.get("topic", node)),
            self._time(members["timestamp"]) if "timestamp" in members else 0,
            self._content(members, "key"),
            self._content(members, "value"),
            self._headers(members["headers"]) if "headers" in members else (),
        )

    def _content(self, members: Mapping[str, Node], name: str) -> Content:
        encoded = f"{name}_base64"
        if encoded in members:
            if name in members:
                self._document.fault(members[encoded], f"the record has a '{name}' already")
            node = members[encoded]
            return self._document.from_base64(node, self._document.text(node, f"'{encoded}'") or "")
        if name not in members:
            return None
        node = members[name]
        if self._document.is_scalar(node):
            return self._document.text(node, f"'{name}'")
        tree = self._document.tree(node, f"'{name}'")
        if not isinstance(tree, dict):
            self._document.fault(node, f"'{name}' has to be a mapping, or text")
            return None
        return tree

    def _headers(self, node: Node) -> tuple[tuple[str, bytes | None], ...]:
        headers = []
        for name, value in self._document.members(node, "'headers'").items():
            given = self._document.header(value, f"'{name}'")
            headers.append((name, given.encode() if isinstance(given, str) else given))
        return tuple(headers)

    def _time(self, node: Node) -> int:
        try:
            return read_time(self._document.text(node, "a time") or "")
        except UsageError as error:
            self._document.fault(node, str(error))
            return 0

    def _duration(self, node: Node) -> int:
        try:
            return milliseconds(self._document.text(node, "a duration") or "")
        except ValueError as error:
            self._document.fault(node, str(error))
            return 0

    def _output(self, node: Node) -> tuple[ExpectedTopic, ...]:
        return tuple(
            ExpectedTopic(topic, self._records(records, f"'{topic}'"), self._document.place(records))
            for topic, records in self._document.members(node, "'output'").items()
        )

    def _records(self, node: Node, what: str, more: tuple[str, ...] = ()) -> tuple[ExpectedRecord, ...]:
        return tuple(self._record(each, what, more) for each in self._document.items(node, what))

    def _record(self, node: Node, what: str, more: tuple[str, ...]) -> ExpectedRecord:
        members: list[Member] = []
        for name, value in self._document.members(node, f"a record of {what}", (*_OUTPUT, *more)).items():
            place = self._document.place(value)
            if name == "timestamp":
                members.append(Member(name, self._time(value), place))
            elif name == "headers":
                headers = self._document.members(value, "'headers'").items()
                members += [
                    Member(f"header {each}", self._document.header(content, f"'{each}'"), self._document.place(content))
                    for each, content in headers
                ]
            elif name == "value" and self._document.is_mapping(value):
                fields = self._document.members(value, "'value'").items()
                members += [
                    Member(f"value {field}", self._document.tree(content, f"'{field}'"), self._document.place(content))
                    for field, content in fields
                ]
            elif self._document.is_scalar(value):
                members.append(Member(name, self._document.text(value, f"'{name}'"), place))
            else:
                members.append(Member(name, self._document.tree(value, f"'{name}'"), place))
        return ExpectedRecord(tuple(members), self._document.place(node))

    def _counts(self, node: Node) -> tuple[tuple[str, str, Placed], ...]:
        return tuple(
            (name, reason, self._number(number, f"'{reason}'"))
            for name, reasons in self._document.members(node, "'counts'").items()
            for reason, number in self._document.members(reasons, f"'{name}'").items()
        )

    def _number(self, node: Node, what: str) -> Placed:
        number = self._document.scalar(node, what)
        if not isinstance(number, int) or isinstance(number, bool):
            self._document.fault(node, f"{what} has to be a whole number")
        return Placed(number, self._document.place(node))

    def _placed(self, node: Node, what: str) -> Placed | None:
        text = self._document.text(node, what)
        return None if text is None else Placed(text, self._document.place(node))
