"""Makes a clone ready to run: virtual environment, pinned Python packages, pinned JVM jars.

`python -m tools.setup` for running, with `--dev` for the tests as well, with `--nats` only for a NATS server, with
`--class-data` only for the class data of the JVMs, which `tools.run` has made after the first run. Each part is redone
only when what pins it has changed. Needs nothing installed beside Python, Java and Maven, and Go for the NATS server
and Helm; `make` calls it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from engine.file_lock import try_lock
from engine.private import make_folder
from tools import machine
from tools.go_program import GoProgram
from tools.lock import LOCK, differences
from tools.readers import last_line, maven_cause, maven_reader, pip_cause, pip_reader
from tools.step import Step, StepError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "HELM",
    "NATS",
    "class_data_are_current",
    "jars_are_current",
    "jars_fingerprint",
    "main",
    "make_log_folder",
    "python_fingerprint",
]

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
JARS = ROOT / ".jars"
CLASS_DATA = JARS / "class-data"
LOG = ROOT / "var" / "setup.log"
NATS = GoProgram(
    "nats-server",
    "NATS server",
    "github.com/nats-io/nats-server/v2",
    ROOT / "tools" / "nats",
    ROOT / ".nats",
    LOG,
    remedy="apt-get install nats-server",
)
HELM = GoProgram("helm", "Helm", "helm.sh/helm/v3/cmd/helm", ROOT / "tools" / "helm", ROOT / ".helm", LOG)
"""Helm, which the tests of the chart in `deploy/helm` ask."""
_FRESH_JARS = JARS.with_name(".jars.new")
_SPARK_MODULE = "jvm/spark"
"""Module that is compiled against the jars inside the installed pyspark package."""

DEBIAN_PACKAGES = {
    "openssl": "openssl",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "amtool": "prometheus-alertmanager",
    "chromium": "chromium",
    "chromedriver": "chromium-driver",
}
"""Programs that some tests run, and the Debian package each is in."""

LOCKED = "JMS_BRIDGE_NEW_JARS"
"""Environment variable with which jars are taken that are not in the lock, for `make jars-lock`."""

_EXIT_SETUP = 3
"""Exit code of the bridge's SetupError."""
_EXIT_INTERRUPTED = 130


def main() -> int:
    """The exit status: 0, or 3 after a line that says what is missing or what failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dev", action="store_true", help="also what the tests need")
    parser.add_argument("--nats", action="store_true", help="nothing but a NATS server")
    parser.add_argument("--class-data", action="store_true", help="nothing but the class data of the JVMs")
    wanted = parser.parse_args()
    try:
        if wanted.class_data:
            _try_class_data()
            return 0
        if wanted.nats:
            NATS.set_up()
            return 0
        return _set_up(dev=wanted.dev)
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
    files = [
        ROOT / "pom.xml",
        ROOT / LOCK.name,
        *(ROOT / "jvm").glob("*/pom.xml"),
        *(ROOT / "jvm").glob("*/src/main/**/*.java"),
    ]
    return _fingerprint(files, "")


def jars_are_current() -> bool:
    """Whether the jars are those of the sources and pins that are here."""
    return _read(JARS / ".ready") == jars_fingerprint()


def class_data_are_current() -> bool:
    """True if the class data belong to the jars, Spark's included, and to the Java that runs them."""
    return _read(CLASS_DATA / ".ready") == _class_data_fingerprint()


def _set_up(*, dev: bool) -> int:
    python_stamp = VENV / (".ready-dev" if dev else ".ready")
    python_print = python_fingerprint(dev=dev)
    python_stale = _read(python_stamp) != python_print
    jars_stale = not jars_are_current()
    if python_stale or jars_stale:
        if faults := machine.faults(maven=jars_stale):
            for fault in faults:
                print(fault, file=sys.stderr)
            return _EXIT_SETUP
        make_log_folder()
        LOG.write_text("")
    both_stale = python_stale and jars_stale
    with ThreadPoolExecutor() as beside:
        early = beside.submit(_start_jars) if both_stale else None
        if python_stale:
            _make_environment()
            _install_packages(dev=dev)
            (VENV / ".ready").write_text(python_fingerprint(dev=False))
            python_stamp.write_text(python_print)
        if early:
            early.result()
    if jars_stale:
        _fetch_jars(jars_fingerprint(), started=both_stale)
    if dev:
        with ThreadPoolExecutor() as beside:
            parts = [beside.submit(each) for each in (_install_debian_packages, _set_up_go_programs, _try_witness)]
        for part in parts:
            part.result()
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


def _start_jars() -> None:
    """Fetches the jars that take no Python package to make, in the time in which pip fetches the packages."""
    shutil.rmtree(_FRESH_JARS, ignore_errors=True)
    _run_maven("JVM jars", f"--projects=!{_SPARK_MODULE}")


def _fetch_jars(fingerprint: str, *, started: bool = False) -> None:
    """Into a folder beside, so that no jar of an older version stays and a failure changes nothing.

    With `started`, `_start_jars` has put its jars there.
    """
    former = JARS.with_name(".jars.old")
    shutil.rmtree(former, ignore_errors=True)
    modules = [f"--projects={_SPARK_MODULE}"] if started else []
    if not started:
        shutil.rmtree(_FRESH_JARS, ignore_errors=True)
    _run_maven("JVM jars of Spark" if started else "JVM jars", *modules, f"-Dpyspark.jars={_pyspark_jars()}")
    if wrong := differences(_FRESH_JARS):
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        msg = f"JVM jars: {wrong[0]}{more}; after a change of versions: make jars-lock"
        if LOCKED not in os.environ:
            raise StepError(msg)
    (_FRESH_JARS / ".ready").write_text(fingerprint)
    if JARS.exists():
        JARS.rename(former)
    _FRESH_JARS.rename(JARS)
    shutil.rmtree(former, ignore_errors=True)


def _run_maven(title: str, *options: str) -> None:
    quiet = ["--batch-mode", "-Dstyle.color=never"]
    # A jar that its repository's checksum does not fit, or that has none, is not taken; Maven would only warn.
    command: list[str | Path] = ["mvn", *quiet, "--strict-checksums", f"-Djars={_FRESH_JARS}", *options, "package"]
    Step(title, LOG, maven_reader(), maven_cause).run(command, ROOT)


def _pyspark_jars() -> Path:
    """Folder of the jars inside the installed pyspark package, which the project's own classes are compiled against."""
    return next((VENV / "lib").glob("python3.*/site-packages/pyspark/jars"))


def _try_class_data() -> None:
    """Makes the archives with which the JVMs start faster; without them they start as well, so nothing else fails."""
    CLASS_DATA.mkdir(exist_ok=True)
    with (CLASS_DATA / ".lock").open("w") as file:
        if class_data_are_current() or not try_lock(file.fileno()):
            return
        wanted = _class_data_fingerprint()
        make_log_folder()
        try:
            step = Step("Class data of the JVMs, for starts in half the time", LOG, str.strip, last_line)
            step.run([VENV / "bin" / "python", "-m", "tools.class_data", CLASS_DATA], ROOT)
        except StepError as error:
            print(f"the bridge will take longer to start: {error}", file=sys.stderr)
        # Also where it failed: what failed now fails the next time.
        (CLASS_DATA / ".ready").write_text(wanted)


def _class_data_fingerprint() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    java = Path(found or "java").resolve()
    version = java.stat().st_mtime_ns if java.exists() else 0
    return _fingerprint([], f"{python_fingerprint(dev=False)} {jars_fingerprint()} {java} {version}")


def _install_debian_packages() -> None:
    """Installs Debian packages, as root only; without them, tests that need them are skipped with the reason."""
    missing = sorted({package for program, package in DEBIAN_PACKAGES.items() if not shutil.which(program)})
    if not missing:
        return
    wish = f"apt-get install {' '.join(missing)}"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        print(f"some tests will be skipped; to run them: {wish}", file=sys.stderr)
        return
    make_log_folder()
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    try:
        for command in (["update"], ["install", "--yes", "--no-install-recommends", *missing]):
            Step(f"apt-get {command[0]}", LOG, str.strip, last_line).run(["apt-get", "--quiet", *command], ROOT)
    except StepError as error:
        print(f"some tests will be skipped: {error}; to run them: {wish}", file=sys.stderr)


def _set_up_go_programs() -> None:
    """Builds one after the other, since each keeps all cores busy."""
    NATS.try_set_up()
    HELM.try_set_up()


def make_log_folder() -> None:
    """Makes the folder of logs, which is `embedded.data` of a new clone too and will hold messages."""
    make_folder(LOG.parent)


def _try_witness() -> None:
    """Qpid Proton, which has to be compiled; without it the tests that ask it say so and skip."""
    pinned, stamp = ROOT / "requirements-witness.txt", VENV / ".ready-witness"
    wanted = _fingerprint([pinned], "")
    if _read(stamp) == wanted:
        return
    make_log_folder()
    pip = ["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar=raw"]
    options: list[str | Path] = ["--no-build-isolation", "--require-hashes", "-r", pinned]
    try:
        _pip_step("Qpid Proton", pinned).run([VENV / "bin" / "python", *pip, *options], ROOT)
        stamp.write_text(wanted)
    except StepError as error:
        print(f"some tests will be skipped: no Qpid Proton: {error}", file=sys.stderr)


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
