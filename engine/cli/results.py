"""Results of tests from files, for `jms-bridge test` and `jms-bridge topology test`: as lines, JSON and JUnit's XML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar
from xml.etree import ElementTree as ET

import typer

from engine.cli.output import json_bytes, show_bytes
from engine.printable import json_text, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from engine.route_tests import Difference
    from routes.errors import Fault

__all__ = ["Junit", "NamedCase", "TestOutcome", "end", "read_all", "show_result", "totals", "write_junit"]

Junit = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Also write the results as JUnit XML, which CI systems read.", readable=False),
]
_FAILED = 1
"""Exit code when a test fails."""


class NamedCase(Protocol):
    """A test case of a file."""

    @property
    def name(self) -> str:
        """Name of the case."""

    @property
    def file(self) -> str:
        """Path of its file, as it was given."""

    @property
    def line(self) -> int:
        """Line of the case, from 1."""


class TestOutcome(Protocol):
    """A case with the differences from its expectations."""

    @property
    def case(self) -> NamedCase:
        """The case."""

    @property
    def differences(self) -> tuple[Difference, ...]:
        """The expectations that are not met."""

    @property
    def passed(self) -> bool:
        """True if all expectations are met."""


_Case = TypeVar("_Case")
_Outcome = TypeVar("_Outcome", bound=TestOutcome)


def read_all(files: Sequence[Path], read: Callable[[Path], Iterable[_Case]]) -> list[_Case]:
    """Cases of all files; raises ConfigurationError with the faults of all files."""
    from routes.errors import ConfigurationError

    cases: list[_Case] = []
    faults: list[Fault] = []
    for file in files:
        try:
            cases += read(file)
        except ConfigurationError as error:
            faults += error.faults
    if faults:
        raise ConfigurationError(faults)
    return cases


def show_result(
    result: _Outcome, details: Callable[[_Outcome], list[str]] | None = None, *, json_output: bool = False
) -> None:
    """Prints a result: a line, and for a failed test the differences and details."""
    if json_output:
        typer.echo(json_text(_result_json(result)))
    else:
        typer.echo(printable("\n".join(_result_lines(result, details))))


def totals(results: Sequence[TestOutcome]) -> str:
    """The number of tests, and how many failed."""
    failed = sum(not result.passed for result in results)
    return f"{len(results)} test{'s' * (len(results) != 1)}, {failed} failed"


def end(results: Sequence[TestOutcome]) -> None:
    """Ends the command with exit code 1 if a test failed."""
    if not all(result.passed for result in results):
        raise typer.Exit(_FAILED)


def write_junit(
    file: Path, results: Sequence[_Outcome], details: Callable[[_Outcome], list[str]] | None = None
) -> None:
    """Writes the results as JUnit's XML; UsageError if the file cannot be written."""
    from engine.errors import UsageError

    try:
        file.write_bytes(_junit(results, details))
    except OSError as error:
        msg = f"--junit {file}: {error.strerror}"
        raise UsageError(msg) from error


def _result_lines(result: _Outcome, details: Callable[[_Outcome], list[str]] | None) -> list[str]:
    """A line, and for a failed test the differences; with `details` also these."""
    if result.passed:
        return [f"ok    {result.case.name}"]
    lines = [f"FAIL  {result.case.name}"]
    for difference in result.differences:
        lines += [f"      {line}" for line in _difference_lines(result, difference)]
    if details is not None:
        lines += [f"      {line}".rstrip() for line in details(result)]
    return lines


def _result_json(result: TestOutcome) -> dict[str, Any]:
    """The result of a test as a JSON object."""
    return {
        "name": result.case.name,
        "file": result.case.file,
        "line": result.case.line,
        "passed": result.passed,
        "differences": [_difference_json(difference) for difference in result.differences],
    }


def _junit(results: Sequence[_Outcome], details: Callable[[_Outcome], list[str]] | None) -> bytes:
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
                failure.text = printable("\n".join(_result_lines(result, details)))
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True))


def _difference_lines(result: TestOutcome, difference: Difference) -> list[str]:
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
