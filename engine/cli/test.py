"""`jms-bridge test`: tests of routes, from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, examples, load
from engine.printable import json_text, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.route_tests import Case, Result
    from routes.errors import Fault
    from routes.model import Config

__all__ = ["FAILED", "command", "register"]

FAILED = 1
"""Exit code when a test fails."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "test",
        epilog=examples(
            "jms-bridge test",
            "jms-bridge test --explain",
            "jms-bridge test -c /etc/jms-bridge.properties orders.test.yaml payments.test.yaml",
            "jms-bridge test --junit report.xml",
        ),
    )(command)


def command(
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
    """Test the routes: each message in the files is routed, and compared with what is expected of it.

    Needs no server; the messages are evaluated as by `explain`. Exits with 0 if all tests pass, with 1 if one fails,
    with 2 if the configuration or a test file has faults.
    """
    from engine.cli.results import as_json, as_junit, as_text
    from engine.route_tests import DEFAULT_FILE, check

    settings = load(config)
    cases = _cases(files or [config.with_name(DEFAULT_FILE)])
    results = [check(case, settings) for case in cases]
    for result in results:
        if json_output:
            typer.echo(json_text(as_json(result)))
        else:
            typer.echo(printable("\n".join(as_text(result, explain=explain))))
    if junit is not None:
        _write(junit, as_junit(results))
    if not json_output:
        typer.echo(_summary(results, settings))
    if not all(result.passed for result in results):
        raise typer.Exit(FAILED)


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
