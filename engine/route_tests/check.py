"""Compares the routing of the message of a test case with the expected one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.explain import Ending, explain
from engine.route_tests.cases import HEADER, NONE, PUBLISHED
from engine.schemas.documents import documents_of
from engine.schemas.route_schemas import route_schemas
from engine.trace_context import traced
from engine.tracing_section import TracingConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.explain import Explanation
    from engine.route_tests.cases import Case, Expected
    from routes.model import Config, SinkConfig

__all__ = ["Difference", "Result", "check"]

_KAFKA = "kafka"


@dataclass(frozen=True, slots=True)
class Difference:
    """An expectation that is not met."""

    expected: Expected
    wanted: str | bytes | None
    """The expected value, in the spelling of the found one."""
    found: str | bytes | None


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a test case."""

    case: Case
    explanation: Explanation
    differences: tuple[Difference, ...]

    @property
    def passed(self) -> bool:
        """True if all expectations are met."""
        return not self.differences


def check(case: Case, config: Config) -> Result:
    """Routes the message as the router would (`engine.explain`) and compares the outcome with the expectations.

    Raises UnreachableError, HardFailureError or SetupError for a body with a schema that the registry does not give.
    """
    explanation = explain(
        traced(case.record, config.section(TracingConfig)),
        config,
        documents=documents_of(config),
        schemas=route_schemas(config),
    )
    differences = []
    for expected in case.expected:
        wanted, found = _wanted(expected, config.sinks), _found(expected.what, explanation)
        if found != wanted and not (wanted == NONE and expected.what == "result" and _goes_nowhere(explanation)):
            differences.append(Difference(expected, wanted, found))
    if any(difference.expected.what == "result" for difference in differences):
        # A message that is not published has no destination, key or headers to compare.
        differences = [each for each in differences if each.expected.what in ("result", "route")]
    return Result(case, explanation, tuple(differences))


def _result(explanation: Explanation) -> str:
    match explanation.ending:
        case Ending.PUBLISHED:
            return PUBLISHED
        case Ending.COUNTED:
            return f"unrouted: {explanation.reason}"
        case ending:
            return f"{ending}: {explanation.reason}"


def _goes_nowhere(explanation: Explanation) -> bool:
    return all(each.ending in (Ending.COUNTED, Ending.SKIP) for each in explanation.publications)


def _found(what: str, explanation: Explanation) -> str | bytes | None:
    """Values that were found for all publications of the message, different ones separated by commas.

    A header that only some of them have counts as theirs.
    """
    values = list(dict.fromkeys(_of_publication(what, each) for each in explanation.publications))
    if what.startswith(HEADER) and len(values) > 1:
        values = [value for value in values if value is not None]
    if len(values) == 1:
        return values[0]
    return ", ".join(each if isinstance(each, str) else str(each) for each in values)


def _of_publication(what: str, explanation: Explanation) -> str | bytes | None:
    route, target = explanation.route, explanation.publication and explanation.publication.target
    match what:
        case "result":
            return _result(explanation)
        case "route":
            return route.name if route else None
        case "topic":
            return explanation.topic
        case "destination":
            sink = target.sink if target else None
            return f"{sink}:{explanation.destination}" if sink else f"{_KAFKA}:{explanation.topic}"
        case "key":
            return explanation.key
        case "claim":
            return None if explanation.claim is None else str(explanation.claim.size)
    value = next((value for name, value in explanation.headers if name == what.removeprefix(HEADER)), None)
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return value


def _wanted(expected: Expected, sinks: Sequence[SinkConfig]) -> str | bytes | None:
    """The expected value in the spelling of the found one."""
    if expected.what != "destination" or not isinstance(expected.value, str):
        return _as_text(expected.value)
    return ", ".join(_destination(part.strip(), sinks) for part in expected.value.split(","))


def _destination(text: str, sinks: Sequence[SinkConfig]) -> str:
    scheme, given, address = text.partition(":")
    if not given:
        return f"{_KAFKA}:{scheme}"
    if any(sink.name == scheme for sink in sinks):
        return text
    of_type = [sink.name for sink in sinks if sink.type.name == scheme]
    return f"{of_type[0]}:{address}" if len(of_type) == 1 else text


def _as_text(value: str | bytes | None) -> str | bytes | None:
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value
