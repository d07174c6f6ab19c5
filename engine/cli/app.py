"""The whole command line in one place: which commands there are, and how any error leaves the process.

The module of a command is imported when the command runs or its help is shown. Libraries that take long to import
(Spark, the Kafka client) are imported inside the commands that need them.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import MarkupMode, TyperGroup
from typer.main import get_command_from_info, get_group_from_info
from typer.models import CommandInfo, TyperInfo

from engine.cli.options import Command, examples
from engine.cli.output import complain, version
from engine.errors import ClientEndedError, ServerEndedError, UsageError
from routes.errors import BridgeError, ConfigurationError

__all__ = ["app", "main"]

_INTERRUPTED = 130
_DEBUG = "JMS_BRIDGE_DEBUG"
_MARKUP: MarkupMode = "markdown"

_COMMANDS = {
    "init": "config.init",
    "run": "run.run",
    "reload": "reload.reload",
    "restart": "reload.restart",
    "pause": "reload.pause",
    "resume": "reload.resume",
    "status": "status.status",
    "lag": "status.lag",
    "doctor": "doctor.doctor",
    "validate": "config.validate",
    "diff": "config.diff",
    "test": "test.check_routes",
    "explain": "explain.explain",
    "send": "messages.send",
    "receive": "messages.receive",
    "request": "messages.request",
    "find": "find.find",
    "journal": "journal.app",
    "message": "message.message",
    "dlt": "dlt.app",
    "looks": "audit.looks",
    "audit": "audit.audit",
    "backup": "backup.backup",
    "restore": "backup.restore",
    "schema": "schema.app",
    "config": "config.config",
    "topology": "topology.app",
}
"""Commands in the order of the help, each with its module in this package and the name of its `Command` or `Typer`."""


class _Commands(Mapping[str, Any]):
    """The commands in the form of Typer, each made when it is first looked up."""

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)

    def __getitem__(self, name: str) -> Any:
        return _made(name)


@functools.cache
def _made(name: str) -> Any:
    module, _, attribute = _COMMANDS[name].partition(".")
    found = getattr(import_module(f"engine.cli.{module}"), attribute)
    if isinstance(found, Command):
        info = CommandInfo(name, callback=found.run, epilog=found.epilog)
        return get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode=_MARKUP)
    group = TyperInfo(found)
    return get_group_from_info(group, pretty_exceptions_short=True, suggest_commands=True, rich_markup_mode=_MARKUP)


class _Root(TyperGroup):
    """The program as a group of `_Commands`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()  # type: ignore[assignment] # Typer only reads it


app = typer.Typer(
    name="jms-bridge",
    cls=_Root,
    help="Carries messages between JMS brokers, NATS and Kafka, by the routes in a properties file.",
    epilog=examples(
        "jms-bridge run",
        "jms-bridge reload",
        "jms-bridge status",
        "jms-bridge doctor",
        "jms-bridge validate",
        "jms-bridge test",
        'jms-bridge send queue:orders --property region=emea "hello"',
        "jms-bridge receive kafka:orders",
        'jms-bridge request nats:prices.get "EURUSD"',
        "jms-bridge explain --address queue:orders --property region=emea",
        "jms-bridge find --message-id ID:42",
        "jms-bridge dlt list",
    ),
    no_args_is_help=True,
    rich_markup_mode=_MARKUP,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit: 0, or the exit code of the error, which is told in one line on stderr."""
    sys.exit(_run(arguments))


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version())
        raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Options before the command."""


def _run(arguments: list[str] | None) -> int:
    try:
        return app(arguments, prog_name="jms-bridge", standalone_mode=False) or 0
    except BridgeError as error:
        complain(str(error))
        return error.exit_code
    except (ClientEndedError, ServerEndedError) as error:
        complain(f"{error}; start it again")
        return BridgeError.exit_code
    except typer.TyperException as error:
        # Without a command, Typer has shown the help, and raises an error that says nothing.
        if error.format_message():
            complain(_usage(error))
        return UsageError.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED
    except Exception as error:
        if os.environ.get(_DEBUG):
            raise
        if refused := _refused_setting(error):
            complain(refused)
            return ConfigurationError.exit_code
        complain(f"internal error: {type(error).__name__}: {error} ({_DEBUG}=1 shows where)")
        return BridgeError.exit_code


def _refused_setting(error: Exception) -> str | None:
    # Commands that need no Kafka do without the time that its import takes.
    from engine.kafka.errors import refused_setting

    return refused_setting(error)


def _usage(error: typer.TyperException) -> str:
    text = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    return f"{text} (see {context.command_path} --help)" if context is not None else text
