"""Checks of the names of properties that routes ask for: a slip of the pen makes a property that no message has.

Properties may have any name, so only a name that one route alone asks for is doubted, if it differs by one slip within
the name from that of a field, or from one that other routes ask for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from routes.config.mask_checks import taken_fields
from routes.errors import Fault, Level
from routes.keys.secrets import has_reference
from routes.predicate.bodies import body_path
from routes.predicate.nodes import ADDRESS, Identifier, walk
from routes.properties import HEADER_FIELDS, SEED_NAMES

if TYPE_CHECKING:
    from routes.keys.entry import Entry
    from routes.keys.settings import Settings

__all__ = ["NAME_CHECKS", "is_slip_of"]

_SHORTEST = 5
"""Length from which on two names hardly differ by one character on purpose."""
_LEAST_USERS = 2
_EXCHANGED = 2
_MOST_COMPARISONS = 100_000


class _Asked(NamedTuple):
    """Name of a property that a route asks for."""

    name: str
    route: str
    entry: Entry
    offset: int
    """Place in the value of the entry."""
    is_header: bool
    """True if it is spelled as a header, whose standard fields have short names."""


def slips_in_names(settings: Settings) -> None:
    """Warns of a name that is hardly meant, at its first place."""
    asked: dict[str, _Asked] = {}
    users: dict[str, set[str]] = {}
    for each in _asked(settings):
        asked.setdefault(each.name, each)
        users.setdefault(each.name, set()).add(each.route)
    known = [name for name, routes in users.items() if len(routes) >= _LEAST_USERS]
    odd = [each for name, each in asked.items() if len(users[name]) < _LEAST_USERS]
    for each in odd:
        # Java's names of properties begin with a small letter: `correlationId` is hardly the field.
        fields = SEED_NAMES if each.is_header and each.name[:1].isupper() else ()
        if field := next((name for name in fields if is_slip_of(each.name, name)), None):
            _warn(settings, each, f"'{each.name}' is a property here", f"did you mean {field}, the field?")
        elif len(odd) * len(known) <= _MOST_COMPARISONS and (near := _near(each, known, users)):
            others = f"{len(users[near])} others for '{near}'"
            _warn(settings, each, f"only this route asks for '{each.name}', and {others}", f"did you mean {near}?")


def _near(each: _Asked, known: list[str], users: dict[str, set[str]]) -> str | None:
    """Returns the name that other routes ask for in its place; a route that asks for both knows them apart."""
    names = (name for name in known if each.route not in users[name] and is_slip_of(each.name, name))
    return next(names, None)


def _warn(settings: Settings, each: _Asked, message: str, hint: str) -> None:
    settings.faults.append(each.entry.move(Fault(message, hint, level=Level.WARNING), each.offset))


def _asked(settings: Settings) -> Iterator[_Asked]:
    """Yields the properties that routes ask for, with each place."""
    for name in settings.names("routes"):
        for key in ("routes.NAME.in.include", "routes.NAME.in.exclude"):
            entry, predicate = settings.entry(key, name), settings.get(key, name)
            if entry is None or predicate is None:
                continue
            for node in walk(predicate.root):
                source = predicate.source(node)
                if isinstance(node, Identifier) and _is_property(node.name) and not has_reference(source):
                    is_header = source.startswith("msg.header.")
                    yield _Asked(node.name, name, entry, predicate.span(node)[0], is_header)
        for key, field in taken_fields(settings, name):
            entry = settings.entry(key, name)
            if entry is not None and body_path(field) is None and _is_property(field):
                offset = entry.value.find(field)
                if offset >= 0:
                    yield _Asked(field, name, entry, offset, is_header=True)


def _is_property(name: str) -> bool:
    return name != ADDRESS and name not in HEADER_FIELDS and not name.startswith("JMS")


def is_slip_of(name: str, known: str) -> bool:
    """Returns True if a name is another one with one slip: a letter left out, doubled, wrong or exchanged, or its case.

    Only a difference within the names counts: `regions`, `region_b` and `amount2` are names of their own.
    """
    if name == known or min(len(name), len(known)) < _SHORTEST:
        return False
    if name.casefold() == known.casefold():
        return True
    begin = _shared(name, known)
    end = _shared(name[begin:][::-1], known[begin:][::-1])
    one, other = name[begin : len(name) - end], known[begin : len(known) - end]
    if 0 in (begin, end) or not (one + other).isalpha() or (one + other).isupper():
        return False
    return max(len(one), len(other)) == 1 or (len(one) == _EXCHANGED and one == other[::-1])


def _shared(first: str, second: str) -> int:
    """Returns the length of the text with which both begin."""
    pairs = zip(first, second, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


NAME_CHECKS = (slips_in_names,)
