"""Folder of the pinned JVM jars, which `make setup` fetches and wheels contain."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["HALLMARKS", "jars"]

HALLMARKS = {"spark": "jms-bridge-spark.jar", "kafka": "kafka_*.jar", "artemis": "apache-artemis-*"}
"""File that marks a folder of jars as complete: a glob pattern by folder name."""

_INSTALLED = Path(__file__).with_name("_jars")
"""Folder of the jars inside an installed wheel (`hatch_build.py`)."""
_CHECKOUT = Path(__file__).parents[1] / ".jars"


def jars() -> Path:
    """The folder with `spark`, `kafka` and `artemis`: JMS_BRIDGE_JARS if set, else that of the wheel or checkout."""
    if named := os.environ.get("JMS_BRIDGE_JARS"):
        return Path(named)
    return _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
