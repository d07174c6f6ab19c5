"""Text to tree: reads a predicate with the grammar beside this file, and checks that its parts fit together.

What the tree means is in `evaluate` and `columns`. Faults in the spelling are put into words by `faults`.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING

from lark import Lark, Tree, UnexpectedInput

from routes.errors import PredicateError
from routes.predicate import faults
from routes.predicate.build import Builder
from routes.predicate.check import check
from routes.predicate.nodes import Predicate

if TYPE_CHECKING:
    from lark import ParseTree

__all__ = ["MAX_CHARACTERS", "MAX_DEPTH", "parse"]

MAX_CHARACTERS = 1_000_000
"""Longest predicate text."""
MAX_DEPTH = 50
"""Deepest nesting of operators; parentheses alone and chains of AND or OR do not count."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def parse(text: str) -> Predicate:
    """The predicate that a text says.

    Raises PredicateError, with the place and what was expected, for any text that is none; never anything else.
    """
    if len(text) > MAX_CHARACTERS:
        raise faults.error(text, 0, f"the predicate has {len(text):,} characters", f"at most {MAX_CHARACTERS:,}")
    if not text.strip(" \t\f\r\n"):
        raise faults.error(text, 0, "the predicate is empty", "TRUE matches every message")
    if surrogate := _SURROGATE.search(text):
        raise faults.error(text, surrogate.start(), *faults.character(surrogate[0]))
    try:
        tree = _grammar().parse(text)
    except UnexpectedInput as error:
        raise faults.translate(text, error) from error
    _check_depth(text, tree)
    root = Builder(text).build(tree)
    check(text, root)
    return Predicate(text, root)


@functools.cache
def _grammar() -> Lark:
    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=True)


def _check_depth(text: str, tree: ParseTree) -> None:
    waiting = [(tree, 1)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise _too_deep(text, node)
        waiting.extend((child, depth + 1) for child in node.children if isinstance(child, Tree))


def _too_deep(text: str, tree: ParseTree) -> PredicateError:
    return faults.error(
        text,
        tree.meta.start_pos,
        f"operators are nested more than {MAX_DEPTH} deep here",
        "shorten the calculation, or use several routes",
    )
