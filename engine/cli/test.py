"""`jms-bridge test`: tests of routes, from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from xml.etree import ElementTree as ET

import typer

from engine.cli.explain import explanation_text
from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, command, load
from engine.cli.output import json_bytes, show_bytes
from engine.printable import json_text, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.route_tests import Case, Difference, Result
    from routes.errors import Fault
    from routes.model import Config

__all__ = ["check_routes"]

_FAILED = 1
"""Exit code when a test fails."""


@command(
    "jms-bridge test",
    "jms-bridge test --explain",
    "jms-bridge test -c /etc/jms-bridge.properties orders.test.yaml payments.test.yaml",
    "jms-bridge test --junit report.xml",
    name="test",
)
def check_routes(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="Files with tests. Default: routes.test.yaml beside the properties file.",
            readable=False,
        ),
    ] = None,
    config: ConfigFile = DEFAULT_CONFIG,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show how the message of a failed test is routed.")
    ] = False,
    junit: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also write the results as JUnit XML, which CI systems read.", readable=False
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    """Test the routes: route each message in the files, and compare the result with the expected one.

    Needs no server; messages are evaluated as by `explain`. The exit code is 0 if all tests pass, 1 if one fails, 2 if
    the configuration or a test file has faults.
    """
    from engine.route_tests import DEFAULT_FILE, check

    settings = load(config)
    cases = _cases(files or [config.with_name(DEFAULT_FILE)])
    results = [check(case, settings) for case in cases]
    for result in results:
        if json_output:
            typer.echo(json_text(_result_json(result)))
        else:
            typer.echo(printable("\n".join(_result_lines(result, explain=explain))))
    if junit is not None:
        _write(junit, _junit(results))
    if not json_output:
        typer.echo(_summary(results, settings))
    if not all(result.passed for result in results):
        raise typer.Exit(_FAILED)


def _cases(files: Sequence[Path]) -> list[Case]:
    """Cases of all files; raises ConfigurationError with the faults of all files."""
    from engine.route_tests import read_cases
    from routes.errors import ConfigurationError

    cases: list[Case] = []
    faults: list[Fault] = []
    for file in files:
        try:
            cases += read_cases(file)
        except ConfigurationError as error:
            faults += error.faults
    if faults:
        raise ConfigurationError(faults)
    return cases


def _write(file: Path, content: bytes) -> None:
    from engine.errors import UsageError

    try:
        file.write_bytes(content)
    except OSError as error:
        msg = f"--junit {file}: {error.strerror}"
        raise UsageError(msg) from error


def _summary(results: Sequence[Result], config: Config) -> str:
    failed = sum(not result.passed for result in results)
    taken = {result.explanation.route.name for result in results if result.explanation.route}
    untested = [route.name for route in config.own_routes if route.name not in taken]
    text = f"{len(results)} test{'s' * (len(results) != 1)}, {failed} failed"
    return printable(f"{text}; routes without a test: {', '.join(untested)}" if untested else text)


def _result_lines(result: Result, *, explain: bool = False) -> list[str]:
    """A line, and for a failed test what differs; with `explain` also how its message was routed."""
    if result.passed:
        return [f"ok    {result.case.name}"]
    lines = [f"FAIL  {result.case.name}"]
    for difference in result.differences:
        lines += [f"      {line}" for line in _difference_lines(result, difference)]
    if explain:
        lines += ["", *(f"      {line}".rstrip() for line in explanation_text(result.explanation)), ""]
    return lines


def _result_json(result: Result) -> dict[str, Any]:
    """The result of a route test as a JSON object."""
    return {
        "name": result.case.name,
        "file": result.case.file,
        "line": result.case.line,
        "passed": result.passed,
        "differences": [_difference_json(difference) for difference in result.differences],
    }


def _junit(results: Sequence[Result]) -> bytes:
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
                failure.text = printable("\n".join(_result_lines(result, explain=True)))
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
