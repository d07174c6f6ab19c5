"""docs/cli.md, made from the commands themselves: `python -m engine.cli.reference > docs/cli.md`."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

import typer.main

from engine.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["reference"]

_INTRODUCTION = """\
# Command line

This page is made from the commands (`python -m engine.cli.reference > docs/cli.md`); `jms-bridge COMMAND --help` says
the same. Data goes to standard output, notes and errors to standard error. An error is one line, without a stack
trace; the exit code shows its kind:

| code | meaning |
|---|---|
| 0 | done |
| 1 | `test`: a test failed; `diff`: files differ; `status`: not ready; else an error, `JMS_BRIDGE_DEBUG=1` says where |
| 2 | the configuration, or a file with tests, has faults or cannot be read |
| 3 | this machine cannot run the bridge: Java, a port in use, a folder that cannot be written |
| 4 | a broker refuses: topic missing or invalid, not authorised, message too large |
| 5 | a message failed and the policy of its route is `stop` |
| 6 | a broker does not answer, or nothing arrived in time |
| 7 | `request` was sent and got no reply |
| 64 | the command's arguments are invalid, or the file of `--body-file` cannot be read |
| 130 | interrupted |
"""


def reference() -> str:
    """The page, in Markdown."""
    root = typer.main.get_command(app)
    sections = [_INTRODUCTION, *(_section(name, command) for name, command in _commands("jms-bridge", root))]
    return "\n".join(sections)


def _commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    for name, child in command.commands.items():
        if hasattr(child, "commands"):
            if child.invoke_without_command:
                yield f"{path} {name}", child
            yield from _commands(f"{path} {name}", child)
        else:
            yield f"{path} {name}", child


def _section(path: str, command: Any) -> str:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [
        parameter
        for parameter in command.params
        if parameter.param_type_name == "option" and not parameter.hidden and parameter.name != "help"
    ]
    usage = " ".join([path, *(["[OPTIONS]"] if options else []), *(_usage(argument) for argument in arguments)])
    lines = [f"## {path}", "", inspect.cleandoc(command.help), "", "```", usage, "```", ""]
    if arguments or options:
        lines += ["| argument or option | meaning |", "|---|---|"]
        lines += [f"| `{argument.metavar}` | {_cell(argument.help)} |" for argument in arguments]
        lines += [f"| {_spelling(option)} | {_cell(option.help)}{_default(option)} |" for option in options]
        lines.append("")
    if command.epilog:
        _, *examples = command.epilog.split("\n\n")
        lines += ["```", *(example.replace("\\[", "[") for example in examples), "```", ""]
    return "\n".join(lines)


def _usage(argument: Any) -> str:
    name = argument.metavar if argument.required else f"[{argument.metavar}]"
    return f"{name}..." if argument.nargs == -1 else name


def _spelling(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in sorted(option.opts, key=lambda name: (not name.startswith("--"), name)))
    if option.is_flag:
        return names
    return f"{names} `{_cell(option.metavar)}`"


def _default(option: Any) -> str:
    if option.default in (None, False, [], ()):
        return ""
    return f" Default: `{getattr(option.default, 'value', option.default)}`."


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(reference())
