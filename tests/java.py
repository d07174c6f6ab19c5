"""Java programs of the tests, compiled once for each version of their source."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from engine.embedded.artemis import artemis_home
from engine.file_lock import lock
from engine.java import find_java
from tests.conftest import JARS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["class_archive", "java_program", "jms_program"]

_COMPILED = JARS.parent / "build" / "test-classes"


def jms_program(source: Path) -> Sequence[str]:
    """Returns the command that runs a program of one file, with Artemis' JMS clients; its arguments come behind."""
    return java_program(source, f"{artemis_home(JARS)}/lib/*")


def class_archive(name: str, record: Callable[[Path], str]) -> Sequence[str]:
    """Returns the options of a JVM that starts from an archive of its classes, which is made once for each `name`.

    `record` runs the JVM, which lists its classes in a file, and returns its class path. A JVM with another class path
    ignores the archive.
    """
    archive = _COMPILED / f"{hashlib.sha256(f'{find_java()}{name}'.encode()).hexdigest()[:16]}.jsa"
    _COMPILED.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(".lock").open("w") as held:
        # Other workers of pytest wait for it.
        lock(held.fileno())
        if not archive.exists():
            _make_archive(archive, record)
    # As `engine.jars` has it for the servers' archives.
    return ["-Xlog:cds=off", "-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0",
            f"-XX:SharedArchiveFile={archive}"]  # fmt: skip


def _make_archive(archive: Path, record: Callable[[Path], str]) -> None:
    with tempfile.TemporaryDirectory(dir=_COMPILED) as folder:
        listed, made = Path(folder, "classes.lst"), Path(folder, "classes.jsa")
        options = [f"-XX:SharedClassListFile={listed}", f"-XX:SharedArchiveFile={made}", "-cp", record(listed)]
        subprocess.run([find_java(), "-Xshare:dump", "-Xlog:cds=off", *options], check=True, capture_output=True)
        made.rename(archive)


def java_program(source: Path, class_path: str, changes: Mapping[str, str] | None = None) -> Sequence[str]:
    """Returns the command that runs a program of one file with these jars; its arguments come behind.

    `changes` are texts of the program, each with the text in its place.
    """
    java, text = find_java(), source.read_text(encoding="utf-8")
    for old, new in (changes or {}).items():
        text = text.replace(old, new)
    classes = _COMPILED / hashlib.sha256(f"{text}{class_path}".encode()).hexdigest()[:16]
    if not classes.exists():
        _COMPILED.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_COMPILED) as folder:
            made, changed = Path(folder, "classes"), Path(folder, source.name)
            changed.write_text(text, encoding="utf-8")
            compiler = java.resolve().with_name("javac")
            subprocess.run([compiler, "-cp", class_path, "-d", made, changed], check=True)
            # Another worker may have been faster, with the same classes.
            with suppress(OSError):
                made.rename(classes)
    return [str(java), "-cp", f"{classes}:{class_path}", source.stem]
