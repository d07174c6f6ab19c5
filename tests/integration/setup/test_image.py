"""The image that `make image` wrote, run as it says: not as root, and with nothing to write to but its volumes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.integration.bridge_process import Bridge, configuration, descendants, wait, wait_arrived
from tests.waiting import patience
from tools.image import ARCHIVE, Image
from tools.image_bill import bill

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNTIMES = "runc", "crun"
GRACE_SECONDS = 120
"""Time that the documentation gives the bridge to stop."""

pytestmark = pytest.mark.further_cases


@pytest.fixture(scope="module")
def image() -> Image:
    if not ARCHIVE.exists():
        pytest.skip(f"there is no {ARCHIVE.name}: make image writes it")
    return Image(ARCHIVE)


@pytest.fixture(scope="module")
def root(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file system of the image."""
    if os.geteuid() != 0:
        pytest.skip("only root can unpack an image and run it without a daemon")
    folder = tmp_path_factory.mktemp("image")
    # The root folder of a container is for all users.
    folder.chmod(0o755)
    image.unpack(folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def container(image: Image, root: Path, tmp_path: Path) -> Iterator[Container]:
    runtime = next(filter(None, map(shutil.which, RUNTIMES)), None)
    if runtime is None:
        pytest.skip("there is no runc: it is in the Debian package runc")
    made = Container(runtime, image.run, root, tmp_path)
    yield made
    made.end()


class Container:
    """A container with the network of this machine, a read-only root, no capabilities, and the image's user."""

    def __init__(self, runtime: str, settings: dict[str, Any], root: Path, folder: Path) -> None:
        (volume,) = settings["Volumes"]
        self.volume, self._runtime, self._folder = folder / "volume", runtime, folder
        self.user = int(settings["User"])
        self.volume.mkdir(mode=0o700)
        os.chown(self.volume, self.user, self.user)
        given = folder / "etc"
        given.mkdir()
        # All its data are in the volume, with the brokers that it brings.
        file = configuration(given)
        file.write_text(file.read_text().replace(str(given), volume))
        self.bridge = Bridge(file)
        bound = {str(given): "/etc/jms-bridge", "/etc/hosts": "/etc/hosts"}
        mounts = [mount("bind", source, target, "rbind", "ro") for source, target in bound.items()]
        mounts += [mount("proc", "proc", "/proc"), mount("tmpfs", "tmpfs", "/dev", "nosuid", "mode=755")]
        mounts += [mount("tmpfs", "tmpfs", "/tmp", "nosuid", "nodev"), mount("bind", str(self.volume), volume, "rbind")]  # noqa: S108
        process = {
            "args": [*settings["Entrypoint"], *settings["Cmd"]],
            "env": settings["Env"],
            "cwd": settings["WorkingDir"],
            "user": {"uid": self.user, "gid": self.user},
            "noNewPrivileges": True,
            "capabilities": {},
            "rlimits": [{"type": "RLIMIT_NOFILE", "soft": 4096, "hard": 4096}],
        }
        bundle = {
            "ociVersion": "1.0.2",
            "root": {"path": str(root), "readonly": True},
            "process": process,
            "mounts": mounts,
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount")]},
        }
        (folder / "config.json").write_text(json.dumps(bundle))

    def start(self) -> None:
        with self.bridge.file.with_suffix(".out").open("wb") as output:
            command = [self._runtime, "--root", self._folder / "state", "run", "--bundle", self._folder, self._name]
            self.bridge.process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)

    @property
    def _name(self) -> str:
        return f"bridge-{os.getpid()}"

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to the first process of the container, as whatever runs containers does."""
        command = [self._runtime, "--root", self._folder / "state", "kill", self._name, number.name]
        subprocess.run(command, check=True)

    def end(self) -> None:
        """Whatever state it is in."""
        if self.bridge.running:
            self.send(signal.SIGKILL)
            assert self.bridge.process
            self.bridge.process.wait(patience(60))


def mount(kind: str, source: str, target: str, *options: str) -> dict[str, Any]:
    return {"type": kind, "source": source, "destination": target, "options": [*options]}


def test_a_bridge_runs_in_a_container_and_ends_in_order(container: Container) -> None:
    bridge = container.bridge
    container.start()
    bridge.wait_ready()
    assert bridge.process
    running = [psutil.Process(pid) for pid in descendants(bridge.process.pid)]
    inside = [each for each in running if each.name() not in RUNTIMES]
    assert len(inside) > 4
    assert {each.uids().real for each in inside} == {container.user}

    bridge.send([1, 2, 3])
    wait_arrived(bridge, 1, 2, 3)

    container.send(signal.SIGTERM)
    assert bridge.process.wait(patience(GRACE_SECONDS)) == 0, bridge.output
    assert "router stopped" in bridge.output
    assert {path.stat().st_uid for path in container.volume.rglob("*")} == {container.user}
    wait(lambda: not any(each.is_running() for each in inside))


def test_its_java_has_the_modules_that_jars_need(root: Path) -> None:
    done = subprocess.run([root / "opt/java/bin/java", "--list-modules"], capture_output=True, text=True, check=True)
    wanted = (Path(__file__).parents[3] / "deploy/docker/modules.txt").read_text().split()
    assert set(wanted) <= {line.partition("@")[0] for line in done.stdout.split()}


def test_its_bill_of_materials_names_what_is_in_it(image: Image, root: Path) -> None:
    names = {each["name"] for each in json.loads(bill(image.files()))["components"]}
    assert {"jms-bridge", "pyspark", "pyarrow", "python3.11-minimal", "libc6", "openjdk", "spark-core_2.13"} <= names
    assert not {"pip", "setuptools", "spark-mllib_2.13", "hive-exec"} & names
    assert len([*root.rglob("*.jar")]) == len([name for name, _ in image.files() if name.endswith(".jar")])


def test_it_has_no_tools_and_no_file_that_changes_its_user(root: Path) -> None:
    assert not [
        name for name in ("apt", "bash", "busybox", "chmod", "dpkg", "ls", "perl") if (root / "usr/bin" / name).exists()
    ]
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in files if path.stat().st_mode & 0o6000]
    assert not [path for path in files if path.stat().st_uid != 0 or path.stat().st_mode & 0o022]
