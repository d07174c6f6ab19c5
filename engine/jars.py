"""Where the pinned JVM jars are that `make setup` fetches."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["jars"]


def jars() -> Path:
    """The folder with `spark`, `kafka` and `artemis`: that of the checkout, or what JMS_BRIDGE_JARS names."""
    return Path(os.environ.get("JMS_BRIDGE_JARS") or Path(__file__).parents[1] / ".jars")
