"""Programs of another Debian release, unpacked once into a folder of their own and run below it by chroot.

A newer release has newer programs, and they need its newer C library. `mmdebstrap` unpacks a package with all that it
needs from the mirror from which this machine takes its own packages; no script of a package runs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from engine.embedded.ports import LOOPBACK
from engine.errors import SetupError
from engine.file_lock import lock
from tests.brokers.packages import CACHE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["INSIDE", "release_with", "within"]

INSIDE = "/mnt"
"""Folder below the root at which its programs find the folder that they are given."""
_SECONDS = 600
_SHELL = ("coreutils", "dash", "grep", "sed")
"""Packages that every Debian has, so that none names them; for the scripts that start a program."""
_MERGED = ("bin", "sbin", "lib", "lib64")
"""Folders of `/usr` to which a script of Debian, which does not run here, would make links."""
# The mounts are in a namespace of the process, and end with it.
_ENTER = f"""
set -e
mount --rbind /dev "$1/dev"
mount -t proc proc "$1/proc"
mount --bind "$2" "$1{INSIDE}"
root=$1
shift 2
exec chroot "$root" "$@"
"""


def release_with(release: str, package: str) -> Path:
    """Returns the root folder of a Debian release with one package; SetupError if this machine cannot have it."""
    root = CACHE / f"debian-{release}-{package}"
    for tool in ("mmdebstrap", "apt-get", "unshare", "chroot"):
        if shutil.which(tool) is None:
            raise SetupError(f"no {tool} in PATH, which {package} of Debian {release} needs: install mmdebstrap")
    if os.geteuid() != 0:
        raise SetupError(f"{package} of Debian {release} runs by chroot, which only root may do")
    CACHE.mkdir(parents=True, exist_ok=True)
    with root.with_name(f"{root.name}.lock").open("w") as file:
        lock(file.fileno())
        if not root.is_dir():
            fresh = root.with_name(f"{root.name}.new")
            shutil.rmtree(fresh, ignore_errors=True)
            _unpack(release, package, fresh)
            fresh.rename(root)
    return root


def within(root: Path, folder: Path, command: Sequence[str | Path]) -> Sequence[str | Path]:
    """Returns the command that runs another one below a root folder, with `folder` at `INSIDE`, in the same process."""
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", _ENTER, "sh", root, folder, *command]


def _unpack(release: str, package: str, root: Path) -> None:
    wanted = ",".join((package, *_SHELL))
    command = ["mmdebstrap", "--variant=extract", f"--include={wanted}", "--aptopt=Apt::Install-Recommends false"]
    _call([*command, release, str(root), _mirror()], f"{package} of Debian {release} cannot be had")
    for name in _MERGED:
        (root / name).symlink_to(f"usr/{name}")
    for name in ("proc", INSIDE.removeprefix("/")):
        (root / name).mkdir(exist_ok=True)
    (root / "etc" / "hosts").write_text(f"{LOOPBACK} localhost\n")
    (root / "tmp").mkdir(mode=0o1777, exist_ok=True)


def _mirror() -> str:
    """Returns the address of the mirror of Debian that this machine's own packages come from."""
    wanted = ["--format", "$(REPO_URI)", "Identifier: Packages", "Label: Debian"]
    found = _call(["apt-get", "indextargets", *wanted], "apt-get does not tell the mirror").split()
    if not found:
        raise SetupError("this machine has no mirror of Debian in the sources of apt")
    return found[0]


def _call(command: Sequence[str], problem: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise SetupError(f"{problem}: no end within {_SECONDS} s") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("E: ")]
        raise SetupError(f"{problem}: {lines[0] if lines else done.stderr.strip()[-200:]}")
    return done.stdout
