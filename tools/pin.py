"""Pins the newest Python packages that pyproject.toml allows, with hashes: `make requirements`.

Uses pip-tools in an environment of its own, which is gone afterwards. Run it on Python 3.11, the oldest that is
supported: what newer ones need less is then pinned all the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["main"]

ROOT = Path(__file__).resolve().parents[1]

# Where packages come from is each machine's own business: no address gets into the files.
_OPTIONS = [
    "--generate-hashes",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-emit-trusted-host",
    "--strip-extras",
    "--allow-unsafe",
    "--upgrade",
    "--quiet",
]
_FILES = {
    "requirements-build.txt": ["requirements-build.in"],
    "requirements.txt": ["pyproject.toml"],
    "requirements-witness.txt": ["requirements-witness.in"],
    "requirements-dev.txt": ["--extra", "dev", "--constraint", "requirements.txt", "pyproject.toml"],
}


def main() -> None:
    """Writes the requirements files; CalledProcessError when they cannot be resolved."""
    told_in_header = os.environ | {"CUSTOM_COMPILE_COMMAND": "make requirements"}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        tools = Path(folder, "bin")
        subprocess.run([tools / "pip", "install", "--quiet", "pip-tools"], check=True)
        for made, sources in _FILES.items():
            command: list[str | Path] = [tools / "pip-compile", *_OPTIONS, "--output-file", made, *sources]
            subprocess.run(command, cwd=ROOT, env=told_in_header, check=True)


if __name__ == "__main__":
    main()
