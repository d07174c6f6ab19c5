"""Commands that show a configuration at work: a message that its first route takes, and where it arrives."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from engine.message import Message
from routes.predicate import evaluate
from routes.predicate.nodes import ADDRESS, Comparison, Identifier, Literal, Logical, Operator
from routes.properties import HEADER_FIELDS, Property

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from routes.model import Config, Route
    from routes.predicate.nodes import Node

__all__ = ["try_out"]


def try_out(config: Config) -> list[str]:
    """A `send` and a `receive` for the first route that a simple message can be made up for; else only `receive`."""
    flag = "" if config.path.name == "jms-bridge.properties" else f" -c {shlex.quote(str(config.path))}"
    destinations = [destination for source in config.sources for destination in source.destinations]
    for route in config.routes:
        values = dict(_equalities(route.include.root))
        for destination in destinations:
            if _winner(config.routes, _message(destination, values)) is route:
                return [_send(destination, values, flag), f"jms-bridge receive kafka:{route.target.topic}{flag}"]
    return [f"jms-bridge receive kafka:{route.target.topic}{flag}" for route in config.routes[:1]]


def _equalities(node: Node) -> Iterator[tuple[str, str]]:
    """What a predicate asks for in the form `name = 'text'`, in all operands of an AND."""
    if isinstance(node, Logical) and node.operator is Operator.AND:
        for operand in node.operands:
            yield from _equalities(operand)
    elif isinstance(node, Comparison) and node.operator is Operator.EQ:
        for name, value in ((node.left, node.right), (node.right, node.left)):
            if isinstance(name, Identifier) and isinstance(value, Literal) and name.name != ADDRESS:
                yield name.name, Property.of(value.value).text


def _message(destination: str, values: Mapping[str, str]) -> Message:
    """What `send` makes of the values: properties without a declared type."""
    headers = {name: value for name, value in values.items() if name in HEADER_FIELDS}
    properties = {name: Property(value) for name, value in values.items() if name not in HEADER_FIELDS}
    return Message(headers={**headers, "JMSDestination": destination}, properties=properties)


def _winner(routes: Sequence[Route], message: Message) -> Route | None:
    def takes(route: Route) -> bool:
        excluded = route.exclude is not None and evaluate(route.exclude, message.lookup)
        return evaluate(route.include, message.lookup) is True and not excluded

    return next(filter(takes, routes), None)


def _send(destination: str, values: Mapping[str, str], flag: str) -> str:
    options = [
        f"--{'header' if name in HEADER_FIELDS else 'property'} {shlex.quote(f'{name}={value}')}"
        for name, value in values.items()
    ]
    return " ".join(["jms-bridge send", shlex.quote(destination), *options, '"hello"']) + flag
