"""Folder of the pinned JVM jars, which `make setup` fetches and wheels contain, and their class-data archives.

A class-data archive has the classes that a JVM loads at its start, in a form that maps into memory. One each for Kafka,
Artemis and Spark is made from lists of classes that a bridge writes (`tools/class_data.py`). A JVM checks its archive
itself and ignores one that another Java version made or that belongs to other jars; it then only starts more slowly.
Beside the archives are copies of some of Spark's jars.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["HALLMARKS", "RECORD", "class_data_options", "copies", "defaults_copy", "jars"]

HALLMARKS = {
    "spark": "jms-bridge-spark.jar",
    "jms": "jms-bridge-jms.jar",
    "kafka": "kafka_*.jar",
    "artemis": "apache-artemis-*",
}
"""File that marks a folder of jars as complete: a glob pattern by folder name."""

_INSTALLED = Path(__file__).with_name("_jars")
"""Folder of the jars inside an installed wheel (`hatch_build.py`)."""
_CHECKOUT = Path(__file__).parents[1] / ".jars"
RECORD = "JMS_BRIDGE_RECORD_CLASSES"
"""Environment variable that names a folder: the JVMs of a bridge write lists of their classes there, `NAME.lst`."""
_FOLDER = "class-data"
_USE = (
    # Without this option a JVM writes a warning about an archive that does not fit it.
    "-Xlog:cds=off",
    # By default a JVM moves an archive to a random address, and so copies and changes all of it.
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:ArchiveRelocationMode=0",
)


def jars() -> Path:
    """The folder with the folders of `HALLMARKS`: JMS_BRIDGE_JARS if set, else that of the wheel or checkout."""
    if named := os.environ.get("JMS_BRIDGE_JARS"):
        return Path(named)
    return _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT


def class_data_options(name: str, archive: str | None = None) -> list[str]:
    """Options with which the JVM `name`, such as `kafka`, uses an archive or lists its classes; else empty.

    The archive is its own, or another with the same class path.
    """
    if folder := os.environ.get(RECORD):
        return [f"-XX:DumpLoadedClassList={folder}/{name}.lst"]
    file = jars().absolute() / _FOLDER / f"{archive or name}.jsa"
    return [*_USE, f"-XX:SharedArchiveFile={file}"] if file.exists() else []


def copies() -> Path:
    """The folder of those copies of Spark's jars with which it starts faster (`tools/jar_copies.py`), if there are any.

    A copy has the name of its original, which has the version in it, so none is ever taken for another version's.
    """
    return jars().absolute() / _FOLDER / "jars"


def defaults_copy(jar: str) -> str:
    """Name of the jar that has the default settings in the jar of the name `jar`, without their descriptions."""
    return f"defaults-of-{jar}"
