"""Example commands for a first try: send a message that a route of the configuration takes, and receive it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from engine.connectors.system import connector
from engine.message import Message
from routes.keys.addresses import KAFKA
from routes.predicate.nodes import ADDRESS, Comparison, Identifier, Literal, Logical, Operator
from routes.properties import HEADER_FIELDS, Property

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from routes.model import Config, Route, SinkConfig
    from routes.predicate.nodes import PredicateNode

__all__ = ["try_out"]


def try_out(config: Config) -> list[str]:
    """Returns a `send` and a `receive` for the first route that a made-up message takes; else only a `receive`.

    The `receive` comes first where the destination does not keep a message for a consumer that comes later.
    """
    flag = "" if config.path.name == "jms-bridge.properties" else f" -c {shlex.quote(str(config.path))}"
    destinations = [each for source in config.sources for each in connector(source.type).examples(source)]
    for route in config.own_routes:
        values = {**_wanted(route), **dict(_equalities(route.include.root))}
        for spelling, destination in destinations:
            message = _message(destination, values)
            if _winner(config.routes, message) is route and (place := _place(route, message)) is not None:
                commands = [_send(spelling, values, flag), _receive(place, flag)]
                return commands if _keeps(config.sinks, route, place) else commands[::-1]
    return [_receive(place, flag) for route in config.own_routes[:1] if (place := _place(route, None)) is not None]


def _wanted(route: Route) -> dict[str, str]:
    """Returns values for the properties that the route's destinations are made of."""
    names = (reference.name for target in route.targets for reference in target.address.references)
    return {name: "any" for name in names if name != ADDRESS and name not in HEADER_FIELDS}


def _place(route: Route, message: Message | None) -> str | None:
    """Returns a route's first destination as `receive` takes it; None if messages differ in it or have no value."""
    target = route.targets[0]
    address = target.address.fill(lambda name: None if message is None else message.text_of(name))
    return None if address is None else f"{target.sink or KAFKA}:{address}"


def _keeps(sinks: Sequence[SinkConfig], route: Route, place: str) -> bool:
    """True if the destination keeps a message until a consumer comes."""
    target = route.targets[0]
    if target.sink is None:
        return True
    sink = next(sink for sink in sinks if sink.name == target.sink)
    return connector(sink.type).keeps(place.partition(":")[2].lstrip("/"))


def _receive(place: str, flag: str) -> str:
    return f"jms-bridge receive {shlex.quote(place)}{flag}"


def _equalities(node: PredicateNode) -> Iterator[tuple[str, str]]:
    """Yields name and text of each condition `name = 'text'` among the operands of an AND."""
    if isinstance(node, Logical) and node.operator is Operator.AND:
        for operand in node.operands:
            yield from _equalities(operand)
    elif isinstance(node, Comparison) and node.operator is Operator.EQ:
        for name, value in ((node.left, node.right), (node.right, node.left)):
            if isinstance(name, Identifier) and isinstance(value, Literal) and name.name != ADDRESS:
                yield name.name, Property.of(value.value).text


def _message(destination: str, values: Mapping[str, str]) -> Message:
    """Returns the message that `send` makes of the values: its properties have no declared type."""
    headers = {name: value for name, value in values.items() if name in HEADER_FIELDS}
    properties = {name: Property(value) for name, value in values.items() if name not in HEADER_FIELDS}
    return Message(headers={**headers, "JMSDestination": destination}, properties=properties)


def _winner(routes: Sequence[Route], message: Message) -> Route | None:
    def takes(route: Route) -> bool:
        return message.fulfils(route.taken) and not (route.exclude is not None and message.fulfils(route.exclude))

    return next(filter(takes, routes), None)


def _send(destination: str, values: Mapping[str, str], flag: str) -> str:
    options = [
        f"--{'header' if name in HEADER_FIELDS else 'property'} {shlex.quote(f'{name}={value}')}"
        for name, value in values.items()
    ]
    return " ".join(["jms-bridge send", shlex.quote(destination), *options, '"hello"']) + flag
