"""Versions of schemas that producers register while a topology has state: which ones it reads by at its next start."""

from __future__ import annotations

import json as plain_json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from engine.schemas.section import SchemaConfig
from engine.streams import Stream, StreamsBuilder, Topology, avro, plan
from engine.topologies.library.program import java_serde
from engine.topologies.runtime import registry as registries
from engine.topologies.runtime.kept import KeptState

PAGE = {"name": "page", "type": "string"}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
PARTITIONS = {"clicks": 1, "pages": 1}


def click(number: str, *more: dict[str, Any]) -> str:
    fields = [PAGE, {"name": "n", "type": number}, *more]
    return plain_json.dumps({"type": "record", "name": "Click", "fields": fields})


@pytest.fixture
def registry(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    made = jvm.jmsbridge.serdes.MemoryRegistry()
    register(spark, made, click("int"))
    yield made
    made.close()


def register(spark: SparkSession, registry: Any, schema: str, subject: str = "clicks-value") -> None:
    jvm: Any = spark._jvm
    java_serde(avro(schema), jvm.jmsbridge.serdes.SchemaSerde, registry).register(subject)


def totals(clicks: Stream) -> None:
    clicks.group_by("page").aggregate("totals", total="sum(n)").to("out")


def notes(clicks: Stream) -> None:
    clicks.group_by("page").aggregate("totals", total="sum(n)", note="max(note)").to("out")


def table(clicks: Stream) -> None:
    clicks.to_table(name="latest").to("out")


def stateless(clicks: Stream) -> None:
    clicks.filter("n > 0").to("out")


def topology(build: Callable[[Stream], None]) -> Topology:
    builder = StreamsBuilder("versions")
    build(builder.stream("clicks", value=avro(), name="clicks"))
    return builder.build()


@pytest.mark.parametrize("build", [totals, table])
def test_a_compatible_version_leaves_the_state_and_the_fields_as_they_are(
    spark: SparkSession, registry: Any, build: Callable[[Stream], None]
) -> None:
    first = KeptState.of(plan(topology(build), spark, registry=registry), PARTITIONS, None)
    assert first.versions == {"clicks-value": 1}
    register(spark, registry, click("int", NOTE))
    latest = plan(topology(build), spark, registry=registry)
    assert first.misfits(KeptState.of(latest, PARTITIONS, first))
    pinned = plan(topology(build), spark, registry=registry, pinned=first.versions)
    assert pinned.fields("clicks") == "page STRING NOT NULL,n INT NOT NULL"
    second = KeptState.of(pinned, PARTITIONS, first)
    assert first.misfits(second) == []
    assert second.versions == {"clicks-value": 1}


def test_a_version_whose_values_the_former_one_cannot_read_is_a_change(spark: SparkSession, registry: Any) -> None:
    first = KeptState.of(plan(topology(totals), spark, registry=registry), PARTITIONS, None)
    register(spark, registry, click("long"))
    now = KeptState.of(plan(topology(totals), spark, registry=registry, pinned=first.versions), PARTITIONS, first)
    assert now.versions == {"clicks-value": 2}
    assert any(each.startswith("changed: totals") for each in first.misfits(now))


def test_a_topology_that_uses_a_later_field_gets_the_latest_version_and_is_compared(
    spark: SparkSession, registry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registries, "jvm_registry", lambda *_: registry)
    first = KeptState.of(plan(topology(totals), spark, registry=registry), PARTITIONS, None)
    register(spark, registry, click("int", NOTE))
    made = registries.planned(SchemaConfig(), topology(notes), spark, pinned=first.versions)
    assert made.versions == {"clicks-value": 2}
    assert any(each.startswith("changed: totals") for each in first.misfits(KeptState.of(made, PARTITIONS, first)))


def test_a_pinned_version_that_the_registry_has_no_more_is_left(spark: SparkSession, registry: Any) -> None:
    assert plan(topology(totals), spark, registry=registry, pinned={"clicks-value": 7}).versions == {"clicks-value": 1}


def test_nothing_is_pinned_where_there_is_no_state_or_the_version_is_named(spark: SparkSession, registry: Any) -> None:
    assert KeptState.of(plan(topology(stateless), spark, registry=registry), PARTITIONS, None).versions == {}
    builder = StreamsBuilder("versions")
    totals(builder.stream("clicks", value=avro(version=1)))
    assert plan(builder.build(), spark, registry=registry).versions == {}


def test_what_was_noted_before_versions_were_is_read() -> None:
    fields = {"nodes": {}, "partitions": {}, "topics": {}, "inputs": {}, "stores": {}, "dropped": []}
    assert KeptState(**fields).versions == {}  # type: ignore[arg-type]
