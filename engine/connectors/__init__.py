"""The systems that messages are taken from: one connector each, all under the contract in `base`, all run by `loop`.

To add one: a file with a class that follows `base.Source`, a line in `SOURCES`, a page in `docs/connectors`, and its
harness in the conformance suite (`tests/integration/connectors`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.connectors.base import Source
    from routes.model import Config, SourceConfig

__all__ = ["SOURCES", "Connector"]

Connector = Callable[["Config", "SourceConfig", int], "Source"]
"""Makes the source for one worker of `source.NAME`, not yet connected; workers count from 1."""


def _stomp(config: Config, source: SourceConfig, worker: int) -> Source:
    # A system's client library is loaded only where a source of its type runs.
    from engine.connectors.stomp import StompSource

    return StompSource(config, source, worker)


SOURCES: Mapping[str, Connector] = {"stomp": _stomp}
"""By `source.NAME.type`."""
