"""Where the pinned JVM jars are that `make setup` fetches, and wheels bring with them."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["jars"]


_INSTALLED = Path(__file__).with_name("_jars")
"""Where a wheel brings them (`hatch_build.py`)."""
_CHECKOUT = Path(__file__).parents[1] / ".jars"


def jars() -> Path:
    """The folder with `spark`, `kafka` and `artemis`: what JMS_BRIDGE_JARS names, else that of wheel or checkout."""
    if named := os.environ.get("JMS_BRIDGE_JARS"):
        return Path(named)
    return _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
