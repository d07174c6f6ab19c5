"""Checks that this machine has what a set-up needs: Python, Java and Maven, each new enough; Go for a NATS server."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["faults", "go"]

_OLDEST_JAVA = 17
_OLDEST_MAVEN = (3, 6, 3)
"""Oldest Maven that the plugins in pom.xml support."""
_OLDEST_GO = (1, 21)
"""Oldest Go that understands the version in tools/nats/go.mod, and downloads it or reports the fault."""


def faults(*, maven: bool) -> list[str]:
    """Returns a line for each program that is missing or too old; `maven` only matters while jars are to be fetched."""
    java = _java()
    # Maven runs on that Java: without one it cannot even say its version.
    found = [_python(), java, _maven(ask=java is None) if maven else None]
    return [fault for fault in found if fault]


def go() -> str | None:
    """A line when there is no Go or one that is too old."""
    remedy = "install Go 1.24 or newer"
    program = shutil.which("go")
    if program is None:
        return f"no go in PATH: {remedy}"
    match = re.search(r"\bgo(\d+)\.(\d+)", _says(program, "version"))
    if match is None:
        return f"{program} version does not report a version: {remedy}"
    version = tuple(map(int, match.groups()))
    return f"{program} is Go {'.'.join(match.groups())}: {remedy}" if version < _OLDEST_GO else None


def _python() -> str | None:
    # Debian packages them apart from Python itself.
    if not all(importlib.util.find_spec(module) for module in ("venv", "ensurepip")):
        return f"{sys.executable} cannot make virtual environments: install python3-venv"
    return None


def _java() -> str | None:
    remedy = f"install Java {_OLDEST_JAVA} or newer, or point JAVA_HOME at it"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if java is None:
        return f"no java in {f'JAVA_HOME={home}' if home else 'PATH'}: {remedy}"
    match = re.search(r'version "(?:1\.)?(\d+)', _says(java, "-version"))
    if match is None:
        return f"{java} -version does not report a version: {remedy}"
    return f"{java} is Java {match[1]}: {remedy}" if int(match[1]) < _OLDEST_JAVA else None


def _maven(*, ask: bool) -> str | None:
    oldest = ".".join(map(str, _OLDEST_MAVEN))
    remedy = f"install Maven {oldest} or newer"
    maven = shutil.which("mvn")
    if maven is None:
        return f"no mvn in PATH: {remedy}"
    if not ask:
        return None
    match = re.search(r"Apache Maven (\d+)\.(\d+)\.(\d+)", _says(maven, "--version"))
    if match is None:
        return f"{maven} --version does not report a version: {remedy}"
    version = tuple(map(int, match.groups()))
    return f"{maven} is Maven {'.'.join(match.groups())}: {remedy}" if version < _OLDEST_MAVEN else None


def _says(program: str, option: str) -> str:
    try:
        done = subprocess.run(
            [program, option], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    # Java says it on stderr; Maven may colour it.
    return re.sub(r"\033\[[\d;]*m", "", done.stdout + done.stderr)
