"""Writes `jars.lock`: for each jar that set-up fetches its SHA-256, Maven coordinates and licence: `make jars-lock`.

`tools.setup` compares every jar with it. Where jars come from is each machine's own business: no address gets into the
file. The licence is what the jar's POM, or else its manifest, says.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

from engine.jars import HALLMARKS

__all__ = ["LOCK", "OWN", "differences", "locked", "main"]

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "jars.lock"
OWN = tuple(f"{folder}/{HALLMARKS[folder]}" for folder in ("spark", "jms"))
"""Compiled here, and so not the same on every machine."""

_JARS = ROOT / ".jars"
_REPOSITORY = Path.home() / ".m2" / "repository"
_SPDX = (
    (r"apache", "Apache-2.0"),
    (r"bouncy|mit\b|opensource\.org/licenses/mit", "MIT"),
    (r"bsd.?2|2.clause|simplified bsd", "BSD-2-Clause"),
    (r"bsd|edl|eclipse distribution", "BSD-3-Clause"),
    (r"gpl.?2.*cpe|gpl2.*classpath|classpath", "GPL-2.0-only WITH Classpath-exception-2.0"),
    (r"eclipse public license.*2|epl.?2|epl-v20", "EPL-2.0"),
    (r"eclipse public", "EPL-1.0"),
    (r"lgpl|lesser", "LGPL-2.1-only"),
    (r"mozilla|mpl", "MPL-1.1"),
    (r"cddl.*1\.1", "CDDL-1.1"),
    (r"cddl|common development", "CDDL-1.0"),
    (r"public domain|cc0", "CC0-1.0"),
)
"""SPDX names of licences, by patterns of the names in POMs and manifests."""


_MANIFEST = "META-INF/MANIFEST.MF"
_EXCEPTIONS = {
    "activemq-openwire-legacy": "Apache-2.0",
    "picocli": "Apache-2.0",
    "picocli-shell-jline3": "Apache-2.0",
    "re2j": "BSD-3-Clause",
    "zookeeper": "Apache-2.0",
    "zookeeper-jute": "Apache-2.0",
}
"""By artifact, where neither POM nor manifest says it."""


def main() -> None:
    """Writes the file from the jars that are there; SystemExit names those without a licence."""
    found = {name: _entry(path) for name, path in _files(_JARS).items()}
    LOCK.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if unknown := [name for name, entry in found.items() if not entry["license"]]:
        raise SystemExit(f"no licence found of: {', '.join(unknown)}")


def locked() -> dict[str, dict[str, Any]]:
    """The entries of the lock, by the path of the jar below the folder of jars."""
    return dict(json.loads(LOCK.read_text(encoding="utf-8")))


def differences(jars: Path) -> list[str]:
    """Returns a line for each jar of a folder that differs from the lock, is missing, or is not in the lock."""
    wanted, files = locked(), _files(jars)
    wrong = [f"{name} is not in jars.lock" for name in files.keys() - wanted.keys()]
    wrong += [f"{name} is missing" for name in wanted.keys() - files.keys()]
    both = files.keys() & wanted.keys()
    wrong += [
        f"{name} has another SHA-256 than in jars.lock" for name in both if _sha(files[name]) != wanted[name]["sha256"]
    ]
    return sorted(wrong)


def _files(jars: Path) -> dict[str, Path]:
    found = {path.relative_to(jars).as_posix(): path for path in sorted(jars.rglob("*.jar"))}
    for own in OWN:
        found.pop(own, None)
    return found


def _sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _entry(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as jar:
        names = jar.namelist()
        inner = [name for name in names if re.fullmatch(r"META-INF/maven/[^/]+/[^/]+/pom\.xml", name)]
        own = [name for name in inner if path.name.startswith(f"{name.split('/')[3]}-")] or inner[: len(inner) == 1]
        text = jar.read(own[0]).decode() if own else ""
        manifest = jar.read(_MANIFEST).decode(errors="replace").replace("\r\n ", "") if _MANIFEST in names else ""
    if fetched := _poms().get(path.stem):
        text = fetched.read_text(encoding="utf-8")
    match = re.fullmatch(r"(.+?)-(\d[\w.+-]*)\.jar", path.name)
    artifact, version = match.groups() if match else (path.stem, "")
    licences = [*_licences(text), *re.findall(r"^Bundle-License: *(.*)", manifest, re.MULTILINE)]
    spdx = next((each for told in licences for pattern, each in _SPDX if re.search(pattern, told, re.IGNORECASE)), None)
    return {
        "group": _group(text) or None,
        "license": _EXCEPTIONS.get(artifact) or spdx,
        "name": artifact,
        "sha256": _sha(path),
        "version": version,
    }


def _group(pom: str) -> str:
    return _child(pom, "groupId") or _child(_part(pom, "parent"), "groupId")


def _licences(pom: str) -> list[str]:
    """Names and addresses of a POM's licences, else those of its parent."""
    if part := _part(pom, "licenses"):
        return re.findall(r"<(?:name|url)>\s*(.*?)\s*</", part, re.DOTALL)
    parent = _part(pom, "parent")
    found = _poms().get(f"{_child(parent, 'artifactId')}-{_child(parent, 'version')}")
    text = found.read_text(encoding="utf-8") if found else ""
    return _licences(text) if text != pom else []


@cache
def _poms() -> dict[str, Path]:
    """Maven's POMs on this machine, by artifact and version."""
    return {path.stem: path for path in _REPOSITORY.rglob("*.pom")}


def _part(pom: str, tag: str) -> str:
    found = re.search(rf"<{tag}>(.*?)</{tag}>", pom, re.DOTALL)
    return found[1] if found else ""


def _child(pom: str, tag: str) -> str:
    """The text of a child of the project itself, or of one of its parts."""
    own = re.sub(
        r"<(parent|dependencies|dependencyManagement|build|profiles|reporting)>.*?</\1>", "", pom, flags=re.DOTALL
    )
    found = re.search(rf"<{tag}>\s*(.*?)\s*</{tag}>", own)
    return found[1] if found else ""


if __name__ == "__main__":
    main()
