"""The jars are those of the lock, and the bill of materials names them all."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tools import lock
from tools.sbom import bill

ROOT = Path(__file__).parents[2]


def test_a_jar_that_is_not_as_locked_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = tmp_path / "jars"
    (jars / "kafka").mkdir(parents=True)
    for name in ("same", "other", "new"):
        (jars / "kafka" / f"{name}.jar").write_bytes(name.encode())
    wanted = {f"kafka/{name}.jar": {"sha256": lock._sha(jars / "kafka/same.jar")} for name in ("same", "other", "gone")}
    monkeypatch.setattr(lock, "LOCK", tmp_path / "jars.lock")
    lock.LOCK.write_text(json.dumps(wanted))
    assert lock.differences(jars) == [
        "kafka/gone.jar is missing",
        "kafka/new.jar is not in jars.lock",
        "kafka/other.jar has another SHA-256 than in jars.lock",
    ]
    shutil.rmtree(jars)


def test_the_lock_has_a_licence_and_a_hash_for_each_jar_and_no_address() -> None:
    entries = lock.locked()
    assert len(entries) > 100
    assert all(each["license"] and re.fullmatch("[0-9a-f]{64}", each["sha256"]) for each in entries.values())
    assert "://" not in lock.LOCK.read_text()


def test_the_bill_of_materials_has_every_package_and_jar_with_version_hash_and_licence() -> None:
    document = json.loads(bill())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    components = document["components"]
    assert len({each["bom-ref"] for each in components}) == len(components)
    names = {each["name"] for each in components}
    assert {"pyspark", "confluent-kafka", "kafka-clients", "artemis-server"} <= names
    assert not [each["name"] for each in components if not each["version"] and "boot" not in each["name"]]
    assert not [each["name"] for each in components if not each.get("licenses")]
    assert not [
        each["name"] for each in components if not (each.get("hashes") or each["externalReferences"][0]["hashes"])
    ]


def test_the_bill_of_materials_fits_its_schema() -> None:
    validation = pytest.importorskip(
        "cyclonedx.validation.json", reason="pip install cyclonedx-python-lib[json-validation]"
    )
    from cyclonedx.schema import SchemaVersion

    assert validation.JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill()) is None
