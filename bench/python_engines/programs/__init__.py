"""Programs of the other engines. Each knows its engine, the standard library and `bench.python_engines.rule` alone.

Arguments are KEY=VALUE: bootstrap, workload, input, output, group, and state (a folder).
"""

from __future__ import annotations

import sys

__all__ = ["arguments"]


def arguments() -> dict[str, str]:
    """The arguments of the command line by their names."""
    return dict(argument.split("=", 1) for argument in sys.argv[1:])
