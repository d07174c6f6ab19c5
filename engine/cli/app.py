"""The whole command line in one place: which commands there are, and how any error leaves the process.

Libraries that take long to import (Spark, the Kafka client) are imported inside the commands that need them, so that
`--help` and the source workers start at once.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from engine.cli import config, dlt, doctor, explain, messages, reload, run, status, test, topology
from engine.cli.options import examples
from engine.cli.output import complain, version
from engine.errors import ClientEndedError, ServerEndedError, UsageError
from routes.errors import BridgeError, ConfigurationError

__all__ = ["app", "main"]

_INTERRUPTED = 130
_DEBUG = "JMS_BRIDGE_DEBUG"

app = typer.Typer(
    name="jms-bridge",
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
        "jms-bridge dlt list",
    ),
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    config.init,
    run.run,
    reload.reload,
    reload.restart,
    status.status,
    status.lag,
    doctor.doctor,
    config.validate,
    config.diff,
    test.check_routes,
    explain.explain,
    messages.send,
    messages.receive,
    messages.request,
):
    app.command(command.name, epilog=command.epilog)(command.run)
app.add_typer(messages.journal)
app.add_typer(dlt.app)
app.add_typer(config.config)
app.add_typer(topology.app)


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
