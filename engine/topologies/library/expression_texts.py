"""Expressions of nodes as text, as the user wrote them, for the status page and `topology --json`; needs no Spark."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from types import CodeType, FunctionType
from typing import Any

from pyspark.sql import Column

from engine.topologies.library.nodes import (
    Aggregate,
    Branch,
    Deduplicate,
    Expression,
    Filter,
    FlatMap,
    GroupTable,
    JoinForeign,
    JoinGlobal,
    MapValues,
    Node,
    Process,
    ProcessOutput,
    PythonColumn,
    SelectKey,
    WithHeaders,
)
from engine.topologies.library.python_functions import PythonFunction, name_of

__all__ = ["expression_text"]

_OWN = "engine."
"""Prefix of the modules whose functions stand in a node, but were not written by the user of the topology."""


def expression_text(node: Node) -> str:
    """The expression of a node as text, such as `amount > 100` or `total = sum(amount)`; empty if it has none."""
    match node:
        case Filter(condition=condition):
            text = _text(condition)
            return f"not ({text})" if node.is_negated and text else text
        case Branch(condition=condition):
            return "all others" if condition is None else _text(condition)
        case MapValues(fields=fields) | Aggregate(columns=fields):
            return _assignments(fields)
        case WithHeaders(headers=headers):
            return _headers(headers)
        case FlatMap(array=value) | SelectKey(key=value) | Deduplicate(id=value) | JoinForeign(on=value):
            return _text(value)
        case JoinGlobal(on=value):
            return "" if value is None else _text(value)
        case GroupTable():
            return ", ".join(filter(None, (_text(node.group), _assignments(node.columns))))
        case ProcessOutput(output=output):
            return output
    return _python(node)


def _python(node: Node) -> str:
    match node:
        case PythonColumn(function=function):
            return _text(function)
        case Process(function=function):
            return name_of(function)
    return ""


def _headers(headers: Mapping[str, Expression | None]) -> str:
    removed = [f"without {name}" for name, each in headers.items() if each is None]
    given = {name: each for name, each in headers.items() if each is not None}
    return ", ".join(filter(None, (_assignments(given), *removed)))


def _assignments(fields: Mapping[str, Any]) -> str:
    """Fields with the expressions that give them their values; a function whose text is not known is left out."""
    texts = {name: _text(expression) for name, expression in fields.items()}
    return ", ".join(f"{name} = {text}" if text else name for name, text in texts.items())


def _text(expression: Expression) -> str:
    match expression:
        case str():
            return " ".join(expression.split())
        case Column():
            return str(expression).removeprefix("Column<'").removesuffix("'>")
        case PythonFunction(function=function):
            return name_of(function)
        case FunctionType() if not expression.__module__.startswith(_OWN):
            return _body(expression) if expression.__name__ == "<lambda>" else name_of(expression)
    return ""


def _body(function: FunctionType) -> str:
    """The body of a lambda as it stands in its file; empty if the file does not tell which of its lambdas it is."""
    try:
        lines, _ = inspect.findsource(function)
        tree = ast.parse("".join(lines))
    except (OSError, SyntaxError):
        return ""
    line, content = function.__code__.co_firstlineno, _content(function.__code__)
    here = (each for each in ast.walk(tree) if isinstance(each, ast.Lambda) and each.lineno == line)
    bodies = {ast.unparse(each.body) for each in here if content == _content(_compiled(each))}
    return bodies.pop() if len(bodies) == 1 else ""


def _compiled(function: ast.Lambda) -> CodeType:
    (code,) = (each for each in compile(ast.Expression(function), "", "eval").co_consts if isinstance(each, CodeType))
    return code


def _content(code: CodeType) -> tuple[object, set[str]]:
    """The constants and names of a function, by which it is told from others in the same line."""
    constants = [each for each in code.co_consts if not isinstance(each, CodeType)]
    return constants, {*code.co_names, *code.co_freevars}
