"""Texts of explanations, for the command line and the status page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.explain.explanation import Ending

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.explain.explanation import Explanation
    from routes.predicate import Trace

__all__ = ["result", "rows"]


def result(explanation: Explanation) -> str:
    """The outcome of the message, in a sentence."""
    why = explanation.reason
    route = f"route '{explanation.route.name}'" if explanation.route else ""
    match explanation.ending:
        case Ending.PUBLISHED:
            place = f"kafka:{explanation.topic}"
            if explanation.route and explanation.route.target.sink:
                place = f"{explanation.route.target.sink}:{explanation.destination} (by way of {place})"
            return f"published to {place} by {route}, key {explanation.key}, with headers"
        case Ending.COUNTED:
            return {
                "own-origin": "not routed: this bridge routed it before (jmsbridge.origin); counted as own-origin",
                "non-durable": "not routed: routing.non-durable=drop and it is NON_PERSISTENT; counted as non-durable",
                "expired": "not routed: it has expired (JMSExpiration); counted as expired",
                "unmatched": "not routed: no route takes it; counted as unmatched",
            }[why]
        case Ending.STOP:
            return f"the bridge stops with exit code 5: {why}, and {route} has on-soft-failure=stop"
        case Ending.SKIP:
            return f"skipped and logged: {why}, and {route} has on-soft-failure=skip"
        case Ending.DEAD_LETTER:
            return f"dead letter in kafka:{explanation.topic}: {why}"


def rows(trace: Trace, depth: int = 0) -> Iterator[tuple[int, str, str]]:
    """The rows of a predicate and its parts: depth, text, and value for the message."""
    yield depth, trace.text, _value(trace)
    for part in trace.parts:
        yield from rows(part, depth + 1)


def _value(trace: Trace) -> str:
    if trace.value is None:
        return "unknown" if trace.is_condition else "(not set)"
    if isinstance(trace.value, bool):
        return "true" if trace.value else "false"
    return f"'{trace.value}'" if isinstance(trace.value, str) else str(trace.value)
