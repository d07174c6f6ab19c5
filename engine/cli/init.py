"""`jms-bridge init`: a properties file to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.cli.options import DEFAULT_CONFIG, Json, examples
from engine.cli.output import note
from engine.errors import SetupError, UsageError
from engine.printable import json_text
from engine.private import create_file

__all__ = ["init", "register"]

_TESTS = "routes.test.yaml"
_TEMPLATES = Path(__file__).with_name("templates")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=examples("jms-bridge init", "jms-bridge init /etc/jms-bridge/jms-bridge.properties"))(init)


def init(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What to write; it must not be there.", readable=False)
    ] = DEFAULT_CONFIG,
    json_output: Json = False,
) -> None:
    """Write a properties file with an example of everything, which runs as it is, and tests of its routes beside it.

    Tests that are there already stay as they are.
    """
    if file.exists():
        msg = f"{file} is there already and stays as it is; name another file"
        raise UsageError(msg)
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
