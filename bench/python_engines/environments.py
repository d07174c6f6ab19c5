"""Virtual environments of the other engines, made from PyPI where they are missing, each with one version."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from bench.programs import JARS
from engine.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["PACKAGES", "environment"]

PACKAGES: Mapping[str, tuple[str, ...]] = {
    "quix": ("quixstreams==3.28.1",),
    "bytewax": ("bytewax==0.21.1", "confluent-kafka==2.16.1"),
}
"""Packages of each engine."""


def environment(engine: str) -> Path:
    """The folder of an engine's programs, such as `python`; SetupError if its packages cannot be installed."""
    folder = JARS / f"python-{engine}"
    wanted, ready = "\n".join(PACKAGES[engine]), folder / ".ready"
    if not ready.exists() or ready.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        print(f"installing {', '.join(PACKAGES[engine])}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        command = [str(folder / "bin/python"), "-m", "pip", "install", "-q"]
        done = subprocess.run([*command, *PACKAGES[engine]], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            msg = f"{', '.join(PACKAGES[engine])} cannot be installed: {done.stderr.strip().splitlines()[-1:]}"
            raise SetupError(msg)
        ready.write_text(wanted)
    return folder / "bin"
