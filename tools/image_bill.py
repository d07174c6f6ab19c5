"""The bill of materials of a container image, as CycloneDX 1.6 in JSON, made from the files in it."""

from __future__ import annotations

import hashlib
import json
import re
from email.parser import BytesHeaderParser
from typing import TYPE_CHECKING, Any

from tools.lock import locked
from tools.sbom import sha

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["bill"]

_JAR = re.compile(r"(.+?)(?:-(\d[\w.+-]*?))?\.jar")


def bill(files: Iterable[tuple[str, bytes]]) -> str:
    """The document, from path and content of the files that tell of packages; the same for the same files."""
    known = {entry["sha256"]: entry for entry in locked().values()}
    found = {}
    for path, content in files:
        component = _component(path, content, known)
        found[component["bom-ref"]] = component
    components = [found[name] for name in sorted(found)]
    document = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": components}
    return json.dumps(document, indent=1) + "\n"


def _component(path: str, content: bytes, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    if path.endswith(".jar"):
        return _jar(path, content, known)
    if path.endswith("opt/java/release"):
        values = dict(re.findall(r'^(\w+)="(.*)"$', content.decode(), re.MULTILINE))
        return _library("openjdk", values["JAVA_VERSION"], f"pkg:generic/openjdk@{values['JAVA_VERSION']}")
    fields = BytesHeaderParser().parsebytes(content)
    name, version = (fields["Package"] or fields["Name"]), fields["Version"]
    if fields["Package"]:
        return _library(name, version, f"pkg:deb/debian/{name}@{version}?arch={fields['Architecture']}")
    licence = fields["License-Expression"]
    told = {"licenses": [{"expression": licence}]} if licence else {}
    return _library(name, version, f"pkg:pypi/{name.lower()}@{version}") | told


def _jar(path: str, content: bytes, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A jar, with its Maven coordinates where `jars.lock` has it; else with what the name of its file says."""
    digest = hashlib.sha256(content).hexdigest()
    told = {"hashes": [sha(digest)]}
    if entry := known.get(digest):
        purl = f"pkg:maven/{entry['group']}/{entry['name']}@{entry['version']}"
        group = {"group": entry["group"], "purl": purl} if entry["group"] else {}
        named = {"type": "library", "bom-ref": path, "name": entry["name"], "version": entry["version"]}
        return named | group | {"licenses": [{"expression": entry["license"]}]} | told
    match = _JAR.fullmatch(path.rpartition("/")[2])
    name, version = match.groups() if match else (path, None)
    return {"type": "library", "bom-ref": path, "name": name, **({"version": version} if version else {})} | told


def _library(name: str, version: str, purl: str) -> dict[str, Any]:
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
