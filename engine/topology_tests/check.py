"""Runs test cases of topologies in TopologyTestDrivers of one session, and compares the results with those expected."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from engine.errors import UsageError
from engine.printable import json_text
from engine.route_tests.cases import Expected
from engine.route_tests.check import Difference
from engine.spark.shared_session import SharedSession
from engine.topologies.library.driver import Output, TopologyTestDriver
from engine.topologies.library.nodes import SinkNode
from engine.topologies.library.topology import TopologyError
from engine.topologies.runtime.definition import find, read
from engine.topology_tests.cases import REASONS, ExpectedTopic
from routes.errors import ConfigurationError, Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from engine.route_tests.document import SourcePosition
    from engine.topologies.library.topology import Topology
    from engine.topology_tests.cases import ExpectedRecord, InputStep, Member, TopologyCase

__all__ = ["TopologyResult", "check_cases"]

_NO_RECORD = "no record"
_AS_WRITTEN = ("key", "value", *REASONS)


@dataclass(frozen=True, slots=True)
class TopologyResult:
    """Result of a test case."""

    case: TopologyCase
    differences: tuple[Difference, ...]

    @property
    def passed(self) -> bool:
        """True if all expectations are met."""
        return not self.differences


def check_cases(cases: Sequence[TopologyCase]) -> Iterator[TopologyResult]:
    """The results of cases, each as soon as it is there.

    Raises:
        ConfigurationError: before any case runs, for topologies that cannot be loaded and topics that they do not have;
            later for a record that its topic cannot have, and for a topology that cannot be planned.
        SetupError: no session can be opened.
    """
    first = {case.topology.value: case for case in reversed(cases)}
    _raise(fault for case in first.values() for fault in _faults_of(case, find))
    share = SharedSession()
    try:
        topologies: dict[str, Topology] = {}
        _raise(
            fault
            for name, case in first.items()
            for fault in _faults_of(case, lambda name: topologies.update({name: read(name)}))
        )
        _raise(fault for case in cases for fault in _topic_faults(case, topologies[case.topology.value]))
        for case in cases:
            topology = topologies[case.topology.value]
            with TopologyTestDriver(topology, share.spark, wall_clock_ms=case.wall_clock_ms) as driver:
                yield TopologyResult(case, tuple(_differences(case, driver)))
    finally:
        share.close()


def _raise(faults: Iterable[Fault]) -> None:
    if listed := list(faults):
        raise ConfigurationError(listed)


def _fault(case: TopologyCase, place: SourcePosition, message: str, hint: str = "") -> Fault:
    return Fault(message, hint, case.file, place.line, place.column, place.excerpt)


def _faults_of(case: TopologyCase, load: Callable[[str], object]) -> Iterator[Fault]:
    """Faults that loading the topology of a case has."""
    try:
        load(case.topology.value)
    except TopologyError as error:
        for text in error.faults:
            yield _fault(case, case.topology.place, text)
    except UsageError as error:
        yield _fault(case, case.topology.place, str(error))


def _topic_faults(case: TopologyCase, topology: Topology) -> Iterator[Fault]:
    """Faults for topics that the topology does not read, or does not write."""
    read_topics = [source.topic for source in topology.sources]
    for step in case.steps:
        if step.topic is not None and step.topic not in read_topics:
            yield _fault(case, step.place, f"the topology does not read {step.topic}", _near(step.topic, read_topics))
    letters = f"{topology.name}-dead-letters"
    chosen = any(
        isinstance(node, SinkNode) and not isinstance(node.topic, str) and not node.choices for node in topology.nodes
    )
    for topic in case.output:
        if topic.topic == letters:
            yield _fault(case, topic.place, f"{letters} is not an output here", "expect its records in 'dead-letters'")
        elif topic.topic not in topology.outputs and not chosen:
            hint = _near(topic.topic, topology.outputs)
            yield _fault(case, topic.place, f"the topology does not write {topic.topic}", hint)


def _near(topic: str, known: Collection[str]) -> str:
    near = get_close_matches(topic, known, n=1)
    return f"did you mean '{near[0]}'?" if near else f"it has {', '.join(known) or 'none'}"


def _differences(case: TopologyCase, driver: TopologyTestDriver) -> Iterator[Difference]:
    for step in case.steps:
        _process(case, step, driver)
    for topic in case.output:
        yield from _compared(topic, driver.read_output(topic.topic))
    letters = ExpectedTopic("dead letters", case.letters, case.place)
    yield from _compared(letters, [_letter(each) for each in driver.rejected()])
    counts = driver.counts()
    for node, reason, number in case.counts:
        if (actual := counts.get((node, reason), 0)) != number.value:
            yield _difference(f"counts of {node}, {reason}", number.value, actual, number.place)


def _process(case: TopologyCase, step: InputStep, driver: TopologyTestDriver) -> None:
    """Processes a step; ConfigurationError at the place of the obstacle: the step, or the topology."""
    try:
        driver.counts()
    except TopologyError as error:
        raise ConfigurationError([_fault(case, case.topology.place, text) for text in error.faults]) from error
    try:
        if step.clock_ms is not None:
            driver.advance_wall_clock(timedelta(milliseconds=step.clock_ms))
        elif step.topic is None:
            driver.advance_time(step.timestamp)
        else:
            driver.pipe_input(step.topic, step.key, step.value, step.timestamp, step.headers)
    except TopologyError as error:
        raise ConfigurationError([_fault(case, step.place, text) for text in error.faults]) from error


def _letter(record: Output) -> dict[str, Any]:
    """The parts of a dead letter by their names, with the reasons from its headers."""
    parts = _parts(record)
    return parts | {name: parts.get(f"header jmsbridge.{name}") for name in REASONS}


def _parts(record: Output) -> dict[str, Any]:
    """The parts of a published record by the names of `Member`."""
    parts = {"key": record.key, "value": record.value, "timestamp": record.timestamp}
    if isinstance(record.value, dict):
        parts |= {f"value {name}": value for name, value in record.value.items()}
    return parts | {f"header {name}": _text(value) for name, value in record.headers}


def _compared(topic: ExpectedTopic, published: Sequence[Output | dict[str, Any]]) -> Iterator[Difference]:
    """Differences between the expected records of a topic and those that it has."""
    records = [_parts(each) if isinstance(each, Output) else each for each in published]
    for number, (expected, parts) in enumerate(zip_longest(topic.records, records), 1):
        what = f"{topic.topic} {number}"
        if expected is None:
            yield _difference(what, _NO_RECORD, _shown(parts), topic.place)
        elif parts is None:
            wanted = {member.name: member.value for member in expected.members}
            yield _difference(what, _shown(wanted), _NO_RECORD, expected.place)
        else:
            yield from _members_compared(what, expected, parts)


def _members_compared(what: str, expected: ExpectedRecord, parts: dict[str, Any]) -> Iterator[Difference]:
    for member in expected.members:
        part = parts.get(member.name)
        if not _same(member, part):
            yield _difference(f"{what}: {member.name}", member.value, part, member.place)


def _same(member: Member, actual: Any) -> bool:
    """True if a part is as expected; keys and values that are not mappings are compared as they are written."""
    if member.name in _AS_WRITTEN and isinstance(member.value, str) and not isinstance(actual, str):
        return bool(member.value == json.dumps(actual) or _parsed(member.value) == actual)
    return bool(_typed(member.value) == _typed(actual))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _typed(value: Any) -> Any:
    """The value with booleans apart from the numbers 0 and 1, which Python takes for equal."""
    if isinstance(value, dict):
        return {name: _typed(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_typed(each) for each in value]
    return ("boolean", value) if isinstance(value, bool) else value


def _text(value: bytes | None) -> str | bytes | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return value


def _shown(parts: dict[str, Any]) -> str:
    """A record in one line: its key, value and reasons, or the expectations of it."""
    return ", ".join(
        f"{name} {_line(value)}"
        for name, value in parts.items()
        if not (name.startswith("value ") and "value" in parts) and not name.startswith("header jmsbridge.")
    )


def _line(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value if not isinstance(value, bytes) else value.hex())


def _difference(what: str, wanted: Any, actual: Any, place: SourcePosition) -> Difference:
    shown = [each if each is None or isinstance(each, str | bytes) else json_text(each) for each in (wanted, actual)]
    return Difference(Expected(what, shown[0], place), *shown)
