"""Descriptions of a topology: as text in the form of Kafka Streams' `describe()`, as a Mermaid flowchart, and as JSON.

The output is the same each time for one topology, so that tests can compare it whole. No Spark session is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from engine.topologies.library.expression_texts import expression_text
from engine.topologies.library.nodes import (
    SHOWN,
    STATEFUL,
    GroupTable,
    JoinForeign,
    Node,
    Process,
    PythonColumn,
    Repartition,
    SinkNode,
    SourceNode,
    Split,
    children,
)
from engine.topologies.library.python_functions import name_of

__all__ = ["describe", "mermaid", "records"]


def describe(nodes: Sequence[Node]) -> str:
    """The topology in the format of `Topology.describe().toString()` of Kafka Streams."""
    lines, consumers = ["Topologies:"], children(nodes)
    for number, part in enumerate(_parts(nodes)):
        lines.append(f"   Sub-topology: {number}")
        for node in part:
            lines.append(f"    {_kind(node)}: {node.name} ({_detail(node)})")
            if not node.is_end:
                lines.append(f"      --> {_names(child.name for child in consumers.get(node.name, ()))}")
            if not isinstance(node, SourceNode):
                lines.append(f"      <-- {_names(node.parents)}")
    return "\n".join(lines) + "\n"


def records(nodes: Sequence[Node]) -> list[dict[str, Any]]:
    """A JSON object for each node, in the order of flow.

    Its fields are `kind`, `name`, `operator`, parents (`after`), children (`before`), constant `topics`, whether it is
    `stateful`, whether its state can be `asked`, the name of its `python` function, empty for native nodes, and its
    `expression` as the user wrote it, empty for nodes without one.
    """
    consumers = children(nodes)
    return [
        {
            "kind": _kind(node).lower(),
            "name": node.name,
            "operator": _operator(node),
            "after": list(node.parents),
            "before": [child.name for child in consumers.get(node.name, ())],
            "topics": _topics(node),
            "stateful": isinstance(node, STATEFUL),
            "asked": isinstance(node, SHOWN),
            "python": _python(node),
            "expression": expression_text(node),
        }
        for node in nodes
    ]


def mermaid(nodes: Sequence[Node]) -> str:
    """The topology as a Mermaid flowchart, left to right; topics are drawn as cylinders."""
    ids = {node.name: f"n{index}" for index, node in enumerate(nodes)}
    lines = ["flowchart LR"]
    topics: dict[str, str] = {}
    edges: list[str] = []

    def topic(name: str) -> str:
        if name not in topics:
            topics[name] = f"t{len(topics)}"
            lines.append(f'  {topics[name]}[("{_quoted(name)}")]')
        return topics[name]

    for node in nodes:
        opening, closing = ("{{", "}}") if isinstance(node, Split) else ("[", "]")
        lines.append(f'  {ids[node.name]}{opening}"{_quoted(node.name)}"{closing}')
        edges += [f"  {ids[parent]} --> {ids[node.name]}" for parent in node.parents]
        if isinstance(node, SourceNode):
            edges.append(f"  {topic(node.topic)} --> {ids[node.name]}")
        elif isinstance(node, SinkNode):
            edges += [f"  {ids[node.name]} {arrow} {topic(name)}" for name, arrow in _targets(node)]
    return "\n".join([*lines, *edges]) + "\n"


def _topics(node: Node) -> list[str]:
    if isinstance(node, SourceNode):
        return [node.topic]
    return sorted({topic for topic, _ in _targets(node)}) if isinstance(node, SinkNode) else []


def _targets(sink: SinkNode) -> Iterator[tuple[str, str]]:
    """Each constant topic of a sink, with the Mermaid arrow that leads to it."""
    if isinstance(sink.topic, str):
        yield sink.topic, "-->"
    else:
        for label, name in sink.choices.items():
            yield name, f'-- "{_quoted(label)}" -->'


def _parts(nodes: Sequence[Node]) -> Iterator[list[Node]]:
    """The connected parts of the topology, each with its nodes in the order of flow."""
    part_of: dict[str, int] = {}
    for index, node in enumerate(nodes):
        joined = {part_of[parent] for parent in node.parents}
        target = min(joined, default=index)
        part_of[node.name] = target
        if joined - {target}:
            part_of = {name: target if part in joined else part for name, part in part_of.items()}
    for part in dict.fromkeys(part_of.values()):
        yield [node for node in nodes if part_of[node.name] == part]


def _kind(node: Node) -> str:
    return {SourceNode: "Source", SinkNode: "Sink"}.get(type(node), "Processor")


def _detail(node: Node) -> str:
    match node:
        case SourceNode():
            return f"topics: [{node.topic}]"
        case SinkNode(topic=str() as topic, is_compacted=True):
            return f"topic: {topic}, compacted"
        case SinkNode(topic=str() as topic):
            return f"topic: {topic}"
        case SinkNode(choices=choices) if choices:
            return f"topic: {node.topic}"
        case SinkNode():
            return "topic: taken from the record"
        case Repartition() | GroupTable():
            stores = node.name if isinstance(node, GroupTable) else ""
            return f"stores: [{stores}], through an internal topic"
        case JoinForeign():
            return f"stores: [{node.name}], through two internal topics"
    python = f", Python: {name}" if (name := _python(node)) else ""
    return f"stores: [{node.name if isinstance(node, STATEFUL) else ''}]{python}"


def _operator(node: Node) -> str:
    """The operator in words: `join streams`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__.removesuffix("Node")).lower()


def _python(node: Node) -> str:
    match node:
        case PythonColumn():
            return name_of(node.function.function)
        case Process():
            return name_of(node.function)
    return ""


def _names(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _quoted(text: str) -> str:
    return text.replace("#", "#35;").replace('"', "#quot;")
