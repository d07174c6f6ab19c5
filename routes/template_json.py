"""Templates as the JSON that the JVM reads (`jmsbridge.predicate.TextTemplate`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from routes.predicate.bodies import body_path
from routes.predicate.nodes import ADDRESS
from routes.predicate.path_json import path_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from routes.predicate.nodes import ValuePath
    from routes.targets import Reference, Template

__all__ = ["paths_of", "template_json", "template_parts"]


def paths_of(templates: Iterable[Template]) -> tuple[ValuePath, ...]:
    """Returns the paths into the body whose values are in the templates, each once."""
    names = (part.name for template in templates for part in template.references)
    return tuple(path for name in dict.fromkeys(names) if (path := body_path(name)))


def template_json(template: Template) -> str:
    """Returns one template, with the paths that it asks for."""
    paths = paths_of([template])
    return json.dumps({"parts": template_parts(template, paths), "paths": [path_json(path) for path in paths]})


def template_parts(template: Template, paths: Sequence[ValuePath]) -> list[Any]:
    """Returns the parts of a template: its texts, and the places of texts in the message, some of them by path."""
    return [part if isinstance(part, str) else _place(part, paths) for part in template.parts]


def _place(part: Reference, paths: Sequence[ValuePath]) -> dict[str, Any]:
    if path := body_path(part.name):
        return {"path": paths.index(path)}
    return {"field": "JMSDestination", "address": True} if part.name == ADDRESS else {"field": part.name}
