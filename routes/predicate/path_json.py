"""JSON of paths into bodies, in which the JVM gets them."""

from __future__ import annotations

from typing import Any

from routes.predicate.nodes import BodyPath, ValuePath

__all__ = ["path_json"]


def path_json(path: ValuePath) -> list[Any] | dict[str, Any]:
    """Returns the JSON of a path as `jmsbridge.predicate.BodyPaths` reads it."""
    if isinstance(path, BodyPath):
        return [*path.steps]
    return {
        "steps": [[step.name, step.position] for step in path.steps],
        "attribute": path.attribute,
        "own": path.is_own_text,
        "number": path.is_number,
    }
