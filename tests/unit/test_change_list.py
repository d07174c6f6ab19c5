"""Number of modules that common changes touch: those that name one thing, where a new one of its kind would stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.telemetry.metrics import FAILURE_REASONS, PUBLISH_REASONS, UNMATCHED
from routes.model import HeaderStyle

ROOT = Path(__file__).parents[2]
MODULES = {
    path: path.read_text(encoding="utf-8")
    for folder, kind in (("engine", "*.py"), ("routes", "*.py"), ("jvm", "*.java"))
    for path in (ROOT / folder).rglob(kind)
    if "test" not in path.parts
}
MOST = 3


def naming(pattern: str) -> list[str]:
    """Modules in which the pattern occurs."""
    return [str(path.relative_to(ROOT)) for path, text in MODULES.items() if re.search(pattern, text)]


@pytest.mark.parametrize("reason", [*FAILURE_REASONS, *PUBLISH_REASONS, UNMATCHED])
def test_a_reason_of_routed_dead_letters_is_named_in_few_modules(reason: str) -> None:
    assert 1 <= len(found := naming(rf"\"{reason}\"")) <= MOST, found


@pytest.mark.parametrize("style", HeaderStyle)
def test_a_header_style_is_named_in_few_modules(style: HeaderStyle) -> None:
    named = naming(rf"HeaderStyle\.{style.name}\b|class HeaderStyle\b")
    assert 2 <= len(named) <= MOST, named
