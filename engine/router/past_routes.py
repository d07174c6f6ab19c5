"""Routes of generations: the configuration by which a generation routed, and the generation that routed a record."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.claims.section import ClaimCheckConfig
from routes.config.load import loads_routes
from routes.config.reader import read_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.router.generation import Start
    from engine.router.position_store import NotedStart
    from routes.model import Config

__all__ = ["configuration_of", "generation_of", "routes_text"]

_ROUTING = re.compile(r"bridge\.id|(?:routing|routes|replies|claim-check)\..*|sink\.[^.]+\.(?:type|topic|reply-to)")


def configuration_of(start: Start, present: Config, environment: Mapping[str, str] | None = None) -> Config:
    """Returns the present configuration with the routes and sinks of a generation.

    `environment` has the variables that its routes refer to; None: those of this process.

    Raises:
        ConfigurationError: a line of the routes cannot be read.
    """
    then = loads_routes(start.routes, present.path.absolute().parent, environment)
    routes = replace(present, bridge_id=then.bridge_id, routing=then.routing, routes=then.routes, sinks=then.sinks)
    return routes.with_section(then.section(ClaimCheckConfig))


def generation_of(starts: Sequence[NotedStart], partition: int, offset: int) -> NotedStart | None:
    """Returns the start of the generation that routed, or will route, a record of the journal.

    `starts` are the known ones, the oldest first. None if that of this record is not among them, or if it cannot be
    told since one behind it is missing. A generation also has what it left out routed by its own routes, at the start
    of the next one, so the first positions of two generations are the bounds of the earlier one.
    """
    begun = [each.start.positions.get(partition, 0) <= offset for each in starts]
    if True not in begun:
        return None
    at = len(begun) - 1 - begun[::-1].index(True)
    is_last = at == len(starts) - 1
    return starts[at] if is_last or starts[at + 1].start.after == starts[at].start.run else None


def routes_text(text: str) -> str:
    """The lines of a properties file's text that determine the routing; lines with passwords are not among them."""
    entries = (entry for entry in read_text(text).entries if _ROUTING.fullmatch(entry.key))
    return "".join("\n".join(entry.source).rstrip("\n") + "\n" for entry in entries)
