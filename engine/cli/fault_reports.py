"""Faults of a configuration for programs: JSON, annotations of GitHub Actions, SARIF."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from engine.cli.output import version
from engine.printable import json_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from routes.errors import Fault

__all__ = ["FaultFormat", "report"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class FaultFormat(StrEnum):
    """Formats in which faults are printed."""

    TEXT = "text"
    JSON = "json"
    """A JSON value on each line."""
    GITHUB = "github"
    """Workflow commands, which GitHub shows at the line of a change."""
    SARIF = "sarif"
    """Static Analysis Results Interchange Format 2.1.0 (OASIS), which code scanning tools read."""


def report(faults: Sequence[Fault], form: FaultFormat) -> Iterator[str]:
    """The lines for programs; `TEXT` is none of them."""
    if form is FaultFormat.SARIF:
        yield json_text(_sarif(faults), indent=2)
    for fault in faults:
        if form is FaultFormat.JSON:
            yield json_text(dataclasses.asdict(fault))
        elif form is FaultFormat.GITHUB:
            yield _annotation(fault)


def _text(fault: Fault) -> str:
    return f"{fault.message} ({fault.hint})" if fault.hint else fault.message


def _annotation(fault: Fault) -> str:
    """A workflow command; what would end it or one of its properties is percent-encoded."""
    place = {"file": fault.file, "line": fault.line, "col": fault.column}
    properties = ",".join(f"{name}={_escaped(str(value), ':,')}" for name, value in place.items() if value)
    return f"::{fault.level} {properties}::{_escaped(_text(fault))}"


def _escaped(text: str, more: str = "") -> str:
    return "".join(f"%{ord(char):02X}" if char in "%\r\n" + more else char for char in text)


def _sarif(faults: Sequence[Fault]) -> dict[str, Any]:
    driver = {"name": "jms-bridge", "version": version(), "rules": [{"id": "configuration"}]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(fault) for fault in faults],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(fault: Fault) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": quote(fault.file)}}
    if fault.line:
        location["region"] = {"startLine": fault.line, "startColumn": max(fault.column, 1)}
    return {
        "ruleId": "configuration",
        "level": str(fault.level),
        "message": {"text": _text(fault)},
        "locations": [{"physicalLocation": location}],
    }
