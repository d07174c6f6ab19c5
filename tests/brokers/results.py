"""The outcome of each case at each broker over each protocol, kept in a file, and the page made of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from tests.brokers.broker import Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["PAGE", "RESULTS", "Result", "Verdict", "markdown", "read", "write"]

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parents[2] / "docs" / "brokers.md"
_HEAD = Path(__file__).with_name("head.md")
_TITLES = {Protocol.STOMP: "STOMP", Protocol.AMQP: "AMQP 1.0", Protocol.JMS: "its JMS client"}
_NOT_RUN = "not run"


class Verdict(StrEnum):
    """What became of a case."""

    OK = "ok"
    REFUSED = "refused"
    """The bridge refuses the start, and says why."""
    DIFFERS = "differs"


@dataclass(frozen=True)
class Result:
    """A cell of the table."""

    broker: str
    """Name in the registry."""
    title: str
    version: str
    protocol: Protocol
    client: str
    """Client of the application on the other side."""
    case: str
    verdict: Verdict
    notes: Sequence[str]
    """Reasons of a refusal, differences, or remarks of a case that is ok."""


def read() -> list[Result]:
    """Returns the results of former runs; none without a file."""
    if not RESULTS.exists():
        return []
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))
    return [
        Result(**{**row, "protocol": Protocol(row["protocol"]), "verdict": Verdict(row["verdict"])}) for row in rows
    ]


def write(results: Sequence[Result], cases: Sequence[str]) -> None:
    """Writes the file of results and the page; `cases` are the rows in their order."""
    rows = [asdict(result) for result in results]
    RESULTS.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(markdown(results, cases), encoding="utf-8")


def markdown(results: Sequence[Result], cases: Sequence[str]) -> str:
    """Returns the page: a summary of all brokers, then a table for each."""
    columns: dict[tuple[str, str, Protocol], dict[str, Result]] = {}
    for result in results:
        columns.setdefault((result.title, result.version, result.protocol), {})[result.case] = result
    lines = [_HEAD.read_text(encoding="utf-8").rstrip(), "", "## Summary", ""]
    lines += ["| broker | protocol | application | ok | differs | refused | not run |", "|---|---|---|--:|--:|--:|--:|"]
    for (title, version, protocol), found in columns.items():
        verdicts = [found[case].verdict if case in found else None for case in cases]
        counts = " | ".join(str(verdicts.count(each)) for each in (Verdict.OK, Verdict.DIFFERS, Verdict.REFUSED, None))
        client = next(iter(found.values())).client
        lines.append(f"| {title} {version} | {_TITLES[protocol]} | {client} | {counts} |")
    for title, version in dict.fromkeys((title, version) for title, version, _ in columns):
        own = {protocol: columns[each] for each in columns for protocol in [each[2]] if each[:2] == (title, version)}
        lines += ["", f"## {title} {version}", "", *_table(own, cases)]
    return "\n".join(lines) + "\n"


def _table(columns: Mapping[Protocol, Mapping[str, Result]], cases: Sequence[str]) -> list[str]:
    lines = [f"| case | {' | '.join(_TITLES[protocol] for protocol in columns)} |", f"|---|{'---|' * len(columns)}"]
    rows = ([_cell(found.get(case)) for found in columns.values()] for case in cases)
    return lines + [f"| {case} | {' | '.join(cells)} |" for case, cells in zip(cases, rows, strict=True)]


def _cell(result: Result | None) -> str:
    if result is None:
        return _NOT_RUN
    notes = "<br>".join(" ".join(note.split()).replace("|", "\\|").replace("<", "&lt;") for note in result.notes)
    verdict = "ok" if result.verdict is Verdict.OK else f"**{result.verdict}**"
    return f"{verdict}: {notes}" if notes else verdict
