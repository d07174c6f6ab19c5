"""Builds the container image with Buildah, without a daemon: `python -m tools.image [--base FILE] [OPTION ...]`.

It writes `dist/jms-bridge-VERSION-image.tar`, an archive in the layout of the Open Container Initiative, and beside it
the bill of materials of what the image contains, as CycloneDX in JSON. Then it prints the size of each layer. `--base`
is a root file system of Debian as a tar file, for a machine that reaches no image registry; `mmdebstrap` makes one.
Options behind it are given to `buildah build`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import tarfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tools.image_bill import bill

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["ARCHIVE", "Image", "Layer", "main"]

ROOT = Path(__file__).resolve().parents[1]
_VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
ARCHIVE = ROOT / "dist" / f"jms-bridge-{_VERSION}-image.tar"
"""Archive that `make image` writes."""
_STORE = ROOT / "build" / "image"
_BASE = "localhost/debian:base"
_EXIT_SETUP = 3


@dataclass(frozen=True, slots=True)
class Layer:
    """Layer of an image."""

    digest: str
    """SHA-256 of its compressed file, with the prefix `sha256:`."""
    packed: int
    """Size of its compressed file in bytes."""
    unpacked: int
    """Size of its uncompressed tar file in bytes."""
    instruction: str
    """Line of the Dockerfile that made it, as the builder notes it."""


class Image:
    """Image in an OCI archive."""

    def __init__(self, archive: Path) -> None:
        """Reads the archive's index; raises OSError, KeyError or ValueError for a file that is not an OCI archive."""
        self._archive = archive
        with tarfile.open(archive) as tar:
            (entry,) = _json(tar, "index.json")["manifests"]
            self._manifest = _json(tar, _blob(entry["digest"]))
            self._settings = _json(tar, _blob(self._manifest["config"]["digest"]))

    @property
    def run(self) -> dict[str, Any]:
        """How a container of the image is run: user, command, environment, volumes, ports, stop signal."""
        return dict(self._settings["config"])

    def layers(self) -> list[Layer]:
        """The layers, the lowest first."""
        notes = [each["created_by"] for each in self._settings["history"] if not each.get("empty_layer")]
        return [
            Layer(entry["digest"], entry["size"], self._unpacked_size(entry["digest"]), note)
            for entry, note in zip(self._manifest["layers"], notes, strict=True)
        ]

    def unpack(self, folder: Path) -> None:
        """Writes the file system of the image into an empty folder; needs root, for the owners of files."""
        for tar in self._opened():
            # The image is our own; devices and links out of the folder are what the other filters refuse.
            tar.extractall(folder, numeric_owner=True, filter="fully_trusted")  # noqa: S202

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Path and content of each file that a bill of materials is made from."""
        for tar in self._opened():
            for member in tar:
                if member.isfile() and _tells_of_contents(member.name) and (file := tar.extractfile(member)):
                    yield member.name, file.read()

    def _opened(self) -> Iterator[tarfile.TarFile]:
        with tarfile.open(self._archive) as outer:
            for entry in self._manifest["layers"]:
                with tarfile.open(fileobj=_file(outer, _blob(entry["digest"])), mode="r:gz") as tar:
                    yield tar

    def _unpacked_size(self, digest: str) -> int:
        with tarfile.open(self._archive) as outer, gzip.open(_file(outer, _blob(digest))) as layer:
            return layer.seek(0, 2)


def main() -> int:
    """The exit status: 0, or 3 after a line that says what is missing or which command failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, metavar="FILE", help="tar file of Debian's root file system")
    wanted, options = parser.parse_known_args()
    if not shutil.which("buildah"):
        print("no buildah in PATH: apt-get install buildah", file=sys.stderr)
        return _EXIT_SETUP
    try:
        _build(wanted.base, options)
    except subprocess.CalledProcessError as error:
        print(f"{' '.join(error.cmd[:6])} ... ended with exit code {error.returncode}", file=sys.stderr)
        return _EXIT_SETUP
    image = Image(ARCHIVE)
    own, packages = ARCHIVE.with_suffix(".cdx.json"), bill(image.files())
    own.write_text(packages, encoding="utf-8")
    _report(image.layers())
    print(f"{ARCHIVE.relative_to(ROOT)}, {own.relative_to(ROOT)}")
    return 0


def _build(base: Path | None, options: Sequence[str]) -> None:
    """Runs Buildah with a store of its own; CalledProcessError if a command of it fails."""
    if base:
        container = _output("from", "scratch")
        _buildah("add", container, str(base), "/")
        _buildah("commit", "--rm", container, _BASE)
        options = ["--build-arg", f"DEBIAN={_BASE}", *options]
    given = ["--isolation", "chroot", "--layers", "--format", "oci", "--file", "deploy/docker/Dockerfile"]
    _buildah("build", *given, "--tag", "jms-bridge", *options, ".")
    ARCHIVE.unlink(missing_ok=True)
    _buildah("push", "jms-bridge", f"oci-archive:{ARCHIVE}:{_VERSION}")


def _buildah(*arguments: str) -> None:
    """Runs a command of Buildah, whose output goes to stderr."""
    subprocess.run(_command(*arguments), cwd=ROOT, stdout=sys.stderr, check=True)


def _output(*arguments: str) -> str:
    """What a command of Buildah prints, without the end of the line."""
    done = subprocess.run(_command(*arguments), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def _command(*arguments: str) -> list[str]:
    store = ["--storage-driver", "vfs", "--root", str(_STORE / "root"), "--runroot", str(_STORE / "run")]
    return [shutil.which("buildah") or "buildah", *store, *arguments]


def _report(layers: Sequence[Layer]) -> None:
    for layer in layers:
        print(f"{layer.packed / 1e6:7.1f} MB packed {layer.unpacked / 1e6:7.1f} MB unpacked  {layer.instruction[:60]}")
    packed, unpacked = sum(each.packed for each in layers), sum(each.unpacked for each in layers)
    print(f"{packed / 1e6:7.1f} MB packed {unpacked / 1e6:7.1f} MB unpacked  together")


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _file(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    file = tar.extractfile(name)
    if file is None:
        msg = f"{name} is not a file"
        raise ValueError(msg)
    return file


def _json(tar: tarfile.TarFile, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.load(_file(tar, name))
    return content


def _tells_of_contents(path: str) -> bool:
    return path.endswith((".jar", ".dist-info/METADATA", "opt/java/release")) or "var/lib/dpkg/status.d/" in path


if __name__ == "__main__":
    sys.exit(main())
