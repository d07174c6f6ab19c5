"""The bill of materials of a wheel, as CycloneDX 1.6 in JSON: Python packages it needs, and jars that it has in it."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

from tools.lock import locked

__all__ = ["NAME", "bill", "sha"]

ROOT = Path(__file__).resolve().parents[1]
NAME = "jms-bridge.cdx.json"

_PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)", re.MULTILINE)


def bill() -> str:
    """The document; the same for the same pins (no time, no serial number)."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = {
        "type": "application",
        "name": project["name"],
        "version": project["version"],
        "licenses": [{"expression": project["license"]}],
    }
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": [*_packages(), *_jars()],
    }
    return json.dumps(document, indent=1) + "\n"


def _packages() -> list[dict[str, Any]]:
    """Packages of `requirements.txt`, with the hashes of all their files."""
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    found = []
    starts = [*_PINNED.finditer(text)]
    for match, end in zip(starts, [*(each.start() for each in starts[1:]), len(text)], strict=True):
        name, version = match.groups()
        purl = f"pkg:pypi/{name.lower()}@{version}"
        files = re.findall(r"--hash=sha256:([0-9a-f]{64})", text[match.end() : end])
        component = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
        hashes = [{"type": "distribution", "url": purl, "hashes": [sha(each) for each in files]}]
        found.append(component | _licence_of(name) | {"externalReferences": hashes})
    return found


def _licence_of(package: str) -> dict[str, Any]:
    try:
        told = metadata.metadata(package)
    except metadata.PackageNotFoundError:
        return {}
    if expressions := told.get_all("License-Expression"):
        return {"licenses": [{"expression": expressions[0]}]}
    classified = [each.rpartition(" :: ")[2] for each in told.get_all("Classifier") or () if each.startswith("License")]
    name = next((each for each in (*classified, *(told.get_all("License") or ())) if each and len(each) < 100), None)
    return {"licenses": [{"license": {"name": name}}]} if name else {}


def _jars() -> list[dict[str, Any]]:
    found = []
    for path, entry in locked().items():
        group = entry["group"]
        component = {"type": "library", "bom-ref": path, "name": entry["name"], "version": entry["version"]}
        if group:
            component |= {"group": group, "purl": f"pkg:maven/{group}/{entry['name']}@{entry['version']}"}
        found.append(component | {"licenses": [{"expression": entry["license"]}], "hashes": [sha(entry["sha256"])]})
    return found


def sha(digest: str) -> dict[str, str]:
    """A hash as CycloneDX writes it, from the hexadecimal SHA-256 of a file."""
    return {"alg": "SHA-256", "content": digest}
