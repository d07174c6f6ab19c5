"""Comparison of the destinations of sources with the conditions of routes, for which a start has no time."""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from routes.errors import Level
from routes.keys.secrets import has_reference
from routes.predicate.evaluate import truth_for
from routes.predicate.nodes import ADDRESS, Comparison, Identifier, In, IsNull, Literal, Logical, Not, Operator, walk
from routes.predicate.values import ComparisonKind, Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from routes.keys.entry import Entry
    from routes.keys.settings import Settings
    from routes.predicate.nodes import Predicate, PredicateNode

__all__ = ["addresses_of_sources"]

_PART = Identifier(ADDRESS)
_PLAIN = re.compile(r"(?:queue|topic):([\w.-]+)", re.ASCII)
"""Destination that stands for itself alone in every JMS system."""
_CHANGING = ("transformer", "jndi-destinations")
"""Keys of a source by which messages can have other addresses than its destinations."""
_MOST_COMPARISONS = 100_000


class _Delivered(NamedTuple):
    """Destination that a source names."""

    address: str
    source: str
    entry: Entry


def addresses_of_sources(settings: Settings) -> None:
    """Warns of destinations that no route takes, and of routes that take none of any source.

    Only what is certain is told: sources with wildcards deliver any address, and topologies read what no route takes.
    """
    found = {name: settings.get("routes.NAME.in.include", name) for name in settings.names("routes")}
    includes: dict[str, Predicate] = {name: include for name, include in found.items() if include is not None}
    conditions = {name: _without_nulls(include.root) for name, include in includes.items()}
    delivered = list(_delivered(settings))
    if len(includes) * len(delivered) > _MOST_COMPARISONS:
        return
    fixed = [each for each in delivered if each is not None]
    if includes and not settings.names("topologies"):
        for each in fixed:
            if not any(_may_take(condition, each.address) for condition in conditions.values()):
                message = f"no route takes '{each.address}', which source '{each.source}' delivers"
                near = _near(each.address, {text for include in includes.values() for text in _asked(include)})
                _warn(settings, each.entry, each.address, message, near or "add a route, or remove the destination")
    if len(fixed) == len(delivered) > 0:
        addresses = {each.address for each in fixed}
        idle = {
            name: includes[name]
            for name, condition in conditions.items()
            if not any(_may_take(condition, address) for address in addresses)
        }
        _warn_of_routes(settings, idle, addresses)


def _warn_of_routes(settings: Settings, includes: Mapping[str, Predicate], addresses: set[str]) -> None:
    for name, include in includes.items():
        entry = settings.entry("routes.NAME.in.include", name)
        if entry is None:
            continue
        asked = _asked(include)
        near = [hint for each in asked if (hint := _near(each, addresses))]
        what = f"'{asked[0]}'" if len(asked) == 1 else "an address that it takes"
        message = f"route '{name}' never gets a message: no source delivers {what}"
        hint = near[0] if near else "add the address to the destinations of a source, or remove the route"
        _warn(settings, entry, asked[0] if asked else "", message, hint)


def _warn(settings: Settings, entry: Entry, text: str, message: str, hint: str) -> None:
    # A name may be a part of another one.
    place = re.search(rf"(?<![\w.-]){re.escape(text)}(?![\w.-])", entry.value)
    settings.faults.append(entry.fault(message, hint, place.start() if place else 0, Level.WARNING))


def _delivered(settings: Settings) -> Iterator[_Delivered | None]:
    """Yields the destinations of all sources; None for any other than a queue or topic that is named.

    Sinks deliver as well: replies.
    """
    if settings.names("sink"):
        yield None
    for name in settings.names("source"):
        entry = settings.entry("source.NAME.destinations", name)
        changes = any(settings.is_set(f"source.NAME.{key}", name) for key in _CHANGING)
        system, listed = settings.get("source.NAME.type", name), settings.get("source.NAME.destinations", name)
        if entry is None or changes or not listed or system is None or not system.is_jms:
            yield None
            continue
        for destination in listed:
            plain = _PLAIN.fullmatch(str(destination))
            yield _Delivered(plain[1], name, entry) if plain else None


def _may_take(condition: PredicateNode, address: str) -> bool:
    """Returns False if a condition is certainly not true for messages with an address."""
    return truth_for(condition, _PART, Value(ComparisonKind.TEXT, address)) is not False


def _without_nulls(node: PredicateNode) -> PredicateNode:
    """Returns a condition with an unknown one in the place of each that asks whether a value is missing."""
    match node:
        case Logical():
            return replace(node, operands=tuple(map(_without_nulls, node.operands)))
        case Not():
            return replace(node, operand=_without_nulls(node.operand))
        case IsNull() if node.operand != _PART:
            return Comparison(Operator.EQ, node.operand, node.operand)
    return node


def _asked(include: Predicate) -> list[str]:
    """Returns the texts with which a condition compares the address, apart from those of references."""
    addresses: list[str] = []
    for node in walk(include.root):
        if has_reference(include.source(node)):
            continue
        if isinstance(node, Comparison) and _PART in (node.left, node.right):
            addresses += [str(side.value) for side in (node.left, node.right) if isinstance(side, Literal)]
        if isinstance(node, In) and node.operand == _PART:
            addresses += node.texts
    return addresses


def _near(text: str, addresses: set[str]) -> str | None:
    near = get_close_matches(text, sorted(addresses - {text}), n=1, cutoff=0.75)
    return f"did you mean {near[0]}?" if near else None
