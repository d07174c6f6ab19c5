"""`jms-bridge topology test`: tests of topologies, from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.cli.options import Json, command
from engine.cli.results import Junit, end, read_all, show_result, totals, write_junit

__all__ = ["check_topologies"]


@command(
    "jms-bridge topology test",
    "jms-bridge topology test examples/order_totals.test.yaml",
    "jms-bridge topology test orders.test.yaml payments.test.yaml --junit report.xml",
    name="test",
)
def check_topologies(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="Files with tests. Default: topologies.test.yaml in the working directory.",
            readable=False,
        ),
    ] = None,
    junit: Junit = None,
    json_output: Json = False,
) -> None:
    """Test topologies: process the records in the files, and compare the results with the expected ones.

    Needs no server and no properties file. Each test begins with empty state. The exit code is 0 if all tests pass, 1
    if one fails, 2 if a test file or a topology has faults.
    """
    from engine.topology_tests import DEFAULT_FILE, check_cases, read_topology_cases

    results = []
    for result in check_cases(read_all(files or [Path(DEFAULT_FILE)], read_topology_cases)):
        show_result(result, json_output=json_output)
        results.append(result)
    if junit is not None:
        write_junit(junit, results)
    if not json_output:
        typer.echo(totals(results))
    end(results)
