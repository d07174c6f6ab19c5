"""The Java programs in `peer/` and `flink/`, built when their sources have changed, and how they are run."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from engine.errors import SetupError
from engine.java import find_java

__all__ = ["JARS", "ROOT", "build", "command", "run", "verify"]

ROOT = Path(__file__).resolve().parent.parent
JARS = ROOT / ".jars"
_SOURCES = Path(__file__).resolve().parent
_QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"


def build(project: str = "peer") -> None:
    """Compiles the programs of a Maven project in this folder unless that is done; SetupError if it fails."""
    folder, jar = _SOURCES / project, JARS / project / f"bench-{project}-0.1.0.jar"
    sources = [folder / "pom.xml", *(folder / "src").rglob("*.*")]
    if jar.exists() and jar.stat().st_mtime > max(source.stat().st_mtime for source in sources):
        return
    maven = shutil.which("mvn")
    if maven is None:
        msg = "no mvn in PATH: install Maven"
        raise SetupError(msg)
    # Jars of other versions would be in the class path beside those of now.
    shutil.rmtree(JARS / project, ignore_errors=True)
    print(f"building bench/{project} (the first time downloads its libraries)")
    done = subprocess.run([maven, "-q", "-B", "-f", str(folder / "pom.xml"), "package"], check=False)
    if done.returncode != 0:
        msg = f"bench/{project} does not build, see above"
        raise SetupError(msg)


def command(program: str, /, *options: str, **arguments: object) -> list[str]:
    """Returns the command that runs `jmsbridge.bench.<program>`; `options` are the JVM's.

    A program of another project than `peer` has its name and a slash before its own: `flink/NexmarkSql`.
    """
    project, _, name = program.rpartition("/")
    java = str(find_java())
    given = [f"{name}={value}" for name, value in arguments.items()]
    return [java, _QUIET, *options, "-cp", f"{JARS / (project or 'peer')}/*", f"jmsbridge.bench.{name}", *given]


def run(program: str, /, **arguments: object) -> str:
    """Runs one to its end and returns what it printed; RuntimeError with its last words if it fails."""
    done = subprocess.run(command(program, **arguments), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        msg = f"{program} failed: {done.stderr.strip()[-2000:]}"
        raise RuntimeError(msg)
    return done.stdout


def verify(bootstrap: str, outputs: tuple[str, ...], origin: str, warm: int) -> dict[str, Any]:
    """Returns the findings of the verifier about the outputs, see `Verify.java`."""
    found: dict[str, Any] = json.loads(
        run("Verify", bootstrap=bootstrap, outputs=",".join(outputs), origin=origin, warm=warm)
    )
    return found
