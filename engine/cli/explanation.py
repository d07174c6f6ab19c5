"""An explanation on the screen: text for people, JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.cli.output import json_bytes, show_bytes
from engine.explain.words import result, rows

if TYPE_CHECKING:
    from engine.explain import Explanation, Step
    from routes.predicate import Trace

__all__ = ["as_json", "as_text"]


def as_text(explanation: Explanation) -> list[str]:
    """Lines for people: the message, each route tried with the values in its predicate, the key, the result."""
    message = explanation.message
    lines = [
        f"message  {message.headers.get('JMSDestination', 'no destination')}, "
        f"{len(message.body)} bytes of {message.body_type}"
    ]
    for step in explanation.steps:
        # What takes replies back is no route of the user's, unless the message is such a reply.
        if step.wanted or not step.route.added:
            lines += ["", *_step_lines(step)]
    if explanation.key_name is not None:
        lines += ["", f"key      {explanation.key or '(none)'}  from {explanation.key_name}"]
        lines += [f"fails    {failure.reason}: {failure.detail}" for failure in explanation.failures]
    lines += ["", f"result   {result(explanation)}"]
    width = max((len(name) for name, _ in explanation.headers), default=0)
    lines += [f"  {name:<{width}}  {show_bytes(value)}" for name, value in explanation.headers]
    return lines


def as_json(explanation: Explanation) -> dict[str, Any]:
    """An explanation as a JSON object."""
    return {
        "result": explanation.ending,
        "reason": explanation.reason or None,
        "route": explanation.route.name if explanation.route else None,
        "topic": explanation.topic,
        "destination": explanation.destination,
        "key": explanation.key,
        "key_from": explanation.key_name,
        "failures": [{"reason": failure.reason, "detail": failure.detail} for failure in explanation.failures],
        "headers": [{"name": name, **json_bytes("value", value)} for name, value in explanation.headers],
        "routes": [
            {
                "name": step.route.name,
                "wanted": step.wanted,
                "include": _trace_json(step.include),
                "exclude": None if step.exclude is None else _trace_json(step.exclude),
            }
            for step in explanation.steps
        ],
    }


def _step_lines(step: Step) -> list[str]:
    lines = [f"route    {step.route.name}: {'takes it' if step.wanted else 'does not take it'}"]
    lines += _trace_lines("include", step.include)
    if step.exclude is not None:
        lines += _trace_lines("exclude", step.exclude)
    return lines


def _trace_lines(label: str, trace: Trace) -> list[str]:
    found = [("  " * depth + text, value) for depth, text, value in rows(trace)]
    width = max(len(text) for text, _ in found)
    return [
        f"  {label if number == 0 else '':<7}  {text:<{width}}  {value}" for number, (text, value) in enumerate(found)
    ]


def _trace_json(trace: Trace) -> dict[str, Any]:
    return {
        "text": trace.text,
        "value": trace.value,
        "parts": [_trace_json(part) for part in trace.parts],
    }
