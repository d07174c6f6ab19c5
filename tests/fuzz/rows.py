"""Fuzz target of the rows of topologies, a Java program of its own: the check and what it guards are in the JVM."""

from __future__ import annotations

from pathlib import Path

import pyspark

from tests.conftest import JARS
from tests.java import java_program

__all__ = ["NAME", "fuzz_command"]

NAME = "topology_rows"
_OPENED = ("java.lang", "java.nio", "sun.nio.ch", "java.util")


def fuzz_command(seconds: float, seed: int | None = None) -> list[str]:
    """The command that feeds the check of rows changed rows for so many seconds; it fails for a wrong answer."""
    jars = f"{Path(pyspark.__file__).parent / 'jars'}/*:{JARS / 'spark'}/*"
    java, *rest = java_program(Path(__file__).with_name("RowFuzz.java"), jars)
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
    return [java, "-Xmx512m", *opened, *rest, str(seconds), *([] if seed is None else [str(seed)])]
