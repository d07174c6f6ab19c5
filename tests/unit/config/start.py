"""A configuration to which tests add lines."""

from __future__ import annotations

from routes.config import lint_text

__all__ = ["START", "faults"]

START = """\
bridge.id=b
source.s.type=stomp
source.s.destinations=queue:q
routes.r.in.include=msg.address==q
routes.r.out.topic=t
"""
"""A configuration without a fault, five lines long."""


def faults(*lines: str) -> list[str]:
    """Faults of START and these lines after it."""
    return [str(fault) for fault in lint_text(START + "\n".join(lines)).faults]
