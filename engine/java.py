"""Finds the Java that runs Spark and the embedded brokers; SetupError says if there is none or it is too old."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from engine.errors import SetupError

__all__ = ["LATE_OPTIMISING", "OLDEST_JAVA", "REMEDY", "class_options", "find_java", "java_version"]

OLDEST_JAVA = 17
"""Oldest release that Spark 4 and Kafka 4 run on."""
LATE_OPTIMISING = (
    "-XX:Tier4InvocationThreshold=60000",
    "-XX:Tier4MinInvocationThreshold=15000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=600000",
)
"""Options with which the optimising compiler starts later than by default: it would take a third to a half of the
processor time of a start, and with a third of these numbers still a quarter of that of Spark's. Under load, code that
works on messages reaches these numbers within seconds; at 1,000 messages a second, within a minute."""
_RELEASE = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)
REMEDY = f"install Java {OLDEST_JAVA} or newer, or point JAVA_HOME at it"


def find_java() -> Path:
    """The `java` of JAVA_HOME, else of PATH; SetupError if there is none or it is older than 17."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if found is None:
        place = f"JAVA_HOME={home}" if home else "PATH"
        msg = f"no java in {place}: {REMEDY}"
        raise SetupError(msg)
    version = java_version(Path(found))
    if version < OLDEST_JAVA:
        msg = f"{found} is Java {version}: {REMEDY}"
        raise SetupError(msg)
    return Path(found)


def class_options(folder: Path) -> list[str]:
    """Options for a class path of all jars in a folder."""
    return ["-cp", f"{folder}/*"]


def java_version(java: Path) -> int:
    """The feature release of a Java, such as 17 (8 for `1.8.0`); SetupError if the program does not tell one.

    A JDK has it in a file, which takes no start of a JVM to read.
    """
    with suppress(OSError):
        if match := _RELEASE.search((java.resolve().parents[1] / "release").read_text(errors="replace")):
            return int(match[1])
    try:
        # `-version` writes to stderr in every release of Java.
        output = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        msg = f"{java} does not run: {error}"
        raise SetupError(msg) from error
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    if match is None:
        msg = f"{java} -version does not report a version, it says {output.strip()!r}"
        raise SetupError(msg)
    return int(match[1])
