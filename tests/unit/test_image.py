"""The reader of image archives, and the bill of materials that it makes of their files."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from tools.image import Image, Layer
from tools.image_bill import bill
from tools.lock import locked

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CONTROL = b"Package: libc6\nVersion: 2.36-9\nArchitecture: amd64\n"
METADATA = b"Metadata-Version: 2.4\nName: PyYAML\nVersion: 6.0.3\nLicense-Expression: MIT\n\nText: 1\n"
LOWER = {"var/lib/dpkg/status.d/libc6": CONTROL, "etc/passwd": b"root"}
UPPER = {
    "opt/jms-bridge/lib/python3.11/site-packages/pyyaml-6.0.3.dist-info/METADATA": METADATA,
    "opt/java/release": b'JAVA_VERSION="17.0.21"\nOS_NAME="Linux"\n',
    "opt/jms-bridge/jars/spark-core_2.13-4.3.0.jar": b"jar",
}


def packed(files: Mapping[str, bytes]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
    return content.getvalue()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive in the layout of the Open Container Initiative with two layers."""
    blobs: dict[str, bytes] = {}

    def stored(content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"digest": f"sha256:{digest}", "size": len(content)}

    layers = [stored(gzip.compress(packed(files), mtime=0)) for files in (LOWER, UPPER)]
    history = [{"created_by": "lower"}, {"created_by": "USER", "empty_layer": True}, {"created_by": "upper"}]
    settings = stored(json.dumps({"config": {"User": "10001"}, "history": history}).encode())
    manifest = stored(json.dumps({"config": settings, "layers": layers}).encode())
    file = tmp_path / "image.tar"
    file.write_bytes(packed({"index.json": json.dumps({"manifests": [manifest]}).encode(), **blobs}))
    return file


def test_the_layers_have_sizes_and_the_lines_that_made_them(archive: Path) -> None:
    image = Image(archive)
    assert image.run == {"User": "10001"}
    lower, upper = image.layers()
    assert (lower.instruction, upper.instruction) == ("lower", "upper")
    assert (lower.unpacked, upper.unpacked) == (len(packed(LOWER)), len(packed(UPPER)))
    assert lower.packed == len(gzip.compress(packed(LOWER), mtime=0))
    assert isinstance(lower, Layer)


def test_the_bill_of_materials_names_packages_java_and_jars(archive: Path) -> None:
    document = json.loads(bill(Image(archive).files()))
    found = {each["name"]: each for each in document["components"]}
    assert found.keys() == {"libc6", "PyYAML", "openjdk", "spark-core_2.13"}
    assert found["libc6"]["purl"] == "pkg:deb/debian/libc6@2.36-9?arch=amd64"
    assert found["PyYAML"]["purl"] == "pkg:pypi/pyyaml@6.0.3"
    assert found["PyYAML"]["licenses"] == [{"expression": "MIT"}]
    assert found["openjdk"]["version"] == "17.0.21"
    assert found["spark-core_2.13"]["version"] == "4.3.0"
    assert found["spark-core_2.13"]["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(b"jar").hexdigest()}]


def test_a_jar_that_is_pinned_has_its_maven_coordinates(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = next(each for each in locked().values() if each["group"])
    pinned = {"a.jar": {**entry, "sha256": hashlib.sha256(b"jar").hexdigest()}}
    monkeypatch.setattr("tools.image_bill.locked", lambda: pinned)
    (component,) = json.loads(bill([("opt/a.jar", b"jar")]))["components"]
    assert component["purl"] == f"pkg:maven/{entry['group']}/{entry['name']}@{entry['version']}"
    assert component["licenses"] == [{"expression": entry["license"]}]


def test_an_archive_of_another_kind_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.tar"
    file.write_bytes(packed({"manifest.json": b"[]"}))
    with pytest.raises(KeyError, match=r"index\.json"):
        Image(file)


def test_the_file_system_is_that_of_all_layers(archive: Path, tmp_path: Path) -> None:
    folder = tmp_path / "root"
    folder.mkdir()
    Image(archive).unpack(folder)
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == {*LOWER, *UPPER}
