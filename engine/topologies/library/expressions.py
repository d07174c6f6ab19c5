"""Expressions as Columns: text of Spark SQL is parsed at once, so that a fault is shown at its place."""

from __future__ import annotations

import re
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

__all__ = ["ExpressionError", "parsed"]

_PLACE = re.compile(r"\(line (\d+), pos (\d+)\)")
_MESSAGE = re.compile(r"(?:\[[A-Z_.]+\]\s*)?(.*?)\s*(?:SQLSTATE: \w+)?\s*(?:\(line \d+, pos \d+\))?\s*$")


class ExpressionError(ValueError):
    """Text that is not an expression of Spark SQL; the error shows the text and its place, in lines of their own."""

    def __init__(self, message: str, text: str, line: int = 1, column: int = 0) -> None:
        """`line` counts from 1, `column` from 0."""
        lines = text.splitlines() or [""]
        shown = lines[min(line, len(lines)) - 1]
        super().__init__(f"{message}\n  {shown}\n  {' ' * min(column, len(shown))}^")


def parsed(text: str) -> Column:
    """The Column of an expression.

    Raises:
        ExpressionError: the text is not an expression, or has words behind its end, which Spark takes for a name.
    """
    session: Any = SparkSession.active()
    try:
        parsed_expression = session._jsparkSession.sessionState().sqlParser().parseExpression(text)
    except (PySparkException, Py4JJavaError) as error:
        raise _syntax(text, str(error)) from error
    if parsed_expression.getClass().getSimpleName() in ("Alias", "UnresolvedAlias", "MultiAlias"):
        raise _named(text)
    return F.expr(text)


def _syntax(text: str, problem: str) -> ExpressionError:
    first = next((line for line in problem.splitlines() if line.strip()), "")
    place = _PLACE.search(problem)
    message = _MESSAGE.match(first)
    reason = message[1] if message else first
    line, column = (int(place[1]), int(place[2])) if place else (1, 0)
    return ExpressionError(reason.rstrip(". ") or "the text is not an expression", text, line, column)


def _named(text: str) -> ExpressionError:
    """The error for `amount > 100 and`, which Spark reads as `amount > 100 AS and`."""
    last = re.search(r"(?i)(?:\bas\s+)?(`[^`]*`|\w+|\([^()]*\))\s*$", text)
    start = last.start() if last else len(text)
    word = last[1] if last else ""
    line = text.count("\n", 0, start) + 1
    column = start - (text.rfind("\n", 0, start) + 1)
    return ExpressionError(f"the expression ends before '{word}', which would be a name for it", text, line, column)
