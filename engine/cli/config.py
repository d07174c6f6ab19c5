"""`jms-bridge init | validate | diff | config docs | show`: the properties file, without a server."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, command, examples
from engine.cli.output import console, note, version
from engine.errors import SetupError, UsageError
from engine.printable import json_text, printable
from engine.private import create_file
from engine.topologies.section import TopologiesConfig
from routes.errors import ConfigurationError, Fault, Level

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine.doctor import Finding
    from routes.config import Change
    from routes.config.load import Linted
    from routes.model import Config

__all__ = ["config", "diff", "init", "validate"]

_TESTS = "routes.test.yaml"
_TEMPLATES = Path(__file__).with_name("templates")
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_CONNECT_SECONDS = 5.0
_DIFFERENT = 1
"""Exit code when there is a difference."""

_NOUNS = {"routes": "route"}
_SIGNS = {"added": "+", "removed": "-", "changed": "~", "moved": ">"}


class Broker(StrEnum):
    """Brokers for which there is a properties file to begin with."""

    ACTIVEMQ = "activemq"
    ARTEMIS = "artemis"
    IBM_MQ = "ibm-mq"
    OPENMQ = "openmq"
    ORACLE_AQ = "oracle-aq"
    QPID = "qpid"
    RABBITMQ = "rabbitmq"
    SERVICE_BUS = "service-bus"
    SOLACE = "solace"
    SQS = "sqs"
    TIBCO_EMS = "tibco-ems"
    WEBLOGIC = "weblogic"


class FaultFormat(StrEnum):
    """Formats in which faults are printed."""

    TEXT = "text"
    JSON = "json"
    """A JSON value on each line."""
    GITHUB = "github"
    """Workflow commands, which GitHub shows at the line of a change."""
    SARIF = "sarif"
    """Static Analysis Results Interchange Format 2.1.0 (OASIS), which code scanning tools read."""


@command(
    "jms-bridge init",
    "jms-bridge init /etc/jms-bridge/jms-bridge.properties",
    "jms-bridge init --from ibm-mq mq.properties",
)
def init(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File to write; it must not exist.", readable=False)
    ] = DEFAULT_CONFIG,
    origin: Annotated[
        Broker | None,
        typer.Option("--from", metavar="BROKER", help=f"Write a file for such a broker instead: {', '.join(Broker)}."),
    ] = None,
    json_output: Json = False,
) -> None:
    """Write a properties file with an example of everything, which runs unchanged, and tests of its routes beside it.

    Existing tests are not changed. With --from there are no tests, and the file has the settings to fill in.
    """
    if file.exists():
        msg = f"{file} is there already and stays as it is; name another file"
        raise UsageError(msg)
    if origin is not None:
        _write(file, (_TEMPLATES / f"{origin}.properties").read_text(encoding="utf-8"))
        if json_output:
            typer.echo(json_text({"file": str(file)}))
        else:
            note(f"{file} is there. Next: edit it, then jms-bridge doctor -c {file}, jms-bridge run -c {file}")
        return
    tests = file.with_name(_TESTS)
    written = {file: DEFAULT_CONFIG.name} | ({} if tests.exists() else {tests: _TESTS})
    for path, name in written.items():
        _write(path, (_TEMPLATES / name).read_text(encoding="utf-8"))
    if json_output:
        for path in written:
            typer.echo(json_text({"file": str(path)}))
        return
    beside = f"and {tests} are there" if tests in written else f"is there; {tests} was, and stays as it is"
    option = "" if file == DEFAULT_CONFIG else f" -c {file}"
    note(f"{file} {beside}. Next: jms-bridge doctor{option}, jms-bridge run{option}")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Passwords are going to be in it.
        with create_file(path) as file:
            file.write(text)
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror}"
        raise SetupError(msg) from error


@command(
    "jms-bridge validate",
    "jms-bridge validate -c /etc/jms-bridge.properties",
    "jms-bridge validate --json",
    "jms-bridge validate --format github test.properties production.properties",
    "jms-bridge validate --format sarif > faults.sarif",
    "jms-bridge validate --connect",
)
def validate(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Properties files. Default: that of --config.", readable=False),
    ] = None,
    config: ConfigFile = DEFAULT_CONFIG,
    json_output: Json = False,
    form: Annotated[
        FaultFormat,
        typer.Option(
            "--format",
            metavar="text|json|github|sarif",
            help="Text; a JSON value for each fault; annotations for GitHub Actions; SARIF 2.1.0.",
        ),
    ] = FaultFormat.TEXT,
    connect: Annotated[
        bool,
        typer.Option(
            "--connect",
            help="Also look, for five seconds at most, whether Kafka, the topics of routes and topologies, and the "
            "system of each source and sink are there. Changes nothing.",
        ),
    ] = False,
) -> None:
    """Check configurations and show every fault, with its line, column and remedy. Without --connect, needs no server.

    Topologies are imported from the working directory, built, and planned by Spark, which this command starts for them.

    The exit code is 0 if a bridge and its topologies would start with each of them (warnings are shown), else 2; with
    --connect that of the first failure, as of `jms-bridge doctor`.
    """
    from engine.schemas.file_checks import schema_files
    from engine.schemas.path_checks import paths_by_schema
    from routes.config import lint
    from routes.config.address_checks import addresses_of_sources

    if json_output and form not in (FaultFormat.TEXT, FaultFormat.JSON):
        msg = f"--json and --format {form} do not go together"
        raise UsageError(msg)
    form = FaultFormat.JSON if json_output else form
    checks = (addresses_of_sources, schema_files, paths_by_schema)
    linted = {file: lint(file, checks=checks) for file in files or [config]}
    linted = {file: _with_topologies(file, found) for file, found in linted.items()}
    code = ConfigurationError.exit_code if any(found.errors for found in linted.values()) else 0
    if connect:
        linted, found_code = _connected(linted)
        code = code or found_code
    if form is FaultFormat.TEXT:
        for found in linted.values():
            for fault in found.faults:
                typer.echo(printable(str(fault)))
            typer.echo(printable(_summary(found.config, found.faults)))
    else:
        for line in _for_programs([fault for found in linted.values() for fault in found.faults], form):
            typer.echo(line)
    if code:
        raise typer.Exit(code)


def _with_topologies(file: Path, linted: Linted) -> Linted:
    """The result with the faults of the topologies' definitions as further faults."""
    if linted.config is None or not linted.config.section(TopologiesConfig):
        return linted
    from engine.topologies.runtime.check import check_planned, fault_of
    from routes.config.snapshot import Snapshot

    checked = check_planned(linted.config.section(TopologiesConfig), Snapshot.take(file))
    faults = [fault_of(each, file) for each in checked if each.fault or each.unplanned]
    return dataclasses.replace(linted, faults=(*linted.faults, *faults))


def _connected(linted: Mapping[Path, Linted]) -> tuple[dict[Path, Linted], int]:
    """The results with the faults found at the servers, and the exit code of the first failure."""
    from engine.doctor import Severity, examine_connections, exit_code

    results: dict[Path, Linted] = {}
    findings: list[Finding] = []
    for file, found in linted.items():
        here = [] if found.config is None else examine_connections(found.config, _CONNECT_SECONDS)
        findings += here
        faults = (
            Fault(
                f"{each.name}: {each.found}",
                each.remedy,
                str(file),
                level=Level.ERROR if each.state is Severity.FAILED else Level.WARNING,
            )
            for each in here
            if each.state is not Severity.OK
        )
        results[file] = dataclasses.replace(found, faults=(*found.faults, *faults))
    return results, exit_code(findings)


def _summary(config: Config | None, faults: Sequence[Fault]) -> str:
    errors = sum(fault.level is Level.ERROR for fault in faults)
    counts = f"{_count(errors, 'error')}, {_count(len(faults) - errors, 'warning')}"
    if config is None:
        return f"{counts}: the bridge would not start"
    content = [_count(len(config.own_routes), "route"), _count(len(config.sources), "source")]
    if config.sinks:
        content.append(_count(len(config.sinks), "sink"))
    return f"{config.path}: {', '.join(content)}; {counts}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _for_programs(faults: Sequence[Fault], form: FaultFormat) -> Iterator[str]:
    """Yields the lines of a format for programs, which `TEXT` is not."""
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
    """A workflow command; characters that would end it or one of its properties are percent-encoded."""
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


@command(
    "jms-bridge diff old.properties jms-bridge.properties",
    "git show HEAD:jms-bridge.properties > /tmp/old.properties; "
    "jms-bridge diff /tmp/old.properties jms-bridge.properties --json",
)
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The old properties file.", readable=False)],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The new properties file.", readable=False)],
    json_output: Json = False,
) -> None:
    """Show the differences between two properties files: routes added, removed, changed and moved, and settings.

    The command compares the effect of the files: comments, spelling, and defaults that are written out make no
    difference, but the order of routes does. Secrets are masked. The exit code is 0 if there is no difference, 1 if
    there is one, 2 if a file cannot be read. Needs no server.
    """
    from routes import config as configuration

    changes = configuration.diff(old, new)
    if json_output:
        for change in changes:
            typer.echo(json_text(dataclasses.asdict(change)))
    else:
        for line in _lines(changes):
            typer.echo(printable(line))
    for path in (old, new):
        if errors := len(configuration.lint(path).errors):
            note(f"{path} has {errors} error{'s' * (errors != 1)}: jms-bridge validate {path}")
    if changes:
        raise typer.Exit(_DIFFERENT)


def _lines(changes: Sequence[Change]) -> Iterator[str]:
    """A line for each change; keys of one route, source or sink below its own line."""
    headed = ""
    for change in changes:
        sign, subject = _SIGNS[change.kind], f"{_NOUNS.get(change.section, change.section)} {change.name}"
        if not change.name:
            yield f"{sign} {change.key}  {_values(change)}"
        elif not change.key:
            headed = subject
            yield f"{sign} {subject}" + (f"  was {change.old}, is {change.new}" if change.kind == "moved" else "")
        else:
            if headed != subject:
                headed = subject
                yield f"~ {subject}"
            yield f"    {sign} {change.key.split('.', 2)[2]}  {_values(change)}"


def _values(change: Change) -> str:
    if change.kind == "changed":
        return f"{change.old}  ->  {change.new}"
    return change.new if change.kind == "added" else change.old


config = typer.Typer(name="config", help="Keys of the configuration, and their values.", no_args_is_help=True)


@config.command(epilog=examples("jms-bridge config docs", "jms-bridge config docs > configuration.md"))
def docs() -> None:
    """Print the reference of all keys in Markdown: type, default, meaning, example."""
    from routes.config import reference

    typer.echo(reference(), nl=False)


@config.command(
    epilog=examples("jms-bridge config show", "jms-bridge config show -c /etc/jms-bridge.properties --json")
)
def show(config: ConfigFile = DEFAULT_CONFIG, json_output: Json = False) -> None:
    """Show the configuration in force: each key, its value (secrets masked) and where it comes from."""
    from rich.table import Table

    from routes import config as configuration

    rows = configuration.show(config)
    if json_output:
        for row in rows:
            typer.echo(json_text(dataclasses.asdict(row)))
        return
    table = Table("key", "value", "from", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(row.key, printable(row.value), row.origin)
    console().print(table)
