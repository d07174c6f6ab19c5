"""The command line, `jms-bridge`: one module for each group of commands, put together in `app`.

Commands read arguments, call the function of `engine` or `routes` that does the work, and print. Output for
people is made in `output`, output for programs (`--json`) in `records` and beside each command.
"""

from engine.cli.app import main

__all__ = ["main"]
