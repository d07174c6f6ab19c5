"""Check of folders on file systems of Hadoop, as far as it takes no Spark: their classes, and their addresses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from zipfile import BadZipFile, ZipFile

from engine.claims.section import ClaimCheckConfig
from engine.connectors.jms_client.class_path import files
from engine.doctor.checks import Finding, failed, listens, ok
from engine.errors import SetupError, UnreachableError
from engine.spark.file_systems import FILE_SYSTEMS
from engine.spark.section import SparkConfig
from engine.topologies.section import TopologiesConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from routes.model import Config

__all__ = ["check_file_systems", "uris_of"]

_CLASS_PATH = "spark.driver.extraClassPath"
_PORTS = {"hdfs", "webhdfs", "swebhdfs"}
"""Schemes whose URIs may name host and port of a server."""


def uris_of(config: Config) -> Mapping[str, str]:
    """Returns the URIs of folders on file systems of Hadoop, by the setting that names each."""
    places = {
        "router.checkpoint": config.router.checkpoint,
        "claim-check.folder": config.section(ClaimCheckConfig).folder,
        "topologies.state": config.section(TopologiesConfig).state,
    }
    return {setting: place for setting, place in places.items() if isinstance(place, str)}


def check_file_systems(uris: Mapping[str, str], spark: SparkConfig, timeout_seconds: float) -> Iterator[Finding]:
    """Checks the folders of `uris_of`. Whether the bridge may write there, Spark finds out at the start."""
    for setting, uri in uris.items():
        parts = urlsplit(uri)
        name = FILE_SYSTEMS.get(parts.scheme, "")
        if name and not _has_class(spark, name):
            remedy = f"name the jars of the file system in {_CLASS_PATH}"
            yield failed(setting, f"{uri}: no jar of the class path has {name}", remedy, SetupError)
        elif parts.scheme in _PORTS and parts.port and not listens(parts.hostname or "", parts.port, timeout_seconds):
            remedy = f"start it, or correct {setting}"
            yield failed(setting, f"{uri}: nothing listens at {parts.netloc}", remedy, UnreachableError)
        else:
            yield ok(setting, f"{uri} is on a file system that Spark opens at the start")


def _has_class(spark: SparkConfig, name: str) -> bool:
    entry = f"{name.replace('.', '/')}.class"
    try:
        found = files([each for each in spark.get(_CLASS_PATH, "").split(":") if each])
    except SetupError:
        return False
    return any(_contains(jar, entry) for jar in found)


def _contains(jar: Path, entry: str) -> bool:
    if jar.is_dir():
        return (jar / entry).exists()
    try:
        with ZipFile(jar) as archive:
            return entry in archive.namelist()
    except BadZipFile:
        return False
