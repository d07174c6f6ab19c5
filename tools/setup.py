"""Makes a clone ready to run: virtual environment, pinned Python packages, pinned JVM jars.

`python -m tools.setup` for running, with `--dev` for the tests as well. Each part is redone only when what pins it has
changed. Needs nothing installed beside Python, Java and Maven; `make` calls it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tools import machine
from tools.readers import last_line, maven_cause, maven_reader, pip_cause, pip_reader
from tools.step import Step, StepError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["jars_fingerprint", "main", "python_fingerprint"]

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
JARS = ROOT / ".jars"
LOG = ROOT / "var" / "setup.log"

DEBIAN_PACKAGES = {"openssl": "openssl", "prometheus": "prometheus", "promtool": "prometheus"}
"""Programs that some tests run, and the Debian package each is in."""

_EXIT_SETUP = 3
"""As the bridge's own SetupError."""
_EXIT_INTERRUPTED = 130


def main() -> int:
    """The exit status: 0, or 3 after a line that says what is missing or what failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dev", action="store_true", help="also what the tests need")
    dev = parser.parse_args().dev
    try:
        return _set_up(dev=dev)
    except StepError as error:
        print(f"set-up failed: {error}", file=sys.stderr)
        return _EXIT_SETUP
    except KeyboardInterrupt:
        print("\nset-up interrupted; the next one does the rest", file=sys.stderr)
        return _EXIT_INTERRUPTED


def python_fingerprint(*, dev: bool) -> str:
    """Changes with the pins, with the Python, and when the clone is moved, which its environment does not survive."""
    names = ["requirements-build.txt", "requirements.txt", "pyproject.toml", *(["requirements-dev.txt"] if dev else [])]
    return _fingerprint([ROOT / name for name in names], f"{sys.version_info[:2]} {ROOT}")


def jars_fingerprint() -> str:
    """Changes with the pinned versions and with the project's own Java classes."""
    files = [ROOT / "pom.xml", *(ROOT / "jvm").glob("*/pom.xml"), *(ROOT / "jvm").glob("*/src/main/**/*.java")]
    return _fingerprint(files, "")


def _set_up(*, dev: bool) -> int:
    python_stamp = VENV / (".ready-dev" if dev else ".ready")
    python_print, jars_print = python_fingerprint(dev=dev), jars_fingerprint()
    python_stale = _read(python_stamp) != python_print
    jars_stale = _read(JARS / ".ready") != jars_print
    if python_stale or jars_stale:
        if faults := machine.faults(maven=jars_stale):
            for fault in faults:
                print(fault, file=sys.stderr)
            return _EXIT_SETUP
        LOG.parent.mkdir(exist_ok=True)
        LOG.write_text("")
    if python_stale:
        _make_environment()
        _install_packages(dev=dev)
        (VENV / ".ready").write_text(python_fingerprint(dev=False))
        python_stamp.write_text(python_print)
    if jars_stale:
        _fetch_jars(jars_print)
    if dev:
        _install_debian_packages()
    return 0


def _make_environment() -> None:
    python = VENV / "bin" / "python"
    tell = "import sys; print(sys.version_info[:2], sys.prefix)"
    if python.exists():
        done = subprocess.run([python, "-c", tell], capture_output=True, text=True, check=False)
        if done.stdout.strip() == f"{sys.version_info[:2]} {VENV}":
            return
    step = Step("Python environment", LOG, lambda _: None, last_line)
    step.run([sys.executable, "-m", "venv", "--clear", VENV], ROOT)


def _install_packages(*, dev: bool) -> None:
    """First what builds packages, then those pinned for us, then the project itself, which finds no more to fetch."""
    quiet = ["--no-input", "--disable-pip-version-check"]
    pip: list[str | Path] = [VENV / "bin" / "python", "-m", "pip", "install", *quiet]
    builders, pinned = ROOT / "requirements-build.txt", ROOT / ("requirements-dev.txt" if dev else "requirements.txt")
    _pip_step("Python build tools", builders).run([*pip, "--require-hashes", "-r", builders], ROOT)
    # `raw` tells progress in plain lines; the pip just installed knows it.
    options = ["--progress-bar=raw", "--no-build-isolation"]
    _pip_step("Python packages", pinned).run([*pip, *options, "--require-hashes", "-r", pinned], ROOT)
    _pip_step("jms-bridge", pinned).run([*pip, *options, "--no-deps", "--editable", "."], ROOT)


def _fetch_jars(fingerprint: str) -> None:
    """Into a folder beside, so that no jar of an older version stays and a failure changes nothing."""
    fresh, former = JARS.with_name(".jars.new"), JARS.with_name(".jars.old")
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(former, ignore_errors=True)
    command: list[str | Path] = ["mvn", "--batch-mode", "-Dstyle.color=never", f"-Djars={fresh}", "package"]
    Step("JVM jars", LOG, maven_reader(), maven_cause).run(command, ROOT)
    (fresh / ".ready").write_text(fingerprint)
    if JARS.exists():
        JARS.rename(former)
    fresh.rename(JARS)
    shutil.rmtree(former, ignore_errors=True)


def _install_debian_packages() -> None:
    """As root only; otherwise, or when it fails, the tests that need them say so and skip."""
    missing = sorted({package for program, package in DEBIAN_PACKAGES.items() if not shutil.which(program)})
    if not missing:
        return
    wish = f"apt-get install {' '.join(missing)}"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        print(f"some tests will be skipped; to run them: {wish}", file=sys.stderr)
        return
    LOG.parent.mkdir(exist_ok=True)
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    try:
        for command in (["update"], ["install", "--yes", "--no-install-recommends", *missing]):
            Step(f"apt-get {command[0]}", LOG, str.strip, last_line).run(["apt-get", "--quiet", *command], ROOT)
    except StepError as error:
        print(f"some tests will be skipped: {error}; to run them: {wish}", file=sys.stderr)


def _pip_step(title: str, requirements: Path) -> Step:
    total = len(re.findall(r"^\S+==", requirements.read_text(), re.MULTILINE))
    return Step(title, LOG, pip_reader(total), pip_cause)


def _fingerprint(files: Iterable[Path], extra: str) -> str:
    total = hashlib.sha256(extra.encode())
    for file in sorted(files):
        total.update(f"\n{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    return total.hexdigest()


def _read(stamp: Path) -> str:
    return stamp.read_text() if stamp.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
