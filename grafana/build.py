"""Writes the dashboards in `grafana/dashboards/`: `python grafana/build.py`; a test keeps them current.

Change panels in `grafana/boards/`, never in the JSON. Metrics and labels are those of `engine/telemetry/metrics.py`,
described for people in `docs/metrics.md`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from boards.connectors import connectors
from boards.dead_letters import dead_letters
from boards.overview import overview
from boards.routes import routes
from boards.spark import spark
from boards.topologies import topologies
from grafana_foundation_sdk.cog.encoder import JSONEncoder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grafana_foundation_sdk.builders import dashboard

__all__ = ["DASHBOARDS", "rendered"]

DASHBOARDS = Path(__file__).with_name("dashboards")
_BOARDS = {
    "overview": overview,
    "routes": routes,
    "connectors": connectors,
    "dead-letters": dead_letters,
    "spark": spark,
    "topologies": topologies,
}


def rendered() -> Mapping[str, str]:
    """The content of each file, by its name."""
    return {f"{name}.json": _render(board()) for name, board in _BOARDS.items()}


def _render(board: dashboard.Dashboard) -> str:
    built = board.build()
    for identifier, panel in enumerate(built.panels or [], start=1):
        panel.id = identifier
    return JSONEncoder(sort_keys=True, indent=2).encode(built) + "\n"


if __name__ == "__main__":
    for name, text in rendered().items():
        (DASHBOARDS / name).write_text(text)
