"""Commands that show a configuration at work: a message that its first route takes, and where it arrives."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from routes.predicate import evaluate
from routes.predicate.nodes import ADDRESS, Comparison, Identifier, Literal, Logical, Operator
from routes.properties import HEADER_FIELDS, Property

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routes.model import Config, Route
    from routes.predicate.nodes import Node

__all__ = ["try_out"]


def try_out(config: Config) -> list[str]:
    """A `send` and a `receive` for the first route that a simple message can be made up for; else only `receive`."""
    flag = "" if config.path.name == "jms-bridge.properties" else f" -c {shlex.quote(str(config.path))}"
    destinations = [destination for source in config.sources for destination in source.destinations]
    for number, route in enumerate(config.routes):
        for destination in destinations:
            values = dict(_equalities(route.include.root))
            address = destination.partition(":")[2]
            if _winner(config, address, values) == number:
                return [_send(destination, values, flag), f"jms-bridge receive kafka:{route.target.address}{flag}"]
    return [f"jms-bridge receive kafka:{route.target.address}{flag}" for route in config.routes[:1]]


def _equalities(node: Node) -> Iterator[tuple[str, str]]:
    """What a predicate asks for in the form `name = 'text'`, in all operands of an AND."""
    if isinstance(node, Logical) and node.operator is Operator.AND:
        for operand in node.operands:
            yield from _equalities(operand)
    elif isinstance(node, Comparison) and node.operator is Operator.EQ:
        for name, value in ((node.left, node.right), (node.right, node.left)):
            if isinstance(name, Identifier) and isinstance(value, Literal) and name.name != ADDRESS:
                yield name.name, Property.of(value.value).text


def _winner(config: Config, address: str, values: dict[str, str]) -> int | None:
    def lookup(name: str) -> Property | None:
        text = address if name == ADDRESS else values.get(name)
        return None if text is None else Property(text)

    def takes(route: Route) -> bool:
        excluded = route.exclude is not None and evaluate(route.exclude, lookup)
        return evaluate(route.include, lookup) is True and not excluded

    return next((number for number, route in enumerate(config.routes) if takes(route)), None)


def _send(destination: str, values: dict[str, str], flag: str) -> str:
    options = [
        f"--{'header' if name in HEADER_FIELDS else 'property'} {shlex.quote(f'{name}={value}')}"
        for name, value in values.items()
    ]
    return " ".join(["jms-bridge send", shlex.quote(destination), *options, '"hello"']) + flag
