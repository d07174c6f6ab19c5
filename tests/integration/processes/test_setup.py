"""Set-up: what a fresh clone has, what is checked first, what is shown meanwhile, and what is said when it fails."""

from __future__ import annotations

import ast
import io
import os
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.bridge_process import wait
from tools import machine, readers, setup
from tools.step import Step, StepError

ROOT = Path(__file__).parents[3]

JAVA_17 = 'openjdk version "17.0.15" 2025-04-15'
JAVA_8 = 'java version "1.8.0_392"'
MAVEN_3_8 = "\033[1mApache Maven 3.8.7\033[m"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return folder


def program(file: Path, says: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    file.chmod(0o755)


def test_a_machine_that_has_everything_has_no_faults(programs: Path) -> None:
    program(programs / "java", JAVA_17)
    program(programs / "mvn", MAVEN_3_8)

    assert machine.faults(maven=True) == []


def test_all_that_is_missing_is_told_at_once_a_line_each(programs: Path) -> None:
    assert machine.faults(maven=True) == [
        "no java in PATH: install Java 17 or newer, or point JAVA_HOME at it",
        "no mvn in PATH: install Maven 3.6.3 or newer",
    ]


def test_what_is_too_old_is_told_with_its_place_and_version(programs: Path) -> None:
    program(programs / "java", JAVA_17)
    program(programs / "mvn", "Apache Maven 3.6.0 (NON-CANONICAL)")
    assert machine.faults(maven=True) == [f"{programs}/mvn is Maven 3.6.0: install Maven 3.6.3 or newer"]

    program(programs / "java", JAVA_8)
    assert machine.faults(maven=True) == [
        f"{programs}/java is Java 8: install Java 17 or newer, or point JAVA_HOME at it"
    ]


def test_java_home_goes_before_path(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(programs / "java", JAVA_8)
    program(tmp_path / "jdk" / "bin" / "java", JAVA_17)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))

    assert machine.faults(maven=False) == []


def test_the_folder_of_logs_which_the_bridge_uses_too_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "LOG", tmp_path / "var" / "setup.log")
    setup.make_log_folder()
    assert (tmp_path / "var").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("module", ["tools.setup", "tools.run", "tools.pin"])
def test_an_old_python_is_told_in_one_line(module: str) -> None:
    ast.parse((ROOT / "tools/__init__.py").read_text(), feature_version=(3, 4))
    program = (
        "import sys, runpy; sys.version_info = (3, 8, 10, 'final', 0); "
        f"runpy.run_module('{module}', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 3
    assert done.stderr == (
        f"{sys.executable} is Python 3.8.10: install Python 3.11 or newer, or name one with `make PYTHON=...`\n"
    )


def test_nothing_is_made_or_fetched_on_a_machine_with_faults(programs: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    shutil.copytree(ROOT / "tools", clone / "tools")
    shutil.copytree(ROOT / "jvm", clone / "jvm", ignore=shutil.ignore_patterns("target"))
    for file in ("jars.lock", "pom.xml", "pyproject.toml", *(path.name for path in ROOT.glob("requirements*.txt"))):
        shutil.copy(ROOT / file, clone)
    before = sorted(clone.iterdir())

    done = subprocess.run(
        [sys.executable, "-B", "-m", "tools.setup"], cwd=clone, capture_output=True, text=True, check=False
    )

    assert done.returncode == 3
    assert done.stderr.splitlines() == machine.faults(maven=True)
    assert sorted(clone.iterdir()) == before


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ("requirements.txt", "python"),
        ("pyproject.toml", "python"),
        ("pom.xml", "jars"),
        ("jars.lock", "jars"),
        ("jvm/kafka/pom.xml", "jars"),
        ("jvm/spark/src/main/java/Some.java", "jars"),
        ("tools/nats/go.mod", "nats"),
        ("tools/nats/go.sum", "nats"),
        ("README.md", ""),
    ],
)
def test_only_what_its_pins_ask_for_is_done_again(
    changed: str, again: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pins = ["requirements.txt", "requirements-build.txt", "pyproject.toml", "pom.xml", "jvm/kafka/pom.xml", "jars.lock"]
    for name in [*pins, *NATS_PINS, "jvm/spark/src/main/java/Some.java", "README.md"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("before")
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    before = fingerprints()

    (tmp_path / changed).write_text("after")

    after = fingerprints()
    assert [part for part in before if before[part] != after[part]] == ([again] if again else [])


NATS_PINS = ("tools/nats/go.mod", "tools/nats/go.sum")


def fingerprints() -> dict[str, str]:
    return {
        "python": setup.python_fingerprint(dev=False),
        "jars": setup.jars_fingerprint(),
        "nats": replace(setup.NATS, module=setup.ROOT / "tools" / "nats").fingerprint(),
    }


def test_packages_and_jars_are_fetched_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both, commands = threading.Barrier(2, timeout=60), []

    def fetch(step: Step, command: list[str | Path], folder: Path) -> None:
        text = " ".join(map(str, command))
        commands.append(text)
        if text.endswith("requirements.txt") or "--projects=!jvm/spark" in text:
            both.wait()

    monkeypatch.setattr(Step, "run", fetch)
    for name in ("VENV", "JARS", "_FRESH_JARS", "LOG"):
        monkeypatch.setattr(setup, name, tmp_path / name / name)
    (tmp_path / "VENV/VENV/lib/python3.11/site-packages/pyspark/jars").mkdir(parents=True)
    setup._FRESH_JARS.mkdir(parents=True)
    setup.JARS.parent.mkdir()
    monkeypatch.setattr(machine, "faults", lambda *, maven: [])
    monkeypatch.setattr(setup, "differences", lambda folder: [])
    monkeypatch.setattr(setup.shutil, "rmtree", lambda folder, ignore_errors: None)

    assert setup._set_up(dev=False) == 0
    assert "--projects=jvm/spark" in commands[-1]
    assert (setup.JARS / ".ready").read_text() == setup.jars_fingerprint()


def test_pip_is_followed_package_by_package_and_megabyte_by_megabyte() -> None:
    read = readers.pip_reader(28)

    assert [read(line) for line in PIP_OUTPUT] == [
        "1 of 28, anyio==4.16.0",
        None,
        "2 of 28, pyspark==4.3.0",
        None,
        "2 of 28, pyspark==4.3.0: 225 of 450 MB",
        "building pyspark",
        "installing",
    ]


PIP_OUTPUT = [
    "Collecting anyio==4.16.0 (from -r requirements.txt (line 19))",
    "  Downloading anyio-4.16.0-py3-none-any.whl (134 kB)",
    "Collecting pyspark==4.3.0 (from -r requirements.txt (line 260))",
    "  Downloading pyspark-4.3.0.tar.gz (450.1 MB)",
    "Progress 225000000 of 450100000",
    "  Building wheel for pyspark (pyproject.toml): started",
    "Installing collected packages: anyio, pyspark",
]


def test_maven_is_followed_by_modules_files_and_their_sizes() -> None:
    read = readers.maven_reader()

    assert read("[INFO] Building embedded-kafka 0.1.0                          [3/4]") == "embedded-kafka"
    assert read("[INFO] Downloading from central: repo/org/a/1/a-1.jar") is None
    assert read("[INFO] Downloaded from central: repo/org/a/1/a-1.jar (1.5 MB at 3 MB/s)") == "1 files, 2 MB, a-1.jar"
    assert read("[INFO] Downloaded from central: repo/org/b/1/b-1.jar (500 kB at 3 MB/s)") == "2 files, 2 MB, b-1.jar"


def test_a_step_ends_with_its_title_and_keeps_the_output_in_the_log(tmp_path: Path) -> None:
    screen, log = io.StringIO(), tmp_path / "setup.log"

    Step("Greeting", log, str.strip, str, screen).run(["echo", "hello"], tmp_path)

    assert screen.getvalue().splitlines() == ["Greeting ...", "Greeting: done in 0 s"]
    assert log.read_text() == "\n$ echo hello\nhello\n"


def test_on_a_terminal_a_step_is_one_line_drawn_again(tmp_path: Path) -> None:
    screen = Terminal()

    Step("Counting", tmp_path / "log", str.strip, str, screen).run(["printf", "one\ntwo\n"], tmp_path)

    drawn = screen.getvalue().split("\r\033[K")
    assert drawn == ["", "Counting: one (0 s)", "Counting: two (0 s)", "Counting: done in 0 s\n"]


def test_on_a_terminal_steps_side_by_side_share_the_line(tmp_path: Path) -> None:
    screen, command = Terminal(), ["sh", "-c", "until [ -e end ]; do sleep 0.05; done"]
    steps = [Step(title, tmp_path / title, str.strip, str, screen) for title in ("One", "Two")]

    with ThreadPoolExecutor() as pool:
        done = [pool.submit(step.run, command, tmp_path) for step in steps]
        try:
            wait(lambda: bool(re.search(r"(One|Two): started \(\d+ s\) \| (One|Two): started", screen.getvalue())))
        finally:
            (tmp_path / "end").touch()
        for each in done:
            each.result()

    assert "One: done in" in screen.getvalue()
    assert "Two: done in" in screen.getvalue()


NO_NETWORK = """\
WARNING: Retrying (Retry(total=0)) after connection broken by "NewConnectionError([Errno 111] Connection refused)": /x/
ERROR: Could not find a version that satisfies the requirement x==0.6 (from versions: none)
ERROR: No matching distribution found for x==0.6
"""


@pytest.mark.parametrize(
    ("explain", "output", "cause"),
    [
        (readers.pip_cause, "Collecting a\nERROR: No matching distribution found for a\n", "No matching distribution"),
        (readers.pip_cause, NO_NETWORK, "the package index cannot be reached: [Errno 111] Connection refused"),
        (
            readers.maven_cause,
            "[INFO] x\n[ERROR] Unknown host repo -> [Help 1]\n[ERROR] To see more\n",
            "Unknown host repo",
        ),
        (
            readers.go_cause,
            "go: downloading a v1\nnet/http\ngo: a@v1: verifying module: checksum mismatch\n\nSECURITY ERROR\n",
            "a@v1: verifying module: checksum mismatch",
        ),
        (readers.go_cause, "net/http\n# a/b\n./b.go:1:2: undefined: c\n", "./b.go:1:2: undefined: c"),
        (readers.last_line, "one\ntwo\n\n", "two"),
    ],
)
def test_a_failed_step_is_one_line_with_the_cause_and_the_log(
    explain: readers.Explain, output: str, cause: str, tmp_path: Path
) -> None:
    step = Step("Fetching", tmp_path / "setup.log", str.strip, explain, io.StringIO())

    with pytest.raises(StepError) as told:
        step.run(["sh", "-c", f"printf '{output}'; exit 1"], tmp_path)

    assert str(told.value).startswith(f"Fetching: {cause}")
    assert str(told.value).endswith(f"; see {os.path.relpath(tmp_path / 'setup.log')}")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("name", ["jms-bridge.properties", "routes.test.yaml"])
def test_a_fresh_clone_has_the_templates_that_init_writes(name: str) -> None:
    git = shutil.which("git") or pytest.skip("no git: the test compares what git has")
    done = subprocess.run([git, "show", f":{name}"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("this is not a clone: the test compares what git has")
    assert done.stdout == (ROOT / "engine/cli/templates" / name).read_bytes(), f"cp engine/cli/templates/{name} {name}"
