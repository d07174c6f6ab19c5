"""Modules of the product as syntax trees, for the tests that guard rules of the whole repository."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

__all__ = ["PACKAGES", "ROOT", "imports", "inside", "modules", "nodes", "tree"]

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine", "routes")
"""Packages of the product."""


@cache
def modules() -> dict[str, Path]:
    """Every module of the packages by its dotted name."""
    found = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree(path)))


@cache
def imports(name: str) -> frozenset[str]:
    """What a module imports: at its top, for types only, and within functions."""
    found: set[str] = set()
    for node in nodes(modules()[name]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative import"
            source = node.module or ""
            found |= {
                f"{source}.{alias.name}" if f"{source}.{alias.name}" in modules() else source for alias in node.names
            }
    return frozenset(found)


def inside(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")
