"""`jms-bridge test`: tests of routes, from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.explain import explanation_text
from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, command, load
from engine.cli.results import Junit, end, read_all, show_result, totals, write_junit
from engine.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.route_tests import Result
    from routes.model import Route

__all__ = ["check_routes"]


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
    junit: Junit = None,
    json_output: Json = False,
) -> None:
    """Test the routes: route each message in the files, and compare the result with the expected one.

    Needs no server, except the schema registry for bodies with a schema; messages are evaluated as by `explain`. The
    exit code is 0 if all tests pass, 1 if one fails, 2 if the configuration or a test file has faults.
    """
    from engine.route_tests import DEFAULT_FILE, check, read_cases

    settings = load(config)
    cases = read_all(files or [config.with_name(DEFAULT_FILE)], read_cases)
    results = [check(case, settings) for case in cases]
    details = _explained if explain else None
    for result in results:
        show_result(result, details, json_output=json_output)
    if junit is not None:
        write_junit(junit, results, _explained)
    if not json_output:
        typer.echo(_summary(results, settings.own_routes))
    end(results)


def _summary(results: Sequence[Result], routes: Sequence[Route]) -> str:
    explained = (each for result in results for each in result.explanation.publications)
    taken = {each.route.name for each in explained if each.route}
    untested = [route.name for route in routes if route.name not in taken]
    text = totals(results)
    return printable(f"{text}; routes without a test: {', '.join(untested)}" if untested else text)


def _explained(result: Result) -> list[str]:
    """The lines that show how the message of a test was routed."""
    return ["", *explanation_text(result.explanation), ""]
