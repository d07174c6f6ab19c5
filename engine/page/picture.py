"""Layout of the flow as a picture: boxes in four columns, in the direction of the messages, and lines between."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.page.view import Tone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.page.flow import FlowGraph, FlowNode

__all__ = ["Line", "NodeBox", "Picture", "draw"]

_WIDTH = 1120
_BOX = 208
_HEIGHT = 62
_GAP = 16
_TOP = 34
_MOST = 16
"""Number of nodes drawn in a column; nodes that fail or carry messages come before idle ones."""
_LETTERS = 20


@dataclass(frozen=True, slots=True)
class NodeBox:
    """A node with its position and size in the picture."""

    node: FlowNode
    title: str
    """The node's title, cut to fit into the box."""
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Line:
    """A flow between two nodes, as a curve."""

    path: str
    tone: Tone
    width: float


@dataclass(frozen=True, slots=True)
class Picture:
    """The complete picture; lengths are in its own units."""

    width: int
    height: int
    heads: tuple[tuple[str, int], ...]
    """Headings of the columns, with their x coordinates."""
    boxes: tuple[NodeBox, ...]
    lines: tuple[Line, ...]
    more: tuple[tuple[str, int, int], ...]
    """Notes on nodes left out of a column, with their coordinates."""


def draw(flow: FlowGraph) -> Picture:
    """Computes the picture of a flow."""
    columns = (
        ("Sources", flow.sources),
        ("Journal", (flow.journal,)),
        ("Routes", flow.routes),
        ("Destinations", flow.destinations),
    )
    kept = [(head, _kept(nodes), len(nodes)) for head, nodes in columns]
    rows = max(len(nodes) + (total > len(nodes)) for _, nodes, total in kept)
    inner = max(rows, 1) * (_HEIGHT + _GAP) - _GAP
    step = (_WIDTH - _BOX) / (len(columns) - 1)
    boxes: dict[str, NodeBox] = {}
    more = []
    for number, (_, nodes, total) in enumerate(kept):
        x = round(number * step)
        count = len(nodes) + (total > len(nodes))
        y = _TOP + (inner - (count * (_HEIGHT + _GAP) - _GAP)) // 2
        for node in nodes:
            boxes[node.key] = NodeBox(node, _cut(node.title), x, y, _BOX, _HEIGHT)
            y += _HEIGHT + _GAP
        if total > len(nodes):
            more.append((f"and {total - len(nodes)} more", x + _BOX // 2, y + 24))
    lines = [
        Line(_curve(boxes[edge.start], boxes[edge.end]), edge.tone, _thickness(edge.rate))
        for edge in flow.edges
        if edge.start in boxes and edge.end in boxes
    ]
    heads = tuple((head, round(number * step)) for number, (head, _, _) in enumerate(kept))
    # Lines with a flow are drawn over idle ones.
    lines.sort(key=lambda line: (line.tone is not Tone.IDLE, line.width))
    return Picture(_WIDTH, _TOP + inner + 6, heads, tuple(boxes.values()), tuple(lines), tuple(more))


def _kept(nodes: Sequence[FlowNode]) -> Sequence[FlowNode]:
    if len(nodes) <= _MOST:
        return nodes
    order = (Tone.BAD, Tone.WARN, Tone.GOOD, Tone.IDLE)
    first = sorted(nodes, key=lambda node: (order.index(node.tone), -(node.rate or 0.0)))[:_MOST]
    return [node for node in nodes if node in first]


def _curve(start: NodeBox, end: NodeBox) -> str:
    x1, y1 = start.x + start.width, start.y + start.height // 2
    x2, y2 = end.x, end.y + end.height // 2
    bend = (x2 - x1) // 2
    return f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"


def _thickness(rate: float | None) -> float:
    """The width of a line; ten times the rate makes it 1.2 units wider."""
    return 1.5 if not rate else round(min(2.0 + 1.2 * math.log10(1 + rate), 8.0), 1)


def _cut(title: str) -> str:
    return title if len(title) <= _LETTERS else f"{title[: _LETTERS - 1]}…"
