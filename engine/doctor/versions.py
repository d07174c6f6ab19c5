"""Checks of the programs and libraries that a bridge is made of: there, and new enough."""

from __future__ import annotations

import platform
import re
from importlib import metadata
from typing import TYPE_CHECKING

from engine import java
from engine.doctor.checks import Finding, failed, ok
from engine.embedded import nats
from engine.embedded.nats import find_nats_server, nats_configuration, nats_version
from engine.errors import SetupError
from engine.jars import HALLMARKS
from engine.java import find_java, java_version
from engine.kafka.clients import librdkafka_version

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from routes.model import Config

__all__ = ["check_jars", "check_java", "check_nats_server", "check_packages", "jars_of"]

_PROJECT = "jms-bridge"
_SPARK = "pyspark"
_NATS = "nats-server"


def check_packages() -> Iterator[Finding]:
    """Reports Python and the project, and checks the libraries whose versions matter."""
    yield ok("python", f"Python {platform.python_version()}")
    yield ok(_PROJECT, metadata.version(_PROJECT))
    yield _pyspark()
    yield ok("librdkafka", librdkafka_version())


def check_java() -> Iterator[Finding]:
    """Checks the Java that Spark and the embedded brokers run on."""
    try:
        program = find_java()
        yield ok("java", f"Java {java_version(program)}, {program}")
    except SetupError as error:
        yield failed("java", str(error).removesuffix(f": {java.REMEDY}"), java.REMEDY)


def check_jars(folder: Path, modules: tuple[str, ...]) -> Iterator[Finding]:
    """Checks that the jars that set-up fetches are there, for each folder of `jars_of`."""
    missing = [module for module in modules if not any((folder / module).glob(HALLMARKS[module]))]
    if missing:
        what = f"no {HALLMARKS[missing[0]]} in {folder / missing[0]}"
        yield failed("jars", what, "run `make setup`, or point JMS_BRIDGE_JARS at a folder that has them")
    else:
        yield ok("jars", f"{', '.join(modules)} in {folder}")


def jars_of(config: Config | None) -> tuple[str, ...]:
    """Returns the folders of jars that are needed; without a configuration those that are needed in any case."""
    kafka = ("kafka",) if config and config.embedded_kafka else ()
    artemis = ("artemis",) if config and config.embedded_artemis else ()
    return ("spark", *kafka, *artemis)


def check_nats_server() -> Iterator[Finding]:
    """Checks the program of the embedded NATS server, and that it takes the configuration it is started with."""
    try:
        program = find_nats_server()
        nats_configuration(program)
        yield ok(_NATS, f"v{nats_version(program)}, {program}")
    except SetupError as error:
        yield failed(_NATS, str(error).removesuffix(f": {nats.REMEDY}"), nats.REMEDY)


def _pyspark() -> Finding:
    """Checks the version of PySpark: the jars are made for one version of Spark, which the project pins."""
    remedy = "install the versions in requirements.txt into the environment that jms-bridge runs in"
    try:
        installed = metadata.version(_SPARK)
    except metadata.PackageNotFoundError:
        return failed(_SPARK, "it is not installed", remedy)
    required = next((each for each in metadata.requires(_PROJECT) or () if each.startswith(f"{_SPARK}==")), "")
    pinned = re.sub(r"\s*;.*", "", required).removeprefix(f"{_SPARK}==")
    if pinned and installed != pinned:
        return failed(_SPARK, f"it is {installed}, and {pinned} is needed", remedy)
    return ok(_SPARK, installed)
