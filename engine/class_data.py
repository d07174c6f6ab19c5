"""Class-data archives: the classes that each JVM of the bridge loads at its start, in a form that maps into memory.

Set-up records one archive for each of Kafka, Artemis and Spark while a bridge runs (`tools/class_data.py`). A JVM
checks its archive itself and ignores one that another Java version recorded or that belongs to other jars; it then
only starts more slowly.
"""

from __future__ import annotations

import os

from engine.jars import jars

__all__ = ["RECORD", "class_data_options"]

RECORD = "JMS_BRIDGE_RECORD_CLASSES"
"""Environment variable; if set, the JVMs of a bridge start ready to record their archives."""

_FOLDER = "class-data"
# Without these options a JVM writes a warning about an archive that does not fit it.
_SILENT = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def class_data_options(name: str) -> list[str]:
    """Options with which the JVM `name`, such as `kafka`, uses or records its archive; empty if it has none."""
    if os.environ.get(RECORD):
        return ["-XX:+RecordDynamicDumpInfo"]
    archive = jars().absolute() / _FOLDER / f"{name}.jsa"
    return [*_SILENT, f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []
