"""Class-data archives: the classes that a JVM of the bridge loads at each start, in a form that it maps into memory.

Set-up records one archive for each of Kafka, Artemis and Spark while a bridge runs (`tools/class_data.py`). A JVM
checks its archive itself and ignores one that was recorded by another Java or for other jars: it only starts slower.
"""

from __future__ import annotations

import os

from engine.jars import jars

__all__ = ["RECORD", "class_data_options"]

RECORD = "JMS_BRIDGE_RECORD_CLASSES"
"""Environment variable that is set where the JVMs of a bridge are to be ready for recording their archives."""

_FOLDER = "class-data"
# Without these a JVM reports an archive that does not fit it, on the console of its log.
_SILENT = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def class_data_options(name: str) -> list[str]:
    """Options for the JVM `name`, such as `kafka`: to use its archive, or to record one; none where there is none."""
    if os.environ.get(RECORD):
        return ["-XX:+RecordDynamicDumpInfo"]
    archive = jars().absolute() / _FOLDER / f"{name}.jsa"
    return [*_SILENT, f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []
