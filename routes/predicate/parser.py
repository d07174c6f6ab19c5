"""Parser of predicates: reads a text with the grammar beside this file, and checks that its parts fit together.

The tree's meaning is in `evaluate` and `columns`. `faults` puts syntax errors into words.
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
"""Greatest length of a predicate in characters."""
MAX_DEPTH = 50
"""Deepest nesting of operators; parentheses alone and chains of AND or OR do not count."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def parse(text: str) -> Predicate:
    """Parses the text of a predicate.

    Raises:
        PredicateError: the text is no predicate; with the place and what was expected. No other error is raised.
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
