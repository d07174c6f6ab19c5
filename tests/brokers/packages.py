"""Jars and distributions of the brokers, which Maven fetches at their first use into a folder that git ignores."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from engine.connectors.jms_client.class_path import resolve
from engine.errors import SetupError
from engine.file_lock import lock

__all__ = ["CACHE", "distribution", "jar", "jars"]

CACHE = Path(__file__).parents[2] / "build" / "brokers"
_SECONDS = 600
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def jars(*packages: str) -> list[Path]:
    """Returns the jars of packages, `group:artifact:version`, and of all that they need; SetupError without them."""
    return resolve(CACHE, packages)


def jar(package: str) -> Path:
    """Returns the jar of a package alone; SetupError without it."""
    (found,) = _fetched(package).glob("*.jar")
    return found


def distribution(package: str) -> Path:
    """Returns the folder of an unpacked distribution, `group:artifact:version:zip`, or of a tar.gz; else SetupError."""
    return _fetched(package)


def _fetched(package: str) -> Path:
    folder = CACHE / package.replace(":", "-")
    CACHE.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as file:
        lock(file.fileno())
        if not folder.is_dir():
            fresh = folder.with_name(f"{folder.name}.new")
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
            _copy(package, fresh)
            for archive in fresh.glob("*.zip"):
                shutil.unpack_archive(archive, fresh)
                archive.unlink()
            for archive in fresh.glob("*.tar.gz"):
                shutil.unpack_archive(archive, fresh, filter="data")
                archive.unlink()
            fresh.rename(folder)
    return folder


def _copy(package: str, folder: Path) -> None:
    if shutil.which("mvn") is None:
        raise SetupError(f"no mvn in PATH, which would fetch {package}: install Maven")
    command = ["mvn", "--batch-mode", "--strict-checksums", "-Dstyle.color=never", _COPY]
    done = subprocess.run(
        [*command, f"-Dartifact={package}", "-DoutputDirectory=."],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.startswith("[ERROR] ")]
        raise SetupError(f"Maven cannot fetch {package}: {lines[0] if lines else done.stderr.strip()}")
