"""Where the pinned JVM jars are that `make setup` fetches, and wheels bring with them."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["HALLMARKS", "jars"]

HALLMARKS = {"spark": "jms-bridge-spark.jar", "kafka": "kafka_*.jar", "artemis": "apache-artemis-*"}
"""What each folder of jars has in it, if it is complete."""

_INSTALLED = Path(__file__).with_name("_jars")
"""Where a wheel brings them (`hatch_build.py`)."""
_CHECKOUT = Path(__file__).parents[1] / ".jars"


def jars() -> Path:
    """The folder with `spark`, `kafka` and `artemis`: what JMS_BRIDGE_JARS names, else that of wheel or checkout."""
    if named := os.environ.get("JMS_BRIDGE_JARS"):
        return Path(named)
    return _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
