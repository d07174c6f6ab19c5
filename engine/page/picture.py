"""Pictures of nodes in columns and of the flows between them, as data for SVG."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.page.view import Tone
from engine.printable import listed
from engine.telemetry import amounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["Edge", "FlowNode", "Line", "NodeBox", "Picture", "anchor", "draw", "shortened"]

_WIDTH = 1120
_COLUMNS = 4
"""Number of columns over which a picture of this width is spread."""
_LEAST_WAY = 48
_BOX = 208
_HEIGHT = 62
_GAP = 16
_TOP = 34
_MOST = 16
"""Number of nodes drawn in a column; nodes that fail or carry messages come before idle ones."""
_MOST_WIDTH = 6 * (_BOX + _LEAST_WAY) - _LEAST_WAY
"""Width up to which a picture is shrunk to the window's, as far as it can be read; a wider one is scrolled."""
_TITLE_LETTERS, _LINE_LETTERS, _LEAST_LETTERS = 18, 20, 10
"""Number of letters that fit into a box: of its title, of its state and figure together, and of a state at least."""


@dataclass(frozen=True, slots=True)
class FlowNode:
    """A source, the journal, a route, a destination, a topology or a node of one: one box of the picture."""

    key: str
    title: str
    tone: Tone
    state: str
    """The node's state, in a word or two."""
    kind: str
    """Type of the node: `router`, `route`, `Kafka topic`, `replies`, a type of system, or the dead-letter topic."""
    rate: float | None = None
    """Messages per second through the node; None if unknown."""
    lag: float | None = None
    """Messages that wait at the node; None if unknown."""
    detail: str = ""
    """The component's own description of its state, a route's predicate, or why dead letters cannot be counted."""
    href: str = ""
    count: str = ""
    """Figure of the node in words, in place of its rate; empty: the number of waiting messages, or the rate."""

    @property
    def line_tone(self) -> Tone:
        """The tone of the node's lines: its own, but idle if nothing flows and nothing is wrong."""
        return self.tone if self.rate or self.tone in (Tone.BAD, Tone.WARN) else Tone.IDLE

    @property
    def figure(self) -> str:
        """The node's most important figure; empty if none is known."""
        if self.count or not (self.lag or self.rate is not None):
            return self.count
        return f"{amounts.number(self.lag)} wait" if self.lag else amounts.rate(self.rate)


@dataclass(frozen=True, slots=True)
class Edge:
    """The flow of messages from one node to another, which are named by their keys."""

    start: str
    end: str
    tone: Tone
    rate: float | None


def anchor(name: str) -> str:
    """The id of a component or route within a page; any name becomes one that fits into a URL."""
    return "part-" + re.sub(r"[^A-Za-z0-9_-]", lambda match: f"_{ord(match[0]):x}", name)


@dataclass(frozen=True, slots=True)
class NodeBox:
    """A node with its position and size in the picture."""

    node: FlowNode
    title: str
    """The node's title, shortened to fit into the box."""
    state: str
    """The node's state, shortened to leave room for its figure."""
    x: int
    y: int
    width: int
    height: int
    leads: str
    """Titles of the first nodes to which it leads, if the columns behind have several; empty for none."""


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
    is_broad: bool
    """True if the picture has more columns than the page is wide, and may have more than the page's width."""
    is_wide: bool
    """True if the picture has so many columns that it is scrolled, rather than shrunk."""
    heads: tuple[tuple[str, int], ...]
    """Headings of the columns, with their x coordinates."""
    boxes: tuple[NodeBox, ...]
    lines: tuple[Line, ...]
    more: tuple[tuple[str, str, int, int], ...]
    """Notes on nodes left out of a column, each with the URL of all, or an empty text, and the coordinates."""


def draw(columns: Sequence[tuple[str, Sequence[FlowNode]]], edges: Iterable[Edge]) -> Picture:
    """Computes the picture of nodes in columns, each with a heading, and of the flows between them."""
    width = max(_WIDTH, len(columns) * (_BOX + _LEAST_WAY) - _LEAST_WAY)
    edges = list(edges)
    kept = list(_kept(columns, edges))
    leads = _leads(columns, edges)
    rows = max(len(nodes) + (total > len(nodes)) for _, nodes, total in kept)
    inner = max(rows, 1) * (_HEIGHT + _GAP) - _GAP
    step = (width - _BOX) / max(len(columns) - 1, _COLUMNS - 1)
    boxes: dict[str, NodeBox] = {}
    more = []
    for number, (_, nodes, total) in enumerate(kept):
        x = round(number * step)
        count = len(nodes) + (total > len(nodes))
        y = _TOP + (inner - (count * (_HEIGHT + _GAP) - _GAP)) // 2
        titles = distinct([node.title for node in nodes], _TITLE_LETTERS)
        for node, title in zip(nodes, titles, strict=True):
            room = _LINE_LETTERS - len(node.figure) - 1 if node.figure else _LINE_LETTERS
            state = shortened(node.state, max(room, _LEAST_LETTERS))
            boxes[node.key] = NodeBox(node, title, state, x, y, _BOX, _HEIGHT, leads.get(node.key, ""))
            y += _HEIGHT + _GAP
        if total > len(nodes):
            more.append((f"and {total - len(nodes)} more", nodes[0].href.partition("#")[0], x, y + 24))
    lines = [
        Line(_curve(boxes[edge.start], boxes[edge.end]), edge.tone, _thickness(edge.rate))
        for edge in edges
        if edge.start in boxes and edge.end in boxes
    ]
    heads = tuple((head, round(number * step)) for number, (head, _, _) in enumerate(kept))
    # Lines with a flow are drawn over idle ones.
    lines.sort(key=lambda line: (line.tone is not Tone.IDLE, line.width))
    is_broad, is_wide = width > _WIDTH, width > _MOST_WIDTH
    shown = heads, tuple(boxes.values()), tuple(lines), tuple(more)
    return Picture(width, _TOP + inner + 6, is_broad, is_wide, *shown)


def _kept(
    columns: Sequence[tuple[str, Sequence[FlowNode]]], edges: Sequence[Edge]
) -> Iterator[tuple[str, Sequence[FlowNode], int]]:
    """Each column with the nodes to draw and the number of all: what fails first, then where drawn nodes lead to."""
    order = (Tone.BAD, Tone.WARN, Tone.GOOD, Tone.IDLE)
    reached: set[str] = set()

    def rank(node: FlowNode) -> tuple[int, bool, int, float]:
        place = order.index(node.tone)
        return min(place, 2), node.key not in reached, place, -(node.rate or 0.0)

    for head, nodes in columns:
        first = {node.key for node in sorted(nodes, key=rank)[:_MOST]}
        reached |= {edge.end for edge in edges if edge.start in first}
        yield head, [node for node in nodes if node.key in first], len(nodes)


def _leads(columns: Sequence[tuple[str, Sequence[FlowNode]]], edges: Sequence[Edge]) -> dict[str, str]:
    """By key of a node, the titles of those to which it leads; a node that is alone in its column is left out."""
    titles = {node.key: node.title for _, nodes in columns if len(nodes) > 1 for node in nodes}
    found: dict[str, list[str]] = {}
    for edge in edges:
        if edge.end in titles:
            found.setdefault(edge.start, []).append(titles[edge.end])
    return {start: listed(ends) for start, ends in found.items()}


def _curve(start: NodeBox, end: NodeBox) -> str:
    x1, y1 = start.x + start.width, start.y + start.height // 2
    x2, y2 = end.x, end.y + end.height // 2
    bend = (x2 - x1) // 2
    return f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"


def _thickness(rate: float | None) -> float:
    """The width of a line; ten times the rate makes it 1.2 units wider."""
    return 1.5 if not rate else round(min(2.0 + 1.2 * math.log10(1 + rate), 8.0), 1)


def distinct(texts: Sequence[str], most: int) -> list[str]:
    """The texts, shortened; of those that would look alike, the part in which they differ is shown."""
    alike: dict[str, list[str]] = {}
    for text in texts:
        alike.setdefault(shortened(text, most), []).append(text)
    return [_differing(text, alike[shortened(text, most)], most) for text in texts]


def _differing(text: str, alike: Sequence[str], most: int) -> str:
    start = next((at for at, letters in enumerate(zip(*alike, strict=False)) if len(set(letters)) > 1), len(text))
    if len(text) <= most or len(set(alike)) == 1 or start >= len(text):
        return shortened(text, most)
    front = most // 3
    rest = text[start:]
    left = most - front - 1
    return f"{text[:front]}…{rest if len(rest) <= left else rest[: left - 1] + '…'}"


def shortened(text: str, length: int) -> str:
    """The text with at most so many letters: of a longer one, the middle is left out, since names differ at the end."""
    if len(text) <= length:
        return text
    kept = max(length, 3) - 1
    return f"{text[: kept // 2]}…{text[len(text) - (kept - kept // 2) :]}"
