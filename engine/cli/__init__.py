"""The command line, `jms-bridge`: one module for each group of commands, put together in `app`.

Commands read arguments, call the function of `engine` or `routes` that does the work, and print. Output for
people is made in `output`, output for programs (`--json`) in `records` and beside each command.
"""

import gc

# Imports make many objects and no garbage; the search for garbage would take a tenth of a command's time.
gc.set_threshold(100_000)

from engine.cli.app import main  # noqa: E402

__all__ = ["main"]
