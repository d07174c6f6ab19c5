"""JSON with a JSON Schema in topologies, beside the serializer of Confluent and the library jsonschema."""

from __future__ import annotations

import json as plain_json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from engine.streams import StreamsBuilder, TopologyError, TopologyTestDriver, json, json_schema, text
from tests.registry_server import RegistryServer, registry_server
from tests.spark.topologies.test_registry import client
from tests.spark.topologies.test_schemas import errors, framed, passing


def schema(properties: dict[str, Any], *required: str, **more: Any) -> str:
    return plain_json.dumps({"type": "object", "properties": properties, "required": list(required), **more})


ORDER_FIELDS = {
    "customer": {"type": "string", "minLength": 1},
    "amount": {"type": "number", "minimum": 0},
    "note": {"type": ["string", "null"]},
}
ORDER = schema(ORDER_FIELDS, "customer", "amount", title="Order", additionalProperties=False)
ANN = {"customer": "ann", "amount": 1.5}


def json_bytes(value: Any) -> bytes:
    return plain_json.dumps(value).encode()


def compact(value: Any) -> bytes:
    return plain_json.dumps(value, separators=(",", ":")).encode()


def writing(fields: str, sink: Any, **values: str) -> Any:
    """A topology that writes these fields, or expressions of them."""
    builder = StreamsBuilder("writing")
    stream = builder.stream("in", value=json(fields))
    (stream.map_values(**values) if values else stream).to("out", value=sink)
    return builder.build()


def test_values_are_read_and_written_in_the_wire_format(spark: SparkSession) -> None:
    driver = TopologyTestDriver(passing(json_schema(), json_schema(subject="in-value", register=False)), spark)
    number = driver.register("in-value", json_schema(ORDER))
    driver.pipe_input("in", "k", framed(number, json_bytes(ANN)))
    driver.pipe_input("in", "k", {"customer": "é", "amount": 2.0, "note": "x"})
    assert errors(driver) == []
    first, second = driver.read_output("out", as_bytes=True)
    assert first.value == framed(number, compact(ANN))
    assert second.value == framed(number, '{"customer":"é","amount":2.0,"note":"x"}'.encode())


def test_bare_values_have_no_head(spark: SparkSession) -> None:
    serde = json_schema(ORDER, registry=False)
    driver = TopologyTestDriver(passing(serde, serde), spark)
    driver.pipe_input("in", "k", json_bytes(ANN))
    assert errors(driver) == []
    assert [each.value for each in driver.read_output("out", as_bytes=True)] == [compact(ANN)]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", "fewer than Confluent's wire format has"),
        (json_bytes(ANN), "the first byte is 123 and not 0"),
        (framed(99, json_bytes(ANN)), "has no JSON schema with the id 99"),
        (framed(1, b"{"), "the bytes are not a valid JSON value of the schema with the id 1"),
        (framed(1, b"{} {}"), "the bytes are not a valid JSON value of the schema with the id 1"),
        (framed(1, b'{"customer":"\xff","amount":1}'), "the bytes are not a valid JSON value"),
        (framed(1, b"[" * 101), "the bytes are not a valid JSON value"),
        (framed(1, b"[]"), "does not fit its JSON Schema: value: array found, object expected"),
        (framed(1, json_bytes({"customer": "ann"})), "value: required property 'amount' not found"),
        (framed(1, json_bytes({**ANN, "amount": "1"})), "value.amount: string found, number expected"),
        (framed(1, json_bytes({**ANN, "amount": -1})), "value.amount: must have a minimum value of 0"),
        (framed(1, json_bytes({**ANN, "more": -1})), "value: property 'more' is not defined in the schema"),
        (framed(1, b'{"customer":"ann","amount":1e400}'), "the field amount is a double, which cannot be 1e400"),
    ],
)
def test_a_value_that_cannot_be_read_is_a_record_that_fails(spark: SparkSession, value: bytes, why: str) -> None:
    driver = TopologyTestDriver(passing(json_schema(ORDER)), spark)
    assert driver.register("in-value", json_schema(ORDER)) == 1
    driver.pipe_input("in", "k", value)
    driver.pipe_input("in", "k", framed(1, json_bytes(ANN)))
    (error,) = errors(driver)
    assert why in error
    assert [each.value for each in driver.read_output("out")] == [ANN]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"customer": "", "amount": 1}, "value.customer: must be at least 1 characters long"),
        ({"customer": "ann", "amount": -0.5}, "value.amount: must have a minimum value of 0"),
        ({"customer": None, "amount": -1}, "value.customer: null found, string expected"),
    ],
)
def test_a_value_that_does_not_fit_is_not_written(spark: SparkSession, value: Any, why: str) -> None:
    driver = TopologyTestDriver(writing("customer string, amount decimal(10,2)", json_schema(ORDER)), spark)
    driver.pipe_input("in", "k", value)
    driver.pipe_input("in", "k", ANN)
    (error,) = errors(driver)
    assert "the value does not fit its JSON Schema: " in error
    assert why in error
    (output,) = driver.read_output("out", as_bytes=True)
    assert output.value == framed(1, b'{"customer":"ann","amount":1.50}')


def test_several_faults_are_told_together(spark: SparkSession) -> None:
    wanted = schema({name: {"type": "integer", "minimum": 1} for name in "abcde"})
    driver = TopologyTestDriver(writing(", ".join(f"{name} int" for name in "abcde"), json_schema(wanted)), spark)
    driver.pipe_input("in", "k", dict.fromkeys("abcde", 0))
    (error,) = errors(driver)
    assert "value.a: must have" in error
    assert error.endswith(" and 2 more")


def test_null_is_written_where_the_schema_requires_the_field(spark: SparkSession) -> None:
    inner = {"type": "object", "properties": {"x": {"type": ["integer", "null"]}}, "required": ["x"]}
    wanted = schema(
        {"a": {"type": ["string", "null"]}, "b": {"type": "string"}, "c": {"type": "array", "items": inner}}, "a"
    )
    driver = TopologyTestDriver(writing("a string, b string, c array<struct<x: int>>", json_schema(wanted)), spark)
    driver.pipe_input("in", "k", {"c": [{"x": 1}, {"x": None}]})
    assert errors(driver) == []
    (output,) = driver.read_output("out")
    assert output.value == {"c": [{"x": 1}, {}]}, "Spark leaves nulls out"
    driver.pipe_input("in", "k", {"c": [{"x": 1}, {"x": None}]})
    (output,) = driver.read_output("out", as_bytes=True)
    assert output.value is not None
    assert plain_json.loads(output.value[5:]) == {"a": None, "c": [{"x": 1}, {"x": None}]}


def test_records_of_several_writers_are_read_into_one_schema(spark: SparkSession) -> None:
    wider = schema({**ORDER_FIELDS, "extra": {}}, "customer")
    unfit = schema({"customer": {"type": "string"}, "amount": {"type": "string"}})
    driver = TopologyTestDriver(passing(json_schema(ORDER)), spark)
    numbers = [driver.register("in-value", json_schema(each)) for each in (wider, unfit)]
    driver.pipe_input("in", "k", framed(numbers[0], json_bytes({"customer": "a", "extra": [1]})))
    driver.pipe_input("in", "k", framed(numbers[1], json_bytes({"customer": "b", "amount": "x"})))
    assert [each.value for each in driver.read_output("out")] == [{"customer": "a"}]
    assert len(errors(driver)) == 1


@pytest.mark.parametrize(
    "harmful",
    [
        '{"$ref": "#"}',
        '{"allOf": [{"$ref": "#"}]}',
        '{"properties": {"customer": {"pattern": "("}}}',
        '{"$ref": "http://127.0.0.1:1/x.json"}',
        '{"$schema": "http://127.0.0.1:1/draft"}',
        '{"properties": {"customer": ' + '{"not": ' * 5_000 + "true" + "}" * 5_002,
    ],
)
def test_a_schema_that_cannot_be_used_is_the_fault_of_its_records(spark: SparkSession, harmful: str) -> None:
    driver = TopologyTestDriver(passing(json_schema(ORDER)), spark)
    driver.register("in-value", json_schema(ORDER))
    jvm: Any = spark._jvm
    written = jvm.jmsbridge.serdes.SchemaText(harmful, jvm.java.util.ArrayList())
    number = driver._schemas().register("JSON", "x", written)
    driver.pipe_input("in", "k", framed(number, json_bytes(ANN)))
    driver.pipe_input("in", "k", framed(1, json_bytes(ANN)))
    assert len(errors(driver)) == 1
    assert [each.value for each in driver.read_output("out")] == [ANN]


TYPES = {
    "s": {"type": "string"},
    "i": {"type": "integer"},
    "n": {"type": "number"},
    "b": {"type": "boolean"},
    "at": {"type": "string", "format": "date-time"},
    "day": {"type": "string", "format": "date"},
    "raw": {"type": "string", "contentEncoding": "base64"},
    "level": {"enum": ["LOW", "HIGH"]},
    "tags": {"type": "array", "items": {"type": "string"}},
    "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
    "inner": {"$ref": "#/$defs/Inner"},
    "again": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/Inner"}]},
    "both": {"allOf": [{"$ref": "#/$defs/Inner"}, {"properties": {"y": {"type": "number"}}}]},
}
INNER = {"type": "object", "properties": {"x": {"type": "integer"}}}


def test_types_of_a_schema_are_those_of_spark(spark: SparkSession) -> None:
    wanted = schema(TYPES, **{"$defs": {"Inner": INNER}})
    serde = json_schema(wanted, registry=False)
    given = {
        "s": "é\n", "i": 2**62, "n": 0.1, "b": True, "at": "2026-11-25T06:05:06.123456+02:00", "day": "2026-11-25",
        "raw": "AP8=", "level": "LOW", "tags": ["a"], "counts": {"a": 1}, "inner": {"x": 1}, "again": None,
        "both": {"x": 2, "y": 0.5},
    }  # fmt: skip
    builder = StreamsBuilder("typed")
    stream = builder.stream("in", value=serde)
    stream.to("same", value=serde)
    stream.map_values(types="concat_ws(' ', typeof(i), typeof(n), typeof(at), typeof(day), typeof(raw))").to("types")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("in", "k", json_bytes(given))
    assert errors(driver) == []
    (types,) = driver.read_output("types", as_bytes=True)
    assert types.value == b'{"types":"bigint double timestamp date binary"}'
    (same,) = driver.read_output("same", as_bytes=True)
    assert same.value is not None
    written = given | {"at": "2026-11-25T04:05:06.123456Z"}
    del written["again"]
    assert plain_json.loads(same.value) == written


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("{", "the text is not a JSON Schema|the JSON Schema cannot be used"),
        ('{"type": "text"}', "unknown type|cannot be used"),
        ("{}", "has no type for the value: name one"),
        (schema({"a": {"type": ["string", "integer"]}}), "has the types string, integer for the field a"),
        (schema({"a": {"type": "object"}}), "no type for what is in the field a"),
        (schema({"a": {"type": "array"}}), "no type for what is in the field a"),
        (schema({"a": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}), "has no type for the field a"),
        (schema({"a": {"$ref": "#"}}), "the JSON Schema of the field a contains itself"),
        (
            schema({"a": {"type": "array", "items": {"$ref": "#"}}}),
            r"the JSON Schema of the field a\[\] contains itself",
        ),
        (schema({"a": {"$ref": "#/$defs/none"}}), "Reference /.defs/none cannot be resolved"),
    ],
)
def test_a_schema_without_single_types_is_refused_at_the_start(spark: SparkSession, given: str, why: str) -> None:
    driver = TopologyTestDriver(passing(json_schema(given)), spark)
    with pytest.raises(TopologyError, match=why):
        driver.pipe_input("in", "k", {})


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ("customer string", r"missing: \[amount\]; not in the schema: \[\]"),
        ("customer string, amount double, other int", r"not in the schema: \[other\]"),
        ("customer string, amount string", "amount"),
    ],
)
def test_fields_that_are_not_those_of_the_schema_are_refused_at_the_start(
    spark: SparkSession, fields: str, why: str
) -> None:
    driver = TopologyTestDriver(writing(fields, json_schema(ORDER)), spark)
    with pytest.raises(TopologyError, match=why):
        driver.pipe_input("in", "k", {})


def test_a_number_that_a_whole_number_cannot_hold_is_not_written(spark: SparkSession) -> None:
    driver = TopologyTestDriver(writing("n double", json_schema(schema({"n": {"type": "integer"}}))), spark)
    driver.pipe_input("in", "k", {"n": 1.5})
    driver.pipe_input("in", "k", {"n": 2.0})
    (error,) = errors(driver)
    assert "cannot be 1.5 without loss" in error
    assert [each.value for each in driver.read_output("out", as_bytes=True)] == [framed(1, b'{"n":2}')]


def test_a_schema_is_made_of_the_fields(spark: SparkSession) -> None:
    fields = (
        "s string, i int, d decimal(20,3), b boolean, at timestamp, day date, raw binary, tags array<string>, "
        "counts map<string, bigint>, inner struct<x: double>"
    )
    value = {
        "s": "a", "i": 1, "d": 0.25, "at": "2026-11-25T04:05:06.000Z", "day": "2026-11-25",
        "raw": "AP8=", "tags": ["a", None], "counts": {"a": 1}, "inner": {"x": 0.5},
    }  # fmt: skip
    driver = TopologyTestDriver(writing(fields, json_schema()), spark)
    driver.pipe_input("in", "k", json_bytes(value).replace(b"0.25", b"12345678901234567.125"))
    assert errors(driver) == []
    (output,) = driver.read_output("out", as_bytes=True)
    assert output.value is not None
    assert b'"d":12345678901234567.125' in output.value
    made = plain_json.loads(registered(driver, 1))
    jsonschema.Draft7Validator.check_schema(made)
    jsonschema.Draft7Validator(made).validate(plain_json.loads(output.value[5:]))
    assert made["title"] == "Value"
    assert made["additionalProperties"] is False
    assert made["properties"]["tags"] == {"type": "array", "items": {"type": ["string", "null"]}}
    assert made["properties"]["at"] == {"type": "string", "format": "date-time"}
    again = TopologyTestDriver(passing(json_schema(plain_json.dumps(made))), spark)
    again.pipe_input(
        "in", "k", framed(again.register("in-value", json_schema(plain_json.dumps(made))), output.value[5:])
    )
    assert errors(again) == []


def registered(driver: TopologyTestDriver, number: int) -> str:
    return str(driver._schemas().typed(number).schema().text())


def test_keys_have_schemas_too(spark: SparkSession) -> None:
    builder = StreamsBuilder("keys")
    orders = builder.stream("in", value=text(), key=json_schema(schema({"id": {"type": "integer"}}, "id")))
    orders.select_key("key.id").to("ids", key=json_schema('{"type": "integer"}'))
    orders.select_key("struct(key.id AS number)").to("pairs", key=json_schema())
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("in", {"id": 7}, "x")
    assert errors(driver) == []
    (single,) = driver.read_output("ids", as_bytes=True)
    assert bytes(single.key)[5:] == b"7"  # type: ignore[arg-type]
    (pair,) = driver.read_output("pairs", as_bytes=True)
    assert bytes(pair.key)[5:] == b'{"number":7}'  # type: ignore[arg-type]
    driver.pipe_input("in", {"id": 8}, "x")
    assert driver.read_output("ids")[0].key == 8


_SCALARS = st.sampled_from(
    [
        ({"type": "string"}, st.text(st.characters(codec="utf-8"))),
        ({"type": "integer"}, st.integers(-(2**63), 2**63 - 1)),
        ({"type": "number"}, st.floats(allow_nan=False, allow_infinity=False)),
        ({"type": "boolean"}, st.booleans()),
    ]
)


def _composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    arrays = inner.map(lambda each: ({"type": "array", "items": each[0]}, st.lists(each[1], max_size=3)))
    objects = inner.map(
        lambda each: (
            {"type": "object", "properties": {"in": each[0]}, "required": ["in"]},
            st.fixed_dictionaries({"in": each[1]}),
        )
    )
    maps = inner.map(
        lambda each: (
            {"type": "object", "additionalProperties": each[0]},
            st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), each[1], max_size=2),
        )
    )
    return arrays | objects | maps


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(kinds=st.lists(st.recursive(_SCALARS, _composed, max_leaves=4), min_size=1, max_size=4), data=st.data())
def test_random_values_of_random_schemas_come_out_as_they_went_in(
    spark: SparkSession, kinds: list[Any], data: st.DataObject
) -> None:
    serde = json_schema(schema({f"f{at}": kind for at, (kind, _) in enumerate(kinds)}), registry=False)
    driver = TopologyTestDriver(passing(serde, serde), spark)
    given_values = [{f"f{at}": data.draw(values) for at, (_, values) in enumerate(kinds)} for _ in range(4)]
    for each in given_values:
        driver.pipe_input("in", "k", json_bytes(each))
    assert errors(driver) == []
    outputs = driver.read_output("out", as_bytes=True)
    assert [plain_json.loads(each.value or b"") for each in outputs] == given_values


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with registry_server() as server:
        yield server


ABOUT = SerializationContext("in", MessageField.VALUE)


def test_confluents_serializer_writes_what_is_read_and_reads_what_is_written(
    spark: SparkSession, server: RegistryServer
) -> None:
    entry = [(200, {"id": 7, "version": 1, "subject": "in-value", "schemaType": "JSON", "schema": ORDER})]
    versions = "/subjects/in-value/versions"
    for path in (versions, versions + "?normalize=False", versions + "/latest", "/schemas/ids/7"):
        server.answers[path] = entry
    with SchemaRegistryClient({"url": server.url}) as registry:
        theirs = JSONSerializer(ORDER, registry)(ANN, ABOUT)
        driver = TopologyTestDriver(passing(json_schema(), json_schema(ORDER, subject="in-value")), spark)
        driver._registry = client(spark, server.url)
        driver.pipe_input("in", "k", theirs)
        assert errors(driver) == []
        (output,) = driver.read_output("out", as_bytes=True)
        assert output.value is not None
        assert theirs is not None
        assert output.value[:5] == theirs[:5], "the head of the wire format"
        assert output.value[5:] == theirs[5:].replace(b": ", b":").replace(b", ", b","), "but for blanks"
        assert JSONDeserializer(None, schema_registry_client=registry)(output.value, ABOUT) == ANN
    posted = [each.body for each in server.asked if each.path == versions]
    assert {"schema": ORDER, "schemaType": "JSON"} in posted


def test_a_schema_is_read_with_those_that_it_refers_to(spark: SparkSession, server: RegistryServer) -> None:
    customer = schema({"name": {"type": "string"}}, "name")
    order = schema({"customer": {"$ref": "customer.json"}, "n": {"type": "integer"}})
    reference = {"name": "customer.json", "subject": "customer", "version": 2}
    answer = {"id": 7, "version": 1, "schemaType": "JSON", "schema": order, "references": [reference]}
    server.answers["/subjects/in-value/versions/latest"] = [(200, answer)]
    server.answers["/schemas/ids/7"] = [(200, answer)]
    server.answers["/subjects/customer/versions/2"] = [
        (200, {"id": 3, "version": 2, "schemaType": "JSON", "schema": customer})
    ]
    driver = TopologyTestDriver(passing(json_schema()), spark)
    driver._registry = client(spark, server.url)
    driver.pipe_input("in", "k", framed(7, b'{"customer":{"name":"ann"},"n":1}'))
    driver.pipe_input("in", "k", framed(7, b'{"customer":{},"n":1}'))
    assert [each.value for each in driver.read_output("out")] == [{"customer": {"name": "ann"}, "n": 1}]
    (error,) = errors(driver)
    assert "value.customer: required property 'name' not found" in error


def test_copies_on_disk_are_read_while_the_registry_is_away(
    spark: SparkSession, server: RegistryServer, tmp_path: Path
) -> None:
    server.answers["/schemas/ids/7"] = [(200, {"schemaType": "JSON", "schema": ORDER})]
    for fault in (None, (503, {})):
        server.fault = fault
        driver = TopologyTestDriver(passing(json_schema(ORDER)), spark)
        driver._registry = client(spark, server.url, copies=str(tmp_path))
        driver.pipe_input("in", "k", framed(7, json_bytes(ANN)))
        assert errors(driver) == []
        assert [each.value for each in driver.read_output("out")] == [ANN]


def test_a_sink_whose_schema_the_registry_lacks_is_refused(spark: SparkSession, server: RegistryServer) -> None:
    driver = TopologyTestDriver(writing("customer string, amount double", json_schema(ORDER, register=False)), spark)
    driver._registry = client(spark, server.url)
    with pytest.raises(TopologyError, match="refuses /subjects/out-value: 404 not found; check the subject"):
        driver.pipe_input("in", "k", ANN)


def test_a_version_before_the_latest_is_kept_as_long_as_it_reads_the_latest(spark: SparkSession) -> None:
    before = schema({"a": {"type": "number"}}, "a")
    driver = TopologyTestDriver(passing(json_schema()), spark)
    jvm: Any = spark._jvm
    make = jvm.jmsbridge.serdes.SchemaSerde
    serde = make("VALUE", "JSON", "", driver._schemas(), "", "", 0, True)
    driver.register("in-value", json_schema(before))
    for latest, used in (
        (schema({"a": {"type": "integer"}, "b": {"type": "string"}}), 1),
        (schema({"a": {"type": "string"}}), 3),
        (schema({"b": {"type": "string"}}), 4),
    ):
        driver.register("in-value", json_schema(latest))
        assert serde.reader("in", 1).version() == used
