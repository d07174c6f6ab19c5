"""Results of route tests: text for people, JSON for programs, JUnit XML for CI systems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from engine.cli.explanation import as_text as explained
from engine.cli.output import json_bytes, show_bytes
from engine.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.route_tests import Difference, Result

__all__ = ["as_json", "as_junit", "as_text"]


def as_text(result: Result, *, explain: bool = False) -> list[str]:
    """A line, and for a failed test what differs; with `explain` also how its message was routed."""
    if result.passed:
        return [f"ok    {result.case.name}"]
    lines = [f"FAIL  {result.case.name}"]
    for difference in result.differences:
        lines += [f"      {line}" for line in _difference_lines(result, difference)]
    if explain:
        lines += ["", *(f"      {line}".rstrip() for line in explained(result.explanation)), ""]
    return lines


def as_json(result: Result) -> dict[str, Any]:
    """The result of a route test as a JSON object."""
    return {
        "name": result.case.name,
        "file": result.case.file,
        "line": result.case.line,
        "passed": result.passed,
        "differences": [_difference_json(difference) for difference in result.differences],
    }


def as_junit(results: Sequence[Result]) -> bytes:
    """JUnit's XML report, with a suite for each file."""
    root = ET.Element("testsuites")
    for file in dict.fromkeys(result.case.file for result in results):
        of_file = [result for result in results if result.case.file == file]
        failures = str(sum(not result.passed for result in of_file))
        suite = ET.SubElement(root, "testsuite", name=file, tests=str(len(of_file)), failures=failures, errors="0")
        for result in of_file:
            case = ET.SubElement(
                suite,
                "testcase",
                name=printable(result.case.name),
                classname=file,
                file=file,
                line=str(result.case.line),
            )
            if not result.passed:
                what = ", ".join(difference.expected.what for difference in result.differences)
                failure = ET.SubElement(case, "failure", message=printable(f"not as expected: {what}"))
                failure.text = printable("\n".join(as_text(result, explain=True)))
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True))


def _difference_lines(result: Result, difference: Difference) -> list[str]:
    expected = difference.expected
    place = f"{result.case.file}:{expected.place.line}:{expected.place.column}"
    return [
        f"{place}: {expected.what}",
        f"  expected  {_shown(difference.wanted)}",
        f"  found     {_shown(difference.found)}",
    ]


def _difference_json(difference: Difference) -> dict[str, Any]:
    place = difference.expected.place
    return {
        "what": difference.expected.what,
        "line": place.line,
        "column": place.column,
        **json_bytes("expected", _bytes(difference.wanted)),
        **json_bytes("found", _bytes(difference.found)),
    }


def _shown(value: str | bytes | None) -> str:
    return value if value and isinstance(value, str) else show_bytes(_bytes(value)) or "(empty)"


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode("utf-8", "replace") if isinstance(value, str) else value
